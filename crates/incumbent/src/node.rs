use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use incumbent_core::{LeaseName, MemberId, Timing};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use crate::attempt::{Attempt, OtherLeader, Outcome};
use crate::ballot::Ballot;
use crate::builder::Builder;
use crate::campaign::Campaign;
use crate::candidacy::Candidacy;
use crate::cluster::{Cluster, Leader};
use crate::command::{Command, Commands};
use crate::duty::Families;
use crate::error::{CampaignError, JoinError, LeaveError, WorkResult};
use crate::event::Notice;
use crate::exchange;
use crate::lead::{self, Job, Lead};
use crate::member::Member;
use crate::registry::Registry;
use crate::shared::{Held, Shared};
use crate::subscription::{Observer, Subscription};
use crate::term::Term;

/// A process that takes part in a cluster. Clones are handles to the same node.
///
/// It beats on incumbent's own thread, and joins anew by itself whenever its member is closed or
/// its trust ran out.
///
/// # When the last handle is dropped
///
/// [`Campaign`], [`Leadership`](crate::Leadership) and [`Lead`] count as handles. When the last
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
    pub(crate) registry: Arc<Registry>,
    pub(crate) cluster: Cluster,
    pub(crate) workers: Handle,
    pub(crate) timing: Timing,
    pub(crate) drain: Duration,
    pub(crate) membership: bool,
    pub(crate) families: Families,
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
    /// [membership](Builder::membership); [`Cluster::members`] asks the store.
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

    /// Whether this node leads now.
    ///
    /// Finds the lease by its name in a table that is read without a lock or an allocation, then
    /// asks as [`Term::is_held`] does; keep a [`Term`] where even the look-up is too much.
    #[must_use]
    pub fn is_leader(&self, lease: &str) -> bool {
        self.inner.shared.held.load().get(lease).is_some_and(|held| held.grip.is_held())
    }

    /// The present term of a lease that this node leads.
    #[must_use]
    pub fn term(&self, lease: &str) -> Option<Term> {
        let held = self.held(lease)?;
        held.grip.is_held().then(|| self.term_of(&held))
    }

    /// Who leads a lease now, according to the store; see [`Cluster::leader`].
    ///
    /// # Errors
    /// If the store can't be reached or the record can't be read.
    pub async fn leader(&self, lease: &str) -> Result<Option<Leader>, crate::ClusterError> {
        self.inner.cluster.leader(lease).await
    }

    /// Runs work while this node leads: it is started when the node is elected, told to end when
    /// the node leads no more, and started again when it leads again.
    ///
    /// - `Ok` frees the lease and stops for good.
    /// - An error or a panic frees the lease, stands back for a while that grows from a second to
    ///   a minute, and contends again (F23).
    /// - When leadership is lost in order (resigned, withdrawn, leaving), [`Term::token`] fires
    ///   and [`Term::is_held`] says no; the work has the [drain](Builder::drain) to end, and is
    ///   aborted after that. Only when it has ended is the lease freed (F10).
    /// - When trust is over, it is aborted at its next `await`. What it returns then counts for
    ///   nothing.
    ///
    /// The work runs on the tokio runtime on which the node joined. Dropping the [`Lead`] lets it
    /// go on. Work that has a clone of its own node keeps the node from leaving by being dropped.
    ///
    /// # Errors
    /// If the lease's name won't do, this node stands for it already, or it has left.
    pub fn lead<F, Fut>(
        &self,
        candidacy: impl Into<Candidacy>,
        work: F,
    ) -> Result<Lead, CampaignError>
    where
        F: Fn(Term) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = WorkResult> + Send + 'static,
    {
        let job = lead::Task::new(work, self.inner.workers.clone());
        self.lead_job(&candidacy.into(), Box::new(job))
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
    ) -> Result<Lead, CampaignError>
    where
        F: Fn(Term) -> WorkResult + Send + Sync + 'static,
    {
        self.lead_job(&candidacy.into(), Box::new(lead::Thread::new(work)))
    }

    fn lead_job(
        &self,
        candidacy: &Candidacy,
        job: Box<dyn Job<Term>>,
    ) -> Result<Lead, CampaignError> {
        // The runner doesn't keep the node alive: dropping all handles ends the work.
        let campaign = self.stand(candidacy, None)?;
        let start = lead::Start {
            campaign,
            job,
            drain: candidacy.drain.unwrap_or(self.inner.drain),
            margin: self.inner.timing.margin,
            overrun: candidacy.overrun,
            keep: Arc::clone(&self.inner),
        };
        Lead::start(start).map_err(|error| CampaignError::Thread(error.to_string()))
    }

    /// Stands for a lease, for those who want a guard instead of a closure.
    ///
    /// # Errors
    /// If the lease's name won't do, this node stands for it already, or it has left.
    pub fn campaign(&self, candidacy: impl Into<Candidacy>) -> Result<Campaign, CampaignError> {
        self.stand(&candidacy.into(), Some(Arc::clone(&self.inner)))
    }

    /// Tries once to lead, and says how that went. It takes no longer than about the request
    /// time-out.
    ///
    /// Dropped before it is ready, it gives back what it may have won (F18).
    ///
    /// # Errors
    /// If the lease's name won't do, or the node has left.
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
    /// for it. The lease isn't freed before the call has ended.
    ///
    /// Nothing means that the node doesn't lead, or that it lost the lease before the call ended:
    /// then the call was dropped at an `await`. Dropping the future drops the call.
    pub async fn run_if_leader<F, Fut, T>(&self, lease: &str, call: F) -> Option<T>
    where
        F: FnOnce(Term) -> Fut,
        Fut: Future<Output = T>,
    {
        let held = self.held(lease)?;
        // As long as this is here the work under the term hasn't ended.
        let _hold = held.hold.upgrade()?;
        if !held.grip.is_held() {
            return None;
        }
        let term = self.term_of(&held);
        tokio::select! {
            biased;
            _ = held.grip.ended() => None,
            result = call(term) => Some(result),
        }
    }

    /// All that happens to this node from now on, in order, after its present state.
    pub fn subscribe(&self) -> Subscription {
        let (sender, notices) = mpsc::unbounded_channel::<Notice>();
        self.inner.commands.send(Command::Subscribe(sender));
        Subscription { notices }
    }

    /// Calls back for all that happens to this node, one thing after the other, on the tokio
    /// runtime on which the node joined. A callback that panics is reported, and called again for
    /// what comes next; a slow one holds up nobody else.
    pub fn observe(&self, callback: impl FnMut(&Notice) + Send + 'static) -> Observer {
        self.subscribe().observed(&self.inner.workers, callback)
    }

    /// Leaves in order: all work is told to end, leases are freed when theirs has, and the member
    /// is closed, so that others take over at once. Work has the [drain](Builder::drain) to end.
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
        let Some(claim) = self.inner.registry.claim(&lease) else {
            return Err(CampaignError::Duplicate { lease });
        };
        let ballot = Arc::new(Ballot::default());
        self.inner.commands.send(Command::Campaign {
            lease,
            contest: claim.contest,
            candidacy: candidacy.core(),
            ballot: Arc::clone(&ballot),
            drain: candidacy.drain.unwrap_or(self.inner.drain),
        });
        let (commands, cluster) = (self.inner.commands.clone(), self.inner.cluster.clone());
        Ok(Campaign { commands, cluster, ballot, claim, keep })
    }

    /// How an attempt goes where a campaign of this node is under way already.
    async fn known_attempt(&self, lease: &LeaseName) -> Attempt {
        if let Some(term) = self.term(lease.as_str()) {
            return Attempt::AlreadyLeader { term: term.term() };
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
            grip: Arc::clone(&held.grip),
            commands: self.inner.commands.clone(),
            cluster: self.inner.cluster.clone(),
        }
    }
}
