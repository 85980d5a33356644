//! A node's cluster, served.

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use incumbent::{Cluster, Node};
use tokio::runtime::Handle;

use crate::access::Access;
use crate::clusters::Clusters;
use crate::crowd::Crowd;
use crate::follow::{Followed, Follows};
use crate::hold::{draw, hex};
use crate::holds::{EACH, Holds};
use crate::problem::Problem;
use crate::route;
#[cfg(feature = "tls")]
use crate::tls::Tls;
use crate::trust_file::TrustFiles;
use crate::watched::Watched;

/// How a cluster is served. All has a default.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Who gets in.
    pub access: Access,
    /// The lease that `GET /` and the agent check speak of; the cluster's own leader without it.
    pub lease: Option<String>,
    /// The ttl of holds that ask for none (15 s).
    pub ttl: Duration,
    /// The shortest ttl that a hold may ask for (3 s; less only for tests).
    pub least_ttl: Duration,
    /// How many holds, streams and long polls there may be for one address or user (1,024).
    pub streams_each: usize,
    /// Below which directory trust files are made: one on tmpfs.
    pub trust_directory: Option<PathBuf>,
    /// Encrypts what comes in on TCP, and may ask for certificates.
    #[cfg(feature = "tls")]
    pub tls: Option<Tls>,
    /// Other clusters of the same store, to be looked at and steered here too
    /// ([`MOST_CLUSTERS`](crate::MOST_CLUSTERS) in all). Leases are held and duties served in the node's own.
    pub also: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            access: Access::default(),
            lease: None,
            ttl: Duration::from_secs(15),
            least_ttl: Duration::from_secs(3),
            streams_each: EACH,
            trust_directory: None,
            #[cfg(feature = "tls")]
            tls: None,
            also: Vec::new(),
        }
    }
}

/// A node's cluster, served over HTTP. Clones are handles to the same.
#[derive(Clone, Debug)]
pub struct Service(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    node: Node,
    options: Options,
    runtime: Handle,
    holds: Arc<Holds>,
    follows: Follows,
    clusters: Clusters,
    trust_files: TrustFiles,
    crowd: Arc<Crowd>,
}

impl Service {
    /// Serves the cluster of a node. Its tasks run on the tokio runtime on which this is called.
    ///
    /// # Errors
    /// If it isn't called on a tokio runtime, the system gives no randomness, another cluster has no valid name,
    /// or the directory that was chosen for trust files can't be used.
    pub fn new(node: Node, options: Options) -> std::io::Result<Self> {
        let runtime = Handle::try_current().map_err(std::io::Error::other)?;
        let run = draw().ok_or_else(|| std::io::Error::other("the system gives no randomness"))?;
        let run = hex(&run);
        let trust_files = TrustFiles::new(options.trust_directory.as_deref(), &run)?;
        let clusters = Clusters::new(&node, &options.also, run.get(..8).unwrap_or_default())?;
        let holds = Arc::new(Holds::with_most_each(options.streams_each));
        #[cfg(feature = "tls")]
        if let Some(tls) = &options.tls {
            runtime.spawn(tls.follow());
        }
        let follows = Follows::default();
        runtime.spawn(follows.forget_idle());
        Ok(Self(Arc::new(Inner {
            node,
            options,
            runtime,
            holds,
            follows,
            clusters,
            trust_files,
            crowd: Arc::default(),
        })))
    }

    /// All that docs/http.md describes, to be mounted under any prefix.
    pub fn router(&self) -> Router {
        route::router(self)
    }

    /// Takes no more holds and lets each end in order: `stopping`, its grace, and the end of told
    /// trust. Ready when no client may trust any more.
    pub async fn shut_down(&self) {
        self.0.holds.shut_down().await;
    }

    /// The node that it serves.
    #[must_use]
    pub fn node(&self) -> &Node {
        &self.0.node
    }

    /// Whether somebody holds this lease here at this moment: a client, or the node itself.
    #[must_use]
    pub fn holds_lease(&self, lease: &str) -> bool {
        self.0.holds.holder(lease).is_some() || self.0.node.is_leader(lease)
    }

    /// The cluster that the node has joined: all that is held or served is in this one.
    pub(crate) fn cluster(&self) -> &Cluster {
        self.0.node.cluster()
    }

    pub(crate) fn access(&self) -> &Access {
        &self.0.options.access
    }

    #[cfg(feature = "tls")]
    pub(crate) fn tls(&self) -> Option<&Tls> {
        self.0.options.tls.as_ref()
    }

    /// Whether only those get in on TCP who have a token or a certificate.
    pub(crate) fn is_guarded(&self) -> bool {
        #[cfg(feature = "tls")]
        if self.tls().is_some_and(Tls::needs_certificate) {
            return true;
        }
        self.access().needs_token()
    }

    /// The lease that is asked about if none is named.
    pub(crate) fn lease(&self) -> &str {
        self.0.options.lease.as_deref().unwrap_or("incumbent/leader")
    }

    pub(crate) fn ttl(&self) -> Duration {
        self.0.options.ttl
    }

    pub(crate) fn least_ttl(&self) -> Duration {
        self.0.options.least_ttl
    }

    pub(crate) fn holds(&self) -> &Arc<Holds> {
        &self.0.holds
    }

    /// All clusters that can be looked at.
    pub(crate) fn clusters(&self) -> &Clusters {
        &self.0.clusters
    }

    /// The node's own cluster, as it is looked at.
    pub(crate) fn watched(&self) -> &Arc<Watched> {
        self.0.clusters.joined()
    }

    pub(crate) fn trust_files(&self) -> &TrustFiles {
        &self.0.trust_files
    }

    pub(crate) fn crowd(&self) -> &Arc<Crowd> {
        &self.0.crowd
    }

    pub(crate) fn follows(&self) -> &Follows {
        &self.0.follows
    }

    /// Follows a lease of the node's own cluster.
    pub(crate) fn follow(&self, lease: &str) -> Result<Arc<Followed>, Problem> {
        self.follow_in(self.cluster(), lease)
    }

    /// Follows a lease of any cluster.
    pub(crate) fn follow_in(
        &self,
        cluster: &Cluster,
        lease: &str,
    ) -> Result<Arc<Followed>, Problem> {
        self.0.follows.follow(cluster, lease)
    }

    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.0.runtime.spawn(task);
    }
}
