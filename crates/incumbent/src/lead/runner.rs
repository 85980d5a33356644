//! Starts work when its node is elected, and sees to it that it ends.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use incumbent_core::LeaseName;
use incumbent_core::backoff::Backoff;
use incumbent_core::random::Random;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::Finish;
use super::job::{End, Job, Running};
use crate::driver::mutant::{DriverMutant, planted};
use crate::driver::{clock, seed, thread};
use crate::lead::campaign::Campaign;
use crate::lead::candidacy::Overrun;
use crate::lead::leadership::{Leadership, freed};
use crate::lead::loss::Lost;
use crate::lead::term::Term;

/// Runs on the thread of the runners, so that it acts in time even if all of the application's
/// workers are blocked, and the driver too. The work itself runs elsewhere.
pub(super) struct LeadRunner {
    pub(super) campaign: Campaign,
    pub(super) job: Box<dyn Job<Term>>,
    pub(super) grace: Duration,
    pub(super) margin: Duration,
    pub(super) overrun: Overrun,
    /// How long the work may report no progress.
    pub(super) watchdog: Option<Duration>,
    /// The first after a failure, and the longest.
    pub(super) pauses: (Duration, Duration),
    pub(super) stop: CancellationToken,
    pub(super) current: Arc<ArcSwapOption<Term>>,
    pub(super) finished: watch::Sender<Option<Finish>>,
}

/// What to do after a term.
enum Next {
    Contend,
    Finish(Finish),
}

impl LeadRunner {
    pub(super) async fn run(mut self) {
        let mut backoff = Backoff::new(self.pauses.0, self.pauses.1);
        let mut random = Random::new(seed::draw());
        let finish = loop {
            let leadership = tokio::select! {
                biased;
                () = self.stop.cancelled() => break Finish::Stopped,
                elected = self.campaign.elected() => match elected {
                    Ok(leadership) => leadership,
                    Err(_) => break Finish::NodeLeft,
                },
            };
            let started = clock::now();
            let end = self.work(&leadership).await;
            if clock::now().since(started) > self.pauses.1 {
                backoff.reset();
            }
            let pause = || backoff.pause(&mut random);
            match self.conclude(leadership, end, pause).await {
                Next::Contend => {}
                Next::Finish(finish) => break finish,
            }
        };
        // The campaign is withdrawn before anybody hears that this is finished.
        drop((self.campaign, self.job));
        self.finished.send_replace(Some(finish));
    }

    /// Runs the work under one term to its end.
    async fn work(&self, leadership: &Leadership) -> End {
        self.current.store(Some(Arc::new(leadership.term())));
        leadership.progressed();
        let mut running = self.job.start(leadership.term());
        tokio::select! {
            biased;
            end = &mut running.ended => return end,
            () = leadership.tenure.stuck(self.watchdog) => {
                return self.end_stuck(&mut running, leadership).await;
            }
            _ = leadership.lost() => {}
            _ = self.stopped(leadership) => {}
        }
        if planted(DriverMutant::FreedWhenTold) {
            leadership.hold().release();
        }
        self.wait_in_order(&mut running, leadership).await
    }

    /// The work reports no progress: it is ended at once, and counts as failed.
    async fn end_stuck(&self, running: &mut Running, leadership: &Leadership) -> End {
        let (lease, term, patience) = (leadership.lease(), leadership.number(), self.watchdog);
        tracing::error!(%lease, term, action = "stuck", ?patience, "the work reports no progress: it is ended");
        // Work that can't be aborted is told by this, too.
        leadership.resign();
        self.abort(running, leadership).await;
        let error = format!("it reported no progress for {:?}", patience.unwrap_or_default());
        End::Failed { error, led: true }
    }

    /// Waits until somebody stops this for good, then for the node to have heard of it.
    async fn stopped(&self, leadership: &Leadership) -> Lost {
        self.stop.cancelled().await;
        self.campaign.withdraw();
        leadership.lost().await
    }

    /// The work was told to end; it is aborted if it takes too long.
    async fn wait_in_order(&self, running: &mut Running, leadership: &Leadership) -> End {
        // From when the work was told, which may have been a while ago if this thread stood still.
        let told = leadership.tenure.lost_at().filter(|_| !planted(DriverMutant::GraceFromNow));
        let patience = told.unwrap_or_else(clock::now) + self.grace;
        let end = tokio::select! {
            biased;
            end = &mut running.ended => Some(end),
            () = thread::sleep_until(patience) => None,
            () = leadership.tenure.aborted() => None,
        };
        match end {
            Some(end) => end,
            None => self.abort(running, leadership).await,
        }
    }

    async fn abort(&self, running: &mut Running, leadership: &Leadership) -> End {
        let (lease, term) = (leadership.lease(), leadership.number());
        tracing::warn!(%lease, term, action = "abort", "the work did not end by itself");
        let patience = if running.abort() { self.margin / 4 } else { Duration::ZERO };
        let patience = clock::now() + patience;
        tokio::select! {
            biased;
            end = &mut running.ended => return end,
            () = thread::sleep_until(patience) => {}
        }
        tracing::error!(%lease, term, action = "overrun", policy = ?self.overrun, "the work can't be ended and still runs");
        match self.overrun {
            Overrun::Report => (&mut running.ended).await,
            Overrun::AbortProcess => std::process::abort(),
        }
    }

    async fn conclude(
        &self,
        leadership: Leadership,
        end: End,
        mut pause: impl FnMut() -> Duration,
    ) -> Next {
        let (lease, term) = (leadership.lease().clone(), leadership.number());
        let freed = freed(&leadership.term());
        self.current.store(None);
        let finish = match &end {
            End::Done { led: true } => Some(Finish::Completed),
            End::RuntimeGone => Some(Finish::RuntimeGone),
            _ if self.stop.is_cancelled() => Some(Finish::Stopped),
            End::Failed { error, led: true } => {
                let pause = pause();
                leadership.hold().abstain(pause);
                tracing::error!(%lease, term, action = "failed", error, ?pause, "the work failed; the lease is freed");
                None
            }
            End::Failed { error, led: false } => {
                tracing::debug!(%lease, term, action = "ended", error, "the work ended by an error after the lease was lost");
                None
            }
            End::Done { led: false } | End::Aborted => None,
        };
        drop(leadership);
        match finish {
            Some(finish) => {
                tell(&lease, term, finish);
                self.campaign.withdraw();
                // Free in the store too, if it answers in time.
                let _ = freed.await;
                Next::Finish(finish)
            }
            None => Next::Contend,
        }
    }
}

/// Says that this node doesn't contend any more, and why.
fn tell(lease: &LeaseName, term: u64, finish: Finish) {
    match finish {
        Finish::Completed => {
            tracing::info!(%lease, term, action = "completed", "the work returned Ok, so it is done: this node does not contend for the lease any more");
        }
        Finish::RuntimeGone => {
            tracing::warn!(%lease, term, action = "finished", "the runtime of the work was shut down: this node does not contend for the lease any more");
        }
        Finish::Stopped | Finish::NodeLeft => {
            tracing::info!(%lease, term, action = "finished", ?finish, "this node does not contend for the lease any more");
        }
    }
}
