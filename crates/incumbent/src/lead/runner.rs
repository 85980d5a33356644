//! Runs work under a term, and sees to it that it ends.

use std::time::Duration;

use incumbent_core::records::Overdue;

use super::job::{End, Handed, Job, Running};
use crate::driver::mutant::{DriverMutant, planted};
use crate::driver::{clock, thread};
use crate::lead::candidacy::Overrun;
use crate::lead::leadership::Leadership;

/// How some work is run, that of a lease as well as a duty.
///
/// Runs on the thread of the runners, so that it acts in time even if all of the application's
/// workers are blocked, and the driver too. The work itself runs elsewhere.
pub(crate) struct Runner<H> {
    pub(crate) job: Box<dyn Job<H>>,
    pub(crate) grace: Duration,
    pub(crate) margin: Duration,
    pub(crate) overrun: Overrun,
    /// What is done about work past its grace period while trust lasts, where the cluster's leader
    /// places it.
    pub(crate) overdue: Option<Overdue>,
    /// How long the work may report no progress.
    pub(crate) watchdog: Option<Duration>,
}

impl<H: Handed> Runner<H> {
    /// Runs the work once, to its end. The lease isn't freed before that, unless it may overlap.
    pub(crate) async fn run(&self, handed: H, leadership: &Leadership) -> End {
        let mut running = self.job.start(handed.clone());
        tokio::select! {
            biased;
            end = &mut running.ended => return end,
            () = leadership.tenure.stuck(self.watchdog) => {
                return self.end_stuck(running, &handed, leadership).await;
            }
            _ = leadership.lost() => {}
        }
        if planted(DriverMutant::FreedWhenTold) {
            leadership.hold().release();
        }
        self.finish(running, &handed, leadership).await
    }

    /// The work reports no progress: it is ended at once, and has failed.
    async fn end_stuck(&self, mut running: Running, handed: &H, leadership: &Leadership) -> End {
        let (lease, term) = (leadership.lease(), leadership.number());
        let patience = self.watchdog.unwrap_or_default();
        let error = format!("it reported no progress for {patience:?}");
        tracing::error!(%lease, term, action = "stuck", ?patience, "the work reports no progress: it is ended");
        if self.abort(&mut running).await.is_none() {
            handed.stuck(&error);
            let told = tokio::select! {
                biased;
                _ = &mut running.ended => false,
                _ = leadership.lost() => true,
            };
            if told {
                self.finish(running, handed, leadership).await;
            }
        }
        End::Failed { error, led: leadership.is_held() }
    }

    /// The work is told to end: it does so by itself, or is aborted.
    async fn finish(&self, mut running: Running, handed: &H, leadership: &Leadership) -> End {
        // From when the work was told, which may have been a while ago if this thread stood still.
        let told = leadership.tenure.lost_at().filter(|_| !planted(DriverMutant::GraceFromNow));
        let patience = told.unwrap_or_else(clock::now) + handed.grace(self.grace);
        tokio::select! {
            biased;
            end = &mut running.ended => return end,
            () = thread::sleep_until(patience) => {}
            () = leadership.tenure.aborted() => {}
        }
        let (lease, term) = (leadership.lease(), leadership.number());
        tracing::warn!(%lease, term, action = "abort", "the work did not end by itself");
        match self.abort(&mut running).await {
            Some(end) => end,
            None => self.outlast(running, leadership).await,
        }
    }

    /// Aborts the work; nothing if it runs on.
    async fn abort(&self, running: &mut Running) -> Option<End> {
        let patience = if running.abort() { self.margin / 4 } else { Duration::ZERO };
        let patience = clock::now() + patience;
        tokio::select! {
            biased;
            end = &mut running.ended => Some(end),
            () = thread::sleep_until(patience) => None,
        }
    }

    /// The work can't be ended, and is waited for as far as that is wanted.
    async fn outlast(&self, mut running: Running, leadership: &Leadership) -> End {
        let (lease, term) = (leadership.lease().clone(), leadership.number());
        tracing::error!(%lease, term, action = "overrun", policy = ?self.overrun, overdue = ?self.overdue, "the work can't be ended and still runs");
        match self.overdue.filter(|_| !leadership.tenure.is_aborted()) {
            Some(Overdue::Overlap) => {
                leadership.hold().release();
                let _ = thread::spawn_runner(async move {
                    let _ = running.ended.as_mut().await;
                    tracing::warn!(%lease, term, action = "ended", "the work that overlapped has ended");
                });
                return End::Aborted;
            }
            Some(_) => tokio::select! {
                biased;
                end = &mut running.ended => return end,
                () = leadership.tenure.aborted() => {}
            },
            None => {}
        }
        match self.overrun {
            Overrun::Report => running.ended.as_mut().await,
            Overrun::AbortProcess => std::process::abort(),
        }
    }
}
