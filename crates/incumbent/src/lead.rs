//! Work that runs while this node leads.

pub(crate) mod assertion;
pub(crate) mod attempt;
pub(crate) mod campaign;
pub(crate) mod candidacy;
mod contending;
pub(crate) mod failures;
pub(crate) mod fence;
mod futures;
pub(crate) mod hold;
mod job;
pub(crate) mod known;
pub(crate) mod leadership;
pub(crate) mod loss;
pub(crate) mod periodic;
mod runner;
pub(crate) mod scope;
pub(crate) mod seat;
pub(crate) mod slots;
pub(crate) mod tenure;
pub(crate) mod term;
pub(crate) mod trust;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use incumbent_core::LeaseName;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::driver::thread;
use crate::lead::campaign::Campaign;
use crate::lead::term::Term;
use crate::node::Keep;

use contending::Contending;
use failures::Failures;
pub(crate) use job::{AsyncJob, BlockingJob, End, Handed, Job};
pub(crate) use runner::Runner;

/// The first pause after a failure, and the longest.
pub(crate) const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// A handle to work that runs while its node leads, made by [`Node::lead`](crate::Node::lead).
///
/// Dropping it changes nothing: the work goes on for as long as the node lives.
pub struct LeaderTask {
    lease: LeaseName,
    stop: CancellationToken,
    current: Arc<ArcSwapOption<Term>>,
    finished: watch::Receiver<Option<Finish>>,
    _keep: Keep,
}

/// Why work won't be started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Finish {
    /// It said `Ok` while it led: it is done.
    Completed,
    /// [`LeaderTask::stop`] was called.
    Stopped,
    /// The node has left.
    NodeLeft,
    /// The runtime on which it ran was shut down.
    RuntimeGone,
}

impl LeaderTask {
    /// Contends by this campaign, and runs the work whenever it is won. After a failure it stands back: the
    /// first time and at most for so long.
    pub(crate) fn start(
        campaign: Campaign,
        runner: Runner<Term>,
        pauses: (Duration, Duration),
        keep: Keep,
    ) -> io::Result<Self> {
        let (finished, receiver) = watch::channel(None);
        let task = Self {
            lease: campaign.lease().clone(),
            stop: CancellationToken::new(),
            current: Arc::new(ArcSwapOption::empty()),
            finished: receiver,
            _keep: keep,
        };
        let contending = Contending {
            campaign,
            runner,
            failures: Failures::new(pauses.0, pauses.1),
            stop: task.stop.clone(),
            current: Arc::clone(&task.current),
            finished,
        };
        thread::spawn_runner(contending.run())?;
        Ok(task)
    }

    /// The lease that the work runs under.
    #[must_use]
    pub fn lease(&self) -> &LeaseName {
        &self.lease
    }

    /// Whether this node leads now, and the work runs. No lock, no allocation, no store.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.current.load().as_ref().is_some_and(|term| term.is_held())
    }

    /// The present term, if this node leads.
    #[must_use]
    pub fn term(&self) -> Option<Term> {
        self.current.load().as_deref().filter(|term| term.is_held()).cloned()
    }

    /// Stops the work for good and frees the lease. The work is told to end, has the grace period to do
    /// so, and is aborted after that.
    ///
    /// If the future is dropped before it is ready, the work still stops.
    pub async fn stop(&self) -> Finish {
        self.stop.cancel();
        self.finished().await
    }

    /// Waits until the work won't be started again, and its lease is freed. Cancel-safe.
    pub async fn finished(&self) -> Finish {
        let mut finished = self.finished.clone();
        let finish = finished.wait_for(Option::is_some).await;
        // The runner is gone without a word only if the process shuts down.
        finish.ok().and_then(|finish| *finish).unwrap_or(Finish::NodeLeft)
    }
}

impl fmt::Debug for LeaderTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaderTask")
            .field("lease", &self.lease)
            .field("leads", &self.is_leader())
            .field("finished", &*self.finished.borrow())
            .finish_non_exhaustive()
    }
}
