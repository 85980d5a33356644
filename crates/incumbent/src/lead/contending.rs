//! Contends for a lease, runs work under each term that it wins, and contends again.

use std::convert::Infallible;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use incumbent_core::LeaseName;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::Finish;
use super::failures::Failures;
use super::job::End;
use super::runner::Runner;
use crate::driver::clock;
use crate::lead::campaign::Campaign;
use crate::lead::leadership::{Leadership, freed};
use crate::lead::term::Term;

/// The course of a [`LeaderTask`](super::LeaderTask), on the thread of the runners.
pub(super) struct Contending {
    pub(super) campaign: Campaign,
    pub(super) runner: Runner<Term>,
    pub(super) failures: Failures,
    pub(super) stop: CancellationToken,
    pub(super) current: Arc<ArcSwapOption<Term>>,
    pub(super) finished: watch::Sender<Option<Finish>>,
}

impl Contending {
    pub(super) async fn run(mut self) {
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
            self.failures.ran(clock::now().since(started));
            if let Some(finish) = self.conclude(leadership, end).await {
                break finish;
            }
        };
        // The campaign is withdrawn before anybody hears that this is finished.
        drop((self.campaign, self.runner));
        self.finished.send_replace(Some(finish));
    }

    /// Runs the work under one term to its end. Whoever stops this for good has the lease lost in order.
    async fn work(&self, leadership: &Leadership) -> End {
        self.current.store(Some(Arc::new(leadership.term())));
        leadership.progressed();
        let withdrawing = async {
            self.stop.cancelled().await;
            self.campaign.withdraw();
            std::future::pending::<Infallible>().await
        };
        tokio::select! {
            biased;
            end = self.runner.run(leadership.term(), leadership) => end,
            never = withdrawing => match never {},
        }
    }

    /// What follows on the end of the work. Nothing if this node shall contend again.
    async fn conclude(&mut self, leadership: Leadership, end: End) -> Option<Finish> {
        let (lease, term) = (leadership.lease().clone(), leadership.number());
        let freed = freed(&leadership.term());
        self.current.store(None);
        let finish = match end {
            End::Done { led: true } => Some(Finish::Completed),
            End::RuntimeGone => Some(Finish::RuntimeGone),
            _ if self.stop.is_cancelled() => Some(Finish::Stopped),
            End::Failed { error, led } if led || leadership.tenure.is_stuck() => {
                let (_, pause) = self.failures.another();
                leadership.hold().abstain(pause);
                tracing::error!(%lease, term, action = "failed", error, ?pause, "the work failed; the lease is freed");
                None
            }
            End::Failed { error, .. } => {
                tracing::debug!(%lease, term, action = "ended", error, "the work ended by an error after the lease was lost");
                None
            }
            End::Done { led: false } | End::Aborted => None,
        };
        drop(leadership);
        if let Some(finish) = finish {
            tell(&lease, term, finish);
            self.campaign.withdraw();
            // Free in the store too, if it answers in time.
            let _ = freed.await;
        }
        finish
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
