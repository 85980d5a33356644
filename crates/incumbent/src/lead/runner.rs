//! Starts work when its node is elected, and sees to it that it ends.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use incumbent_core::backoff::Backoff;
use incumbent_core::random::Random;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::Finish;
use super::job::{End, Job, Running};
use crate::campaign::Campaign;
use crate::candidacy::Overrun;
use crate::grip::Grip;
use crate::leadership::{Leadership, freed};
use crate::loss::{Loss, Lost};
use crate::term::Term;
use crate::{clock, seed, thread};

/// The first pause after a failure, and the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Runs on incumbent's thread, so that it acts in time even if all of the application's workers
/// are blocked. The work itself runs elsewhere.
pub(super) struct Runner {
    pub(super) campaign: Campaign,
    pub(super) job: Box<dyn Job<Term>>,
    pub(super) drain: Duration,
    pub(super) margin: Duration,
    pub(super) overrun: Overrun,
    pub(super) stop: CancellationToken,
    pub(super) current: Arc<ArcSwapOption<Grip>>,
    pub(super) finished: watch::Sender<Option<Finish>>,
}

/// What to do after a term.
enum Next {
    Contend,
    Finish(Finish),
}

impl Runner {
    pub(super) async fn run(mut self) {
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
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
            let (end, lost) = self.work(&leadership).await;
            if clock::now().since(started) > LONGEST_PAUSE {
                backoff.reset();
            }
            let pause = || backoff.pause(&mut random);
            match self.conclude(leadership, end, lost, pause).await {
                Next::Contend => {}
                Next::Finish(finish) => break finish,
            }
        };
        // The campaign is withdrawn before anybody hears that this is finished.
        drop((self.campaign, self.job));
        self.finished.send_replace(Some(finish));
    }

    /// Runs the work under one term to its end.
    async fn work(&self, leadership: &Leadership) -> (End, Option<Lost>) {
        self.current.store(Some(Arc::clone(&leadership.grip)));
        let mut running = self.job.start(leadership.handle());
        let lost = tokio::select! {
            biased;
            end = &mut running.ended => return (end, leadership.end()),
            lost = leadership.lost() => lost,
            lost = self.stopped(leadership) => lost,
        };
        self.wait_in_order(&mut running, leadership, lost).await
    }

    /// Waits until somebody stops this for good, then for the node to have heard of it.
    async fn stopped(&self, leadership: &Leadership) -> Lost {
        self.stop.cancelled().await;
        self.campaign.withdraw();
        leadership.lost().await
    }

    /// The work was told to end; it is aborted if it takes too long.
    async fn wait_in_order(
        &self,
        running: &mut Running,
        leadership: &Leadership,
        lost: Lost,
    ) -> (End, Option<Lost>) {
        let patience = clock::now() + self.drain;
        let end = tokio::select! {
            biased;
            end = &mut running.ended => Some(end),
            () = thread::sleep_until(patience) => None,
            () = self.no_time_left(leadership, lost) => None,
        };
        let end = match end {
            Some(end) => end,
            None => self.abort(running, leadership).await,
        };
        (end, Some(lost))
    }

    /// Trust is over. Where that is only because no beat got through, others wait for the ttl,
    /// so a part of the margin is left for a last word; otherwise they may have taken over.
    async fn no_time_left(&self, leadership: &Leadership, lost: Lost) {
        leadership.grip.aborted().await;
        if lost.why == Loss::CannotTell {
            thread::sleep_until(clock::now() + self.margin / 4).await;
        }
    }

    async fn abort(&self, running: &mut Running, leadership: &Leadership) -> End {
        let (lease, term) = (leadership.lease(), leadership.term());
        tracing::warn!(%lease, term, action = "abort", "the work did not end by itself");
        let patience = if running.abort() { self.margin / 4 } else { Duration::ZERO };
        let patience = clock::now() + patience;
        tokio::select! {
            biased;
            end = &mut running.ended => return aborted(end),
            () = thread::sleep_until(patience) => {}
        }
        tracing::error!(%lease, term, action = "overrun", policy = ?self.overrun, "the work can't be ended and still runs");
        match self.overrun {
            Overrun::Report => aborted((&mut running.ended).await),
            Overrun::AbortProcess => std::process::abort(),
        }
    }

    async fn conclude(
        &self,
        leadership: Leadership,
        end: End,
        lost: Option<Lost>,
        mut pause: impl FnMut() -> Duration,
    ) -> Next {
        let (lease, term) = (leadership.lease().clone(), leadership.term());
        let freed = freed(&leadership.handle());
        self.current.store(None);
        let finish = match (&end, lost) {
            (End::Done { led: true }, _) => Some(Finish::Completed),
            (End::RuntimeGone, _) => Some(Finish::RuntimeGone),
            _ if self.stop.is_cancelled() => Some(Finish::Stopped),
            (End::Failed(_), _) => {
                let pause = pause();
                leadership.hold().abstain(pause);
                if let End::Failed(error) = &end {
                    tracing::error!(%lease, term, action = "failed", error, ?pause, "the work failed; the lease is freed");
                }
                None
            }
            (End::Done { led: false } | End::Aborted, _) => None,
        };
        drop(leadership);
        match finish {
            Some(finish) => {
                self.campaign.withdraw();
                // Free in the store too, if it answers in time.
                let _ = freed.await;
                Next::Finish(finish)
            }
            None => Next::Contend,
        }
    }
}

/// A task that was aborted reports nothing else than one whose runtime is gone.
fn aborted(end: End) -> End {
    if end == End::RuntimeGone { End::Aborted } else { end }
}
