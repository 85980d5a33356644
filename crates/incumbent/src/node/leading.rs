//! How a node leads: work as a closure, a campaign, one attempt, one call.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use incumbent_core::LeaseName;
use tokio::sync::oneshot;

use super::{Keep, Node};
use crate::driver::command::Command;
use crate::driver::exchange;
use crate::error::{CampaignError, WorkResult};
use crate::lead::attempt::{Attempt, AttemptOutcome, OtherLeader};
use crate::lead::campaign::Campaign;
use crate::lead::candidacy::Candidacy;
use crate::lead::term::Term;
use crate::lead::{self, Job, LeaderTask, Runner};

impl Node {
    /// Runs work while this node leads: it is started when the node is elected, told to end when
    /// the node leads no more, and started again when it leads again.
    ///
    /// - `Ok` frees the lease and stops for good.
    /// - An error or a panic frees the lease, stands back for a while that grows from a second to
    ///   a minute, and contends again (F23).
    /// - When leadership is lost in order (resigned, withdrawn, leaving), [`Term::token`] fires
    ///   and [`Term::is_held`] says no; the work has the [grace period](crate::Builder::grace) to end, and is
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
        let job = lead::AsyncJob::new(work, self.inner.workers.clone());
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
        self.lead_job(&candidacy.into(), Box::new(lead::BlockingJob::new(work)), lead::PAUSES)
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
        let runner = Runner {
            job,
            grace: candidacy.grace.unwrap_or(self.inner.grace),
            margin: self.inner.timing.margin,
            overrun: candidacy.overrun,
            overdue: None,
            watchdog: candidacy.watchdog,
        };
        LeaderTask::start(campaign, runner, pauses, Arc::clone(&self.inner))
            .map_err(|error| CampaignError::Thread(error.to_string()))
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
            Ok(AttemptOutcome::Elected) => match campaign.unclaimed() {
                Some(leadership) => Attempt::Elected(leadership.with_campaign(campaign)),
                None => Attempt::Conflict,
            },
            Ok(AttemptOutcome::Other(other)) => Attempt::OtherLeader(other),
            Ok(AttemptOutcome::Conflict) => Attempt::Conflict,
            Ok(AttemptOutcome::Unavailable(why)) => Attempt::Unavailable { why },
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
        let (commands, cluster) = (self.inner.commands.clone(), Arc::clone(&self.inner.cluster));
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
}
