mod placing;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use incumbent_core::mutant::Planted;
use incumbent_core::names;
use incumbent_core::records::{ClusterLead, Evidence, Profile};
use incumbent_core::settings::MIN_TTL;
use incumbent_core::{Config, Past, Rhythm, Timing};
use incumbent_duties::Placement;
use tokio::sync::oneshot;

use crate::cluster::Cluster;
use crate::driver;
use crate::driver::command::{Command, Commands};
use crate::driver::{seed, thread, workers};
use crate::duty::Families;
use crate::error::{EnvironmentError, JoinError};
use crate::hint::HintSettings;
use crate::lead::seat::Seats;
use crate::lead::slots::Gates;
use crate::node::host;
use crate::node::shared::Shared;
use crate::node::witness;
use crate::node::{Inner, Node};
use crate::open::durability;
use crate::open::{self, OpenStore};

/// Describes a node that is going to join. Everything but the store has a default.
#[derive(Clone)]
pub struct Builder {
    pub(crate) cluster: String,
    pub(crate) name: Option<NameSource>,
    pub(crate) address: Option<String>,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) ttl: Duration,
    beat: Option<Duration>,
    margin: Option<Duration>,
    request: Option<Duration>,
    visible: Option<Duration>,
    grace: Duration,
    pub(crate) placement: Placement,
    pub(crate) capacity: Option<u64>,
    pub(crate) max_duties: Option<u32>,
    membership: bool,
    pub(crate) cluster_lead: ClusterLead,
    witness: bool,
    evidence: Option<Evidence>,
    proven: bool,
    least_ttl: Duration,
    join_timeout: Duration,
    past: Option<Past>,
    pub(crate) hints: HintSettings,
    pub(crate) store: Option<String>,
}

/// Where a node's name comes from.
#[derive(Clone)]
pub(crate) enum NameSource {
    Given(String),
    Provider(Arc<dyn Fn() -> String + Send + Sync>),
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self {
            cluster: "default".to_owned(),
            name: None,
            address: None,
            labels: BTreeMap::new(),
            ttl: Duration::from_secs(15),
            beat: None,
            margin: None,
            request: None,
            visible: None,
            grace: Duration::from_secs(10),
            placement: Placement::default(),
            capacity: None,
            max_duties: None,
            membership: true,
            cluster_lead: ClusterLead::Normal,
            witness: true,
            evidence: None,
            proven: true,
            least_ttl: MIN_TTL,
            join_timeout: Duration::from_secs(30),
            past: None,
            hints: HintSettings::default(),
            store: None,
        }
    }

    /// The URL of the store, for [`Self::open_and_join`].
    #[must_use]
    pub fn store(mut self, url: impl Into<String>) -> Self {
        self.store = Some(url.into());
        self
    }

    /// The cluster to join (`default`). Clusters in one store never see one another.
    #[must_use]
    pub fn cluster(mut self, cluster: impl Into<String>) -> Self {
        self.cluster = cluster.into();
        self
    }

    /// The name by which people know the node (`INCUMBENT_NODE` or the host's name). It should be
    /// unique: two nodes of one name are safe, but hard to tell apart (F2).
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(NameSource::Given(name.into()));
        self
    }

    /// Asks for the node's name when it joins.
    #[must_use]
    pub fn name_from(mut self, provider: impl Fn() -> String + Send + Sync + 'static) -> Self {
        self.name = Some(NameSource::Provider(Arc::new(provider)));
        self
    }

    /// Where others can reach the node, for [`Leader::address`](crate::Leader::address) and those who
    /// route requests by it. The election and the placement of duties don't look at it.
    #[must_use]
    pub fn address(mut self, address: impl Into<String>) -> Self {
        self.address = Some(address.into());
        self
    }

    /// Something that operators sort nodes by.
    #[must_use]
    pub fn label(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(name.into(), value.into());
        self
    }

    /// How long others wait for this node before they take over (15 s, and 3 s at least). A
    /// process that needs two ttls joins twice.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// From one beat to the next (a third of the ttl).
    #[must_use]
    pub fn beat(mut self, beat: Duration) -> Self {
        self.beat = Some(beat);
        self
    }

    /// By how much trust ends before the ttl: for clocks that drift, and for work to stop (a
    /// tenth of the ttl).
    #[must_use]
    pub fn margin(mut self, margin: Duration) -> Self {
        self.margin = Some(margin);
        self
    }

    /// How long one request to the store may take (5 s, and at most a third of the ttl).
    #[must_use]
    pub fn request_timeout(mut self, request: Duration) -> Self {
        self.request = Some(request);
        self
    }

    /// How long closed members stay visible (90 s).
    #[must_use]
    pub fn visible(mut self, visible: Duration) -> Self {
        self.visible = Some(visible);
        self
    }

    /// How long work may take to end in order (10 s), before it is aborted.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// The node neither follows the list of members nor keeps it for the cluster. A node that only leads
    /// leases of its own then costs its store less. [`Node::members`] stays empty, and [`Node::serve`] is
    /// refused, because a node that keeps the list places the duties.
    #[must_use]
    pub fn without_membership(mut self) -> Self {
        self.membership = false;
        self
    }

    /// The node doesn't watch the processes of members that it waits for. Otherwise it does so where they
    /// run on this machine and gave evidence; see [`witness`](crate::witness). Use this on a machine that
    /// may be a copy of another which goes on with the same host name and network cards.
    #[must_use]
    pub fn without_witness(mut self) -> Self {
        self.witness = false;
        self
    }

    /// The processes whose death proves that nothing of this node runs any more; see
    /// [`witness::evidence`](crate::witness::evidence). Without it, others wait the ttl.
    #[must_use]
    pub fn evidence(mut self, evidence: Evidence) -> Self {
        self.evidence = Some(evidence);
        self
    }

    /// For a node that stands for another process and tells that one how long to trust. The death of
    /// *this* process proves nothing about the other. So the node publishes no evidence, even where this
    /// process has a [`witness`](crate::witness), and no witness closes the member early.
    ///
    /// All such nodes of a process that share an opened store, a cluster and a ttl beat at the same moments, in one
    /// exchange, however many they are.
    #[must_use]
    pub fn on_behalf(mut self) -> Self {
        self.proven = false;
        self
    }

    /// How long [`Self::join`] waits for the store (30 s).
    #[must_use]
    pub fn join_timeout(mut self, timeout: Duration) -> Self {
        self.join_timeout = timeout;
        self
    }

    /// What an earlier node of this process has seen in this cluster, from [`Node::past`]. If the store
    /// forgets it, the new node knows as much as the earlier one did: it waits for any node that may
    /// still lead, and its terms go on above those that were lost.
    #[must_use]
    pub fn past(mut self, past: Past) -> Self {
        self.past = Some(past);
        self
    }

    /// Whether and where this node takes hints from others. This matters where the store pushes none. By
    /// default it takes them on the loopback interface, from nodes of the same host.
    #[must_use]
    pub fn hints(mut self, hints: HintSettings) -> Self {
        self.hints = hints;
        self
    }

    /// Allows a ttl below 3 s. For tests only: such a node loses its leases during ordinary pauses.
    #[must_use]
    pub fn allow_short_ttl(mut self) -> Self {
        self.least_ttl = Duration::from_millis(100);
        self
    }

    /// The settings for tests: a ttl of one second, and everything else to go with it.
    #[must_use]
    pub fn for_tests(self) -> Self {
        let second = Duration::from_secs(1);
        self.allow_short_ttl().ttl(second).grace(second)
    }

    /// Joins the cluster.
    ///
    /// The work of this node runs on the tokio runtime on which this is called. Where there is none, it
    /// runs on one that incumbent keeps. If the future is dropped before it is ready, the node leaves again.
    ///
    /// # Errors
    /// If the settings don't fit together, the store rejects the node, or it can't be reached
    /// within the [join time-out](Self::join_timeout).
    pub async fn join(self, store: impl Into<OpenStore>) -> Result<Node, JoinError> {
        let store = store.into();
        refuse_witness()?;
        let mut timing = self.timing()?;
        if !self.proven {
            timing.rhythm = Rhythm::Together(store.chorus.since());
        }
        let profile = self.profile()?;
        let name = profile.node.clone();
        let cluster = Cluster::new(store.clone(), &self.cluster)?.with_hints(self.hints);
        let workers = workers::handle()?;
        let (commands, queue) = Commands::channel();
        let (joined, answer) = oneshot::channel();
        let shared = Arc::new(Shared::default());
        let config = Config {
            profile,
            timing: timing.clone(),
            push: false,
            max_value: store.capabilities().max_value,
            membership: self.membership,
            planted: Planted::default(),
        };
        let start = driver::DriverStart {
            config,
            placement: self.placement,
            seed: seed::draw(),
            store,
            cluster: Arc::clone(&cluster.name),
            grace: self.grace,
            witness: self.witness,
            proven: self.proven,
            shared: Arc::clone(&shared),
            commands: commands.clone(),
            queue,
            joined,
            join_within: self.join_timeout,
            past: self.past,
            hints: Arc::clone(&cluster.hints),
        };
        thread::start()?;
        thread::spawn(driver::run(start))?;
        // From here on dropping this future drops the node, which then leaves.
        let seats = Arc::new(Seats::default());
        let (grace, membership) = (self.grace, self.membership);
        let inner = Inner {
            name,
            address: self.address,
            commands,
            shared,
            seats,
            cluster: Arc::new(cluster),
            workers,
            #[cfg(feature = "testing")]
            home: crate::testing::Home::here(),
            timing,
            grace,
            membership,
            families: Families::default(),
            gates: Gates::default(),
        };
        let node = Node { inner: Arc::new(inner) };
        let last = "the store failed while the node joined".to_owned();
        let waited = self.join_timeout;
        answer.await.unwrap_or(Err(JoinError::TimedOut { waited, last }))?;
        durability::warn_once(&node.inner.cluster.store);
        Ok(node)
    }

    /// Opens the store that [`Self::store`] or the environment named, and joins.
    ///
    /// # Errors
    /// As [`Self::join`], and if no store was named or it can't be opened.
    pub async fn open_and_join(self) -> Result<Node, JoinError> {
        let missing =
            EnvironmentError::Missing { variable: "INCUMBENT_STORE", example: "sqlite:app.db" };
        let url = self.store.clone().ok_or(missing)?;
        let store = open::open(&url).await?;
        self.join(store).await
    }

    /// The times, checked together.
    fn timing(&self) -> Result<Timing, JoinError> {
        let usual = Timing::for_ttl(self.ttl);
        let timing = Timing {
            beat: self.beat.unwrap_or(usual.beat),
            margin: self.margin.unwrap_or(usual.margin),
            request: self.request.unwrap_or(usual.request),
            visible: self.visible.unwrap_or(usual.visible),
            ..usual
        };
        timing.check(self.least_ttl)?;
        Ok(timing)
    }

    fn profile(&self) -> Result<Profile, JoinError> {
        let name = match &self.name {
            Some(NameSource::Given(name)) => name.clone(),
            Some(NameSource::Provider(provider)) => provider(),
            None => {
                let named = std::env::var("INCUMBENT_NODE").ok().filter(|name| !name.is_empty());
                named.unwrap_or_else(host::name)
            }
        };
        names::check("node", &name)?;
        let mut profile = Profile::named(&name);
        profile.address = self.address.clone();
        profile.labels = self.labels.clone();
        profile.host = host::identity();
        profile.capacity = self.capacity;
        profile.max_duties = self.max_duties;
        profile.cluster_lead = self.cluster_lead;
        if let Some(host) = &mut profile.host {
            let evidence = || self.evidence.clone().or_else(own_evidence);
            host.evidence = self.proven.then(evidence).flatten();
        }
        Ok(profile)
    }
}

impl Node {
    /// What this node has seen of terms and their holders, for [`Builder::past`] of the next node that
    /// this process joins with. Nothing once the node has left.
    pub async fn past(&self) -> Option<Past> {
        let (answer, answered) = oneshot::channel();
        self.inner.commands.send(Command::Past(answer));
        answered.await.ok()
    }
}

/// A program that was started again as its own witness and didn't notice would lead beside itself.
fn refuse_witness() -> Result<(), EnvironmentError> {
    let Some(value) = witness::whose_witness() else { return Ok(()) };
    let reason = "this process was started as the witness of another and must not join: call \
                  `incumbent::witness::init()` first in `main`, unconditionally"
        .to_owned();
    Err(EnvironmentError::Bad { variable: "INCUMBENT_WITNESS_OF", value, reason })
}

/// With a witness, the death of this process is all that is to be proven.
fn own_evidence() -> Option<Evidence> {
    witness::is_active().then(|| witness::evidence(&[std::process::id()], None).ok()).flatten()
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("cluster", &self.cluster)
            .field("address", &self.address)
            .field("labels", &self.labels)
            .field("ttl", &self.ttl)
            .finish_non_exhaustive()
    }
}
