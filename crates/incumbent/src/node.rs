pub(crate) mod builder;
pub(crate) mod environment;
pub(crate) mod event;
pub(crate) mod health;
pub(crate) mod host;
mod leading;
pub(crate) mod member;
pub mod metrics;
pub mod placement;
pub(crate) mod shared;
pub(crate) mod subscription;
pub mod witness;

use std::sync::Arc;
use std::time::Duration;

use incumbent_core::{MemberId, Timing};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::cluster::{Cluster, Leader};
use crate::driver;
use crate::driver::command::{Command, Commands};
use crate::duty::Families;
use crate::error::{JoinError, LeaveError};
use crate::lead::known::KnownLeader;
use crate::lead::scope::Scope;
use crate::lead::seat::Seats;
use crate::lead::slots::Gates;
use crate::lead::term::Term;
use crate::node::builder::Builder;
use crate::node::event::Notice;
use crate::node::health::{Health, Standing};
use crate::node::member::Member;
use crate::node::shared::{Held, Shared};
use crate::node::subscription::{Callback, Subscription};

/// A process that takes part in a cluster. Clones are handles to the same node.
///
/// It beats on incumbent's own thread, and joins anew by itself whenever its member is closed or
/// its trust ran out.
///
/// # When the last handle is dropped
///
/// [`Campaign`](crate::Campaign), [`Leadership`](crate::Leadership) and
/// [`LeaderTask`](crate::LeaderTask) count as handles. When the last
/// one is gone without [`Node::leave`], the work of detached leads is told to end, and the node
/// leaves in the background as [`Node::leave`] would. If the process ends before that is done,
/// its leases are free after its ttl.
#[derive(Clone, Debug)]
pub struct Node {
    pub(crate) inner: Keep,
}

/// Keeps a node from leaving.
pub(crate) type Keep = Arc<Inner>;

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) name: String,
    pub(crate) address: Option<String>,
    pub(crate) commands: Commands,
    pub(crate) shared: Arc<Shared>,
    pub(crate) seats: Arc<Seats>,
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) workers: Handle,
    /// The process of a world that it belongs to.
    #[cfg(feature = "testing")]
    pub(crate) home: crate::testing::Home,
    pub(crate) timing: Timing,
    pub(crate) grace: Duration,
    pub(crate) membership: bool,
    pub(crate) families: Families,
    pub(crate) gates: Gates,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.commands.send(Command::Abandon);
    }
}

impl Node {
    /// Describes a node that is to join.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// Joins as the environment says; see [`Builder::from_env`]. `INCUMBENT_STORE` is needed.
    ///
    /// # Errors
    /// As [`Builder::join`], and if the environment doesn't say what is needed.
    pub async fn from_env() -> Result<Self, JoinError> {
        Self::builder().from_env()?.open_and_join().await
    }

    /// The name that people know it by.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Its present member id; nothing while it is between two incarnations.
    #[must_use]
    pub fn member(&self) -> Option<MemberId> {
        self.inner.shared.member.load().as_deref().cloned()
    }

    /// The times it runs by.
    #[must_use]
    pub fn timing(&self) -> &Timing {
        &self.inner.timing
    }

    /// The cluster that it is a member of, to ask who leads.
    #[must_use]
    pub fn cluster(&self) -> &Cluster {
        &self.inner.cluster
    }

    /// The members as the cluster's leader sees them, closed ones that are still visible too.
    /// Empty until the first view was read, and always without
    /// [membership](Builder::without_membership); [`Cluster::members`] asks the store.
    #[must_use]
    pub fn members(&self) -> Arc<Vec<Member>> {
        self.inner.shared.members.load_full()
    }

    /// Whether this node keeps the list of members for the whole cluster at the moment. For
    /// display: no work should hang on it.
    #[must_use]
    pub fn leads_cluster(&self) -> bool {
        self.inner.shared.leads_cluster()
    }

    /// How this node is doing: its last beat, the trust that is left, its store, and whether the
    /// thread that beats runs. For probes and dashboards.
    ///
    /// All of it is in memory: no request, no lock, nothing that could hold up a beat. It changes
    /// with every beat, so ask again rather than keep it. [`Self::subscribe`] tells when the store
    /// fails and answers again.
    ///
    /// A liveness probe should ask whether the thread runs, and nothing else: a process that is
    /// restarted because its *store* is away is no better off afterwards.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = incumbent::open("solo:").await?;
    /// # let node = incumbent::Node::builder().name("billing-1").join(store).await?;
    /// let health = node.health();
    /// let alive = health.last_turn < Duration::from_secs(10);
    /// let ready = health.standing == incumbent::Standing::Member;
    /// # assert!(alive && ready);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn health(&self) -> Health {
        let standing = match self.inner.shared.member.load().as_ref() {
            _ if self.inner.commands.is_closed() => Standing::Left,
            Some(_) => Standing::Member,
            None => Standing::Rejoining,
        };
        self.inner.shared.pulse.health(standing)
    }

    /// Whether this node leads now.
    ///
    /// Finds the lease by its name in a table that is read without a lock or an allocation, then
    /// asks as [`Term::is_held`] does; keep a [`Term`] where even the look-up is too much.
    #[must_use]
    pub fn is_leader(&self, lease: &str) -> bool {
        self.inner.shared.held.load().get(lease).is_some_and(|held| held.tenure.is_held())
    }

    /// The present term of a lease that this node leads.
    #[must_use]
    pub fn term(&self, lease: &str) -> Option<Term> {
        let held = self.held(lease)?;
        held.tenure.is_held().then(|| self.term_of(&held))
    }

    /// Who leads a lease now, according to the store; see [`Cluster::leader`].
    ///
    /// # Errors
    /// If the store can't be reached or the record can't be read.
    pub async fn leader(&self, lease: &str) -> Result<Option<Leader>, crate::ClusterError> {
        self.inner.cluster.leader(lease).await
    }

    /// Who leads a lease, from memory: no request, no lock, nothing to wait for. For request handlers
    /// that forward to the leader.
    ///
    /// It is known of leases that this node stands for. To follow one without ever leading it, stand
    /// as [a follower](crate::Candidacy::follow_only). Nothing comes for other leases, and before the first
    /// look at the store; ask [`Self::leader`] then. [`Self::subscribe`] and [`Self::on_notice`] tell of
    /// each new leader ([`Event::LeaderChanged`](crate::Event::LeaderChanged)).
    ///
    /// # How stale it may be
    ///
    /// Where the store pushes, a change is known within a few round trips, and a leader that stays is
    /// looked at once a beat; otherwise the store is asked once a second. [`KnownLeader::age`] says how
    /// old the answer is, and grows while the store fails. A leader whose process died is named until
    /// its ttl has passed. Only this node's own leadership is known for sure: its trust is asked, as
    /// by [`Self::is_leader`]. What must not reach a former leader has to carry the [`Leader::term`],
    /// for the receiver to compare.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = incumbent::open("solo:").await?;
    /// # let node = incumbent::Node::builder().name("billing-1").join(store).await?;
    /// # let mut campaign = node.campaign("scheduler")?;
    /// # let leadership = campaign.elected().await?;
    /// let known = node.known_leader("scheduler").filter(|known| known.age < Duration::from_secs(10));
    /// match known.and_then(|known| known.leader) {
    ///     Some(leader) => println!("ask {} at {:?}", leader.node, leader.address),
    ///     None => println!("nobody is known to lead: try again later"),
    /// }
    /// # assert_eq!(node.known_leader("scheduler").and_then(|known| known.leader).map(|it| it.node).as_deref(), Some("billing-1"));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn known_leader(&self, lease: &str) -> Option<KnownLeader> {
        let leaders = self.inner.shared.leaders.load();
        Some(leaders.get(lease)?.known(self.is_leader(lease)))
    }

    /// All that happens to this node from now on, in order, after its present state.
    pub fn subscribe(&self) -> Subscription {
        let (sender, notices) = driver::queue();
        self.inner.commands.send(Command::Subscribe(sender));
        Subscription { notices }
    }

    /// Calls back for all that happens to this node, one thing after the other, on the tokio
    /// runtime on which the node joined. A callback that panics is reported, and called again for
    /// what comes next; a slow one holds up nobody else.
    pub fn on_notice(&self, callback: impl FnMut(&Notice) + Send + 'static) -> Callback {
        #[cfg(feature = "testing")]
        let _home = self.inner.home.enter();
        self.subscribe().observed(&self.inner.workers, callback)
    }

    /// Leaves in order: all work is told to end, leases are freed when theirs has, and the member
    /// is closed, so that others take over at once. Work has the [grace period](Builder::grace) to end.
    ///
    /// Drop your own [`Leadership`](crate::Leadership)s first, or when their tokens fire: as long
    /// as they are there, their work counts as running. Dropped before it is ready, the node
    /// leaves all the same. A node that has left already leaves at once.
    ///
    /// # Errors
    /// If it wasn't in order. The node is gone all the same, and its leases run out.
    pub async fn leave(&self) -> Result<(), LeaveError> {
        let (answer, answered) = oneshot::channel();
        self.inner.commands.send(Command::Leave(answer));
        answered.await.unwrap_or(Ok(()))
    }

    fn held(&self, lease: &str) -> Option<Held> {
        self.inner.shared.held.load().get(lease).cloned()
    }

    fn term_of(&self, held: &Held) -> Term {
        Term {
            tenure: Arc::clone(&held.tenure),
            commands: self.inner.commands.clone(),
            cluster: Arc::clone(&self.inner.cluster),
            scope: Scope::new(&held.tenure, held.hold.clone()),
        }
    }
}
