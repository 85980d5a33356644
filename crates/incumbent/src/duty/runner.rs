//! Runs one duty for as long as this node has it.

use std::sync::Arc;
use std::time::Duration;

use incumbent_core::backoff::Backoff;
use incumbent_core::random::Random;
use incumbent_core::records::Overdue;
use incumbent_duties::{DutyId, DutyStatus};

use super::{Duty, OnDone, Staff};
use crate::driver::{clock, seed, thread};
use crate::lead::candidacy::Overrun;
use crate::lead::hold::Hold;
use crate::lead::term::Term;
use crate::lead::{End, Running};

/// Runs on the thread of the runners, so that it acts in time even if all of the application's
/// workers are blocked, and the driver too. The work itself runs elsewhere.
pub(crate) struct DutyRunner {
    pub(crate) staff: Arc<Staff>,
    pub(crate) duty: DutyId,
    pub(crate) term: Term,
    /// The lease is freed when this is dropped.
    pub(crate) hold: Arc<Hold>,
    pub(crate) margin: Duration,
    /// How long it takes until the leader has heard of a failure: a report goes with a beat.
    pub(crate) heard_after: Duration,
    pub(crate) _running: Counted,
}

/// Failures in a row, and how long to wait after each.
struct Failures {
    times: u32,
    backoff: Backoff,
    random: Random,
}

impl DutyRunner {
    pub(crate) async fn run(self) {
        // What others run under the duty's term ends with it.
        let _closes = self.term.scope.close_on_drop();
        let restart = self.staff.restart;
        let mut failures = Failures {
            times: 0,
            backoff: Backoff::new(restart.first, restart.longest),
            random: Random::new(seed::draw()),
        };
        loop {
            let began = clock::now();
            let duty = Duty::new(self.duty.clone(), self.term.anew(), &self.staff);
            self.hold.tenure.not_started();
            let mut run = self.staff.job.start(duty.clone());
            let end = tokio::select! {
                biased;
                end = &mut run.ended => end,
                () = self.hold.tenure.stuck(self.staff.watchdog) => {
                    match self.end_stuck(&mut run, &duty).await {
                        Some(end) => end,
                        None => {
                            self.finish(run, &duty).await;
                            return;
                        }
                    }
                }
                _ = self.hold.tenure.ended() => {
                    self.finish(run, &duty).await;
                    return;
                }
            };
            if clock::now().since(began) > restart.longest {
                failures.times = 0;
                failures.backoff.reset();
            }
            let Some(pause) = self.conclude(end, &duty, &mut failures) else {
                // Nothing is left to do, and nobody else shall do it.
                self.hold.tenure.ended().await;
                return;
            };
            tokio::select! {
                biased;
                _ = self.hold.tenure.ended() => return,
                () = thread::sleep_until(clock::now() + pause) => {}
            }
        }
    }

    /// The duty reports no progress: it is ended at once, and failed. Nothing if it can't be ended before it is
    /// told to stop: another node shall have it.
    async fn end_stuck(&self, run: &mut Running, duty: &Duty) -> Option<End> {
        let patience = self.staff.watchdog.unwrap_or_default();
        let error = format!("it reported no progress for {patience:?}");
        tracing::error!(duty = %self.duty, term = self.term.number(), action = "stuck", ?patience, "the duty reports no progress: it is ended");
        run.abort();
        let soon = clock::now() + self.margin / 4;
        tokio::select! {
            biased;
            _ = &mut run.ended => return Some(End::Failed { error, led: true }),
            () = thread::sleep_until(soon) => {}
        }
        duty.tell(DutyStatus::Failing {
            times: self.staff.restart.give_up,
            error: error.clone(),
            gave_up: true,
        });
        tokio::select! {
            biased;
            _ = &mut run.ended => Some(End::Failed { error, led: true }),
            _ = self.hold.tenure.ended() => None,
        }
    }

    /// Says how the duty ended by itself; gives the pause before it is started again.
    fn conclude(&self, end: End, duty: &Duty, failures: &mut Failures) -> Option<Duration> {
        let error = match end {
            // Without the lease it is only told to stop, and the next wait ends at once.
            End::Done { led: false } | End::Failed { led: false, .. } | End::Aborted => {
                return None;
            }
            End::Done { led: true } => {
                failures.times = 0;
                failures.backoff.reset();
                return match self.staff.restart.done {
                    OnDone::StayDown => {
                        tracing::info!(duty = %self.duty, term = self.term.number(), action = "done", "the duty is done");
                        duty.tell(DutyStatus::Done);
                        None
                    }
                    OnDone::RestartAfter(pause) => Some(pause),
                };
            }
            End::Failed { error, led: true } => error,
            End::RuntimeGone => {
                let error = "the runtime on which it ran was shut down".to_owned();
                duty.tell(DutyStatus::Failing { times: 1, error, gave_up: true });
                return None;
            }
        };
        failures.times = failures.times.saturating_add(1);
        let (times, pause) = (failures.times, failures.backoff.pause(&mut failures.random));
        let gave_up = times >= self.staff.restart.give_up;
        // If it ran again before that, nobody would hear that it should move (O57).
        let pause = if gave_up { pause.max(self.heard_after) } else { pause };
        tracing::error!(duty = %self.duty, term = self.term.number(), action = "failed", error, times, gave_up, ?pause, "the duty failed");
        duty.tell(DutyStatus::Failing { times, error, gave_up });
        Some(pause)
    }

    /// The duty is told to stop: it ends by itself, or is aborted.
    async fn finish(self, mut run: Running, duty: &Duty) {
        let told = self.hold.tenure.lost_at().unwrap_or_else(clock::now);
        // A start that has not come to its end is not worth waiting for.
        let patience = if duty.is_ready() { told + self.staff.grace } else { told };
        tokio::select! {
            biased;
            _ = &mut run.ended => return,
            () = thread::sleep_until(patience) => {}
            () = self.hold.tenure.aborted() => {}
        }
        tracing::warn!(duty = %self.duty, term = self.term.number(), action = "abort", "the duty did not stop by itself");
        if run.abort() {
            tokio::select! {
                biased;
                _ = &mut run.ended => return,
                () = thread::sleep_until(clock::now() + self.margin / 4) => {}
            }
        }
        self.overrun(run).await;
    }

    /// The work can't be aborted.
    async fn overrun(self, mut run: Running) {
        let policy = self.staff.overdue();
        let (duty, term) = (self.duty.clone(), self.term.number());
        tracing::error!(%duty, term, action = "overrun", ?policy, "the duty can't be ended and still runs");
        if !self.hold.tenure.is_aborted() {
            if policy == Overdue::Overlap {
                self.hold.release();
                drop(self);
                let _ = (&mut run.ended).await;
                tracing::warn!(%duty, term, action = "ended", "the duty that overlapped has ended");
                return;
            }
            tokio::select! {
                biased;
                _ = &mut run.ended => return,
                () = self.hold.tenure.aborted() => {}
            }
        }
        match self.staff.overrun {
            Overrun::Report => {
                let _ = (&mut run.ended).await;
            }
            Overrun::AbortProcess => std::process::abort(),
        }
    }
}

/// Counts a duty among those that this node has.
pub(crate) struct Counted(Arc<Staff>);

impl Counted {
    pub(crate) fn new(staff: Arc<Staff>) -> Self {
        staff.running.send_modify(|running| *running += 1);
        Self(staff)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.running.send_modify(|running| *running = running.saturating_sub(1));
    }
}
