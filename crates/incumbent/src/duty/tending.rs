//! Tends one duty for as long as this node has it.

use std::sync::Arc;
use std::time::Duration;

use incumbent_duties::{DutyId, DutyStatus};

use super::{Duty, FamilyRuntime, OnDone};
use crate::driver::{clock, thread};
use crate::lead::End;
use crate::lead::failures::Failures;
use crate::lead::leadership::Leadership;

/// The course of one duty here: it is run, and run again after it ended, until it is told to stop. On the
/// thread of the runners.
pub(crate) struct Tending {
    pub(crate) family: Arc<FamilyRuntime>,
    pub(crate) duty: DutyId,
    /// The lease is freed when this is dropped.
    pub(crate) leadership: Leadership,
    /// How long it takes until the leader has heard of a failure: a report goes with a beat.
    pub(crate) heard_after: Duration,
    pub(crate) _counted: Counted,
}

impl Tending {
    pub(crate) async fn run(self) {
        let restart = self.family.restart;
        let mut failures = Failures::new(restart.first, restart.longest);
        loop {
            let began = clock::now();
            let duty = Duty::new(self.duty.clone(), self.leadership.anew(), &self.family);
            // It promises no progress until it has started.
            self.leadership.tenure.not_started();
            let end = self.family.runner.run(duty.clone(), &self.leadership).await;
            failures.ran(clock::now().since(began));
            let Some(pause) = self.conclude(end, &duty, &mut failures) else {
                // Nothing is left to do, and nobody else shall do it.
                self.leadership.lost().await;
                return;
            };
            tokio::select! {
                biased;
                _ = self.leadership.lost() => return,
                () = thread::sleep_until(clock::now() + pause) => {}
            }
        }
    }

    /// Says how the duty ended by itself; gives the pause before it is started again.
    fn conclude(&self, end: End, duty: &Duty, failures: &mut Failures) -> Option<Duration> {
        let error = match end {
            // It was told to stop.
            End::Done { led: false } | End::Failed { led: false, .. } | End::Aborted => {
                return None;
            }
            End::Done { led: true } => {
                failures.forget();
                return match self.family.restart.done {
                    OnDone::StayDown => {
                        tracing::info!(duty = %self.duty, term = duty.number(), action = "done", "the duty is done");
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
        let (times, pause) = failures.another();
        let gave_up = times >= self.family.restart.give_up;
        // If it ran again before that, nobody would hear that it should move (O57).
        let pause = if gave_up { pause.max(self.heard_after) } else { pause };
        tracing::error!(duty = %self.duty, term = duty.number(), action = "failed", error, times, gave_up, ?pause, "the duty failed");
        duty.tell(DutyStatus::Failing { times, error, gave_up });
        Some(pause)
    }
}

/// Counts a duty among those that this node has.
pub(crate) struct Counted(Arc<FamilyRuntime>);

impl Counted {
    pub(crate) fn new(family: Arc<FamilyRuntime>) -> Self {
        family.running.send_modify(|running| *running += 1);
        Self(family)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.running.send_modify(|running| *running = running.saturating_sub(1));
    }
}
