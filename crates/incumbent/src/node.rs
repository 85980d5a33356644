use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use incumbent_core::{LeaseName, MemberId, Timing};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::attempt::{Attempt, OtherLeader, Outcome};
use crate::builder::Builder;
use crate::campaign::Campaign;
use crate::candidacy::Candidacy;
use crate::cluster::{Cluster, Leader};
use crate::command::{Command, Commands};
use crate::driver;
use crate::duty::Families;
use crate::error::{CampaignError, JoinError, LeaveError, WorkResult};
use crate::event::Notice;
use crate::exchange;
use crate::health::{Health, Standing};
use crate::known::KnownLeader;
use crate::lead::{self, Job, LeaderTask};
use crate::member::Member;
use crate::scope::Scope;
use crate::seat::Seats;
use crate::shared::{Held, Shared};
use crate::slots::Gates;
use crate::subscription::{Callback, Subscription};
use crate::term::Term;

/// A process that takes part in a cluster. Clones are handles to the same node.
///
/// It beats on incumbent's own thread, and joins anew by itself whenever its member is closed or
/// its trust ran out.
///
/// # When the last handle is dropped
///
/// [`Campaign`], [`Leadership`](crate::Leadership) and [`LeaderTask`] count as handles. When the last
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
    pub(crate) commands: Commands,
    pub(crate) shared: Arc<Shared>,
    pub(crate) seats: Arc<Seats>,
    pub(crate) cluster: Cluster,
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
    /// as [a follower](Candidacy::follow_only). Nothing comes for other leases, and before the first
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

    /// Runs work while this node leads: it is started when the node is elected, told to end when
    /// the node leads no more, and started again when it leads again.
    ///
    /// - `Ok` frees the lease and stops for good.
    /// - An error or a panic frees the lease, stands back for a while that grows from a second to
    ///   a minute, and contends again (F23).
    /// - When leadership is lost in order (resigned, withdrawn, leaving), [`Term::token`] fires
    ///   and [`Term::is_held`] says no; the work has the [grace period](Builder::grace) to end, and is
    ///   aborted after that. Only when it has ended is the lease freed (F10).
    /// - When trust is over, it takes no further step: it is dropped at the `await` where it is,
    ///   whatever stands still meanwhile, so that nothing runs but what its values do in `Drop`.
    ///   Before each step the clock is compared with the end of trust.
    /// - What it returns after the lease was lost counts for nothing.
    ///
    /// Tasks that the work spawns are their own masters; [`Term::guard`] puts them under the term.
    ///
    /// The work runs on the tokio runtime on which the node joined. Dropping the [`LeaderTask`] lets it
    /// go on. Work that has a clone of its own node keeps the node from leaving by being dropped.
    ///
    /// # Errors
    /// If the lease's name is not valid, this node stands for it already, or it has left.
    pub fn lead<F, Fut>(
        &self,
        candidacy: impl Into<Candidacy>,
        work: F,
    ) -> Result<LeaderTask, CampaignError>
    where
        F: Fn(Term) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = WorkResult> + Send + 'static,
    {
        let job = lead::Task::new(work, self.inner.workers.clone());
        self.lead_job(&candidacy.into(), Box::new(job), lead::PAUSES)
    }

    /// As [`Self::lead`] for work that needs something of the application's: each time it is started
    /// it gets a clone.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # struct Ledger;
    /// # impl Ledger { async fn settle(&self, _: incumbent::Fence) -> Result<(), std::io::Error> { Ok(()) } }
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = incumbent::open("solo:").await?;
    /// # let node = incumbent::Node::builder().name("billing-1").join(store).await?;
    /// # let ledger = Arc::new(Ledger);
    /// let scheduler = node.lead_with("scheduler", ledger, |ledger, term| async move {
    ///     while term.is_held() {
    ///         ledger.settle(term.fence()).await?;
    ///         # break;
    ///     }
    ///     Ok(())
    /// })?;
    /// # scheduler.finished().await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A closure for [`Self::lead`] can't give away what it captured, because it is called again for
    /// the next term, so that it has to clone it inside, and most programs outside as well. An async
    /// closure could lend it, but its future is to run on any worker of the runtime, and that an async
    /// closure's future is `Send` can't be asked for in stable Rust. One that captures nothing can be
    /// given to [`Self::lead`] as it is. Work that blocks borrows what it captured, and needs none of
    /// this.
    ///
    /// # Errors
    /// As [`Self::lead`].
    pub fn lead_with<S, F, Fut>(
        &self,
        candidacy: impl Into<Candidacy>,
        state: S,
        work: F,
    ) -> Result<LeaderTask, CampaignError>
    where
        S: Clone + Send + Sync + 'static,
        F: Fn(S, Term) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = WorkResult> + Send + 'static,
    {
        self.lead(candidacy, move |term| work(state.clone(), term))
    }

    /// As [`Self::lead`] for work that blocks: it runs on a thread of its own.
    ///
    /// Such work can't be aborted, so let it ask [`Term::is_held`] often enough.
    /// [`Candidacy::on_overrun`] says what happens if it doesn't.
    ///
    /// # Errors
    /// As [`Self::lead`].
    pub fn lead_blocking<F>(
        &self,
        candidacy: impl Into<Candidacy>,
        work: F,
    ) -> Result<LeaderTask, CampaignError>
    where
        F: Fn(Term) -> WorkResult + Send + Sync + 'static,
    {
        self.lead_job(&candidacy.into(), Box::new(lead::Thread::new(work)), lead::PAUSES)
    }

    /// Runs a job whenever this node leads. After a failure it stands back: the first time and at
    /// most for so long.
    pub(crate) fn lead_job(
        &self,
        candidacy: &Candidacy,
        job: Box<dyn Job<Term>>,
        pauses: (Duration, Duration),
    ) -> Result<LeaderTask, CampaignError> {
        #[cfg(feature = "testing")]
        let _home = self.inner.home.enter();
        // The runner doesn't keep the node alive: dropping all handles ends the work.
        let campaign = self.stand(candidacy, None)?;
        let start = lead::Start {
            campaign,
            job,
            grace: candidacy.grace.unwrap_or(self.inner.grace),
            margin: self.inner.timing.margin,
            overrun: candidacy.overrun,
            pauses,
            keep: Arc::clone(&self.inner),
        };
        LeaderTask::start(start).map_err(|error| CampaignError::Thread(error.to_string()))
    }

    /// Stands for a lease, for those who want a guard instead of a closure.
    ///
    /// # Errors
    /// If the lease's name is not valid, this node stands for it already, or it has left.
    pub fn campaign(&self, candidacy: impl Into<Candidacy>) -> Result<Campaign, CampaignError> {
        self.stand(&candidacy.into(), Some(Arc::clone(&self.inner)))
    }

    /// Tries once to lead, and says how that went. It takes no longer than about the request
    /// time-out.
    ///
    /// Dropped before it is ready, it gives back what it may have won (F18).
    ///
    /// # Errors
    /// If the lease's name is not valid, or the node has left.
    pub async fn try_lead(
        &self,
        candidacy: impl Into<Candidacy>,
    ) -> Result<Attempt, CampaignError> {
        let candidacy = candidacy.into();
        let campaign = match self.campaign(candidacy) {
            Ok(campaign) => campaign,
            Err(CampaignError::Duplicate { lease }) => return Ok(self.known_attempt(&lease).await),
            Err(error) => return Err(error),
        };
        let (answer, answered) = oneshot::channel();
        let (lease, deadline) =
            (campaign.lease().clone(), exchange::within(self.inner.timing.request));
        self.inner.commands.send(Command::Attempt { lease, deadline, answer });
        Ok(match answered.await {
            Ok(Outcome::Elected) => match campaign.unclaimed() {
                Some(leadership) => Attempt::Elected(leadership.with_campaign(campaign)),
                None => Attempt::Conflict,
            },
            Ok(Outcome::Other(other)) => Attempt::OtherLeader(other),
            Ok(Outcome::Conflict) => Attempt::Conflict,
            Ok(Outcome::Unavailable(why)) => Attempt::Unavailable { why },
            Err(_) => Attempt::Unavailable { why: "this node has left the cluster".to_owned() },
        })
    }

    /// Runs one call if this node leads the lease by a campaign of its own, and does not contend
    /// for it. The lease isn't freed before the call has ended, nor what it put under its term by
    /// [`Term::guard`], which ends with the call.
    ///
    /// Nothing means that the node doesn't lead, or that it lost the lease before the call ended:
    /// then the call was dropped at an `await`. Dropping the future drops the call.
    pub async fn run_if_leader<F, Fut, T>(&self, lease: &str, call: F) -> Option<T>
    where
        F: FnOnce(Term) -> Fut,
        Fut: Future<Output = T>,
    {
        let held = self.held(lease)?;
        let term = self.term_of(&held).anew();
        // What the call put under the term ends with it, and keeps the lease until it has.
        let _closes = term.scope.close_on_drop();
        // As long as this is here the work under the term hasn't ended.
        let call = term.guard(async { call(term.clone()).await });
        if !held.tenure.is_held() {
            return None;
        }
        tokio::select! {
            biased;
            _ = held.tenure.ended() => None,
            result = call => result,
        }
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

    fn stand(&self, candidacy: &Candidacy, keep: Option<Keep>) -> Result<Campaign, CampaignError> {
        let lease = candidacy.name()?;
        // A record holds more than the payload, and JSON may escape each of its bytes.
        let most = self.inner.cluster.store.capabilities().max_value / 8;
        let bytes = candidacy.payload_bytes();
        if bytes > most {
            return Err(CampaignError::Payload { lease, bytes, most });
        }
        if self.inner.commands.is_closed() {
            return Err(CampaignError::Left);
        }
        let Some(seat) = self.inner.seats.take(&lease) else {
            return Err(CampaignError::Duplicate { lease });
        };
        self.inner.commands.send(Command::Campaign {
            seat: Arc::clone(&seat),
            candidacy: candidacy.core(),
            grace: candidacy.grace.unwrap_or(self.inner.grace),
        });
        let (commands, cluster) = (self.inner.commands.clone(), self.inner.cluster.clone());
        let seats = Arc::clone(&self.inner.seats);
        Ok(Campaign { commands, cluster, seats, seat, keep })
    }

    /// How an attempt goes where a campaign of this node is under way already.
    async fn known_attempt(&self, lease: &LeaseName) -> Attempt {
        if let Some(term) = self.term(lease.as_str()) {
            return Attempt::AlreadyLeader { term: term.number() };
        }
        match self.leader(lease.as_str()).await {
            Ok(Some(leader)) if Some(&leader.member) != self.member().as_ref() => {
                Attempt::OtherLeader(OtherLeader::from_leader(lease.clone(), leader))
            }
            Ok(_) => Attempt::Conflict,
            Err(error) => Attempt::Unavailable { why: error.to_string() },
        }
    }

    fn held(&self, lease: &str) -> Option<Held> {
        self.inner.shared.held.load().get(lease).cloned()
    }

    fn term_of(&self, held: &Held) -> Term {
        Term {
            tenure: Arc::clone(&held.tenure),
            commands: self.inner.commands.clone(),
            cluster: self.inner.cluster.clone(),
            scope: Scope::new(&held.tenure, held.hold.clone()),
        }
    }
}
