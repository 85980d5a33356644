//! Whether a job is due: a pure function of the schedule, the last tick that is done, and the time.

use std::time::Duration;

use incumbent_core::random::Random;

use super::schedule::{CatchUp, Schedule};

/// What a leader has to do. All times are milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// Run this tick now.
    Run { tick: u64 },
    /// Wait until then, and look again.
    Wait { until: u64 },
    /// There will be no tick any more.
    Never,
}

impl Schedule {
    /// What is due if all ticks up to `done` are, and this is the time. The seed is the job's own.
    ///
    /// A tick up to `done` is never due again, whatever this clock says: that is what keeps a
    /// leader whose clock is behind from running what another has done.
    pub(super) fn due(&self, seed: u64, done: u64, now: u64) -> Due {
        let most = match self.catch_up {
            CatchUp::Latest | CatchUp::Skip { .. } => 1,
            CatchUp::Each { most } => most,
        };
        if let Some(tick) = self.ticks.recent(done, now, most).first().copied() {
            let start = self.start(seed, tick);
            let late = match self.catch_up {
                CatchUp::Latest | CatchUp::Each { .. } => false,
                CatchUp::Skip { after } => Duration::from_millis(now.saturating_sub(start)) > after,
            };
            if start > now {
                return Due::Wait { until: start };
            }
            if !late {
                return Due::Run { tick };
            }
        }
        match self.ticks.next(done.max(now)) {
            Some(tick) => Due::Wait { until: self.start(seed, tick) },
            None => Due::Never,
        }
    }

    /// When a tick starts.
    fn start(&self, seed: u64, tick: u64) -> u64 {
        let most = u64::try_from(self.jitter.as_millis()).unwrap_or(u64::MAX);
        if most == 0 {
            return tick;
        }
        // Before the next tick in any case, so that none is kept from running by the next.
        let room = self.ticks.next(tick).map_or(most, |next| (next - tick) / 2);
        tick + Random::new(seed ^ tick).below(most.min(room).saturating_add(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: u64 = 60_000;

    fn schedule() -> Schedule {
        Schedule::every(Duration::from_millis(MINUTE))
    }

    #[test]
    fn each_tick_is_due_once() {
        let schedule = schedule();
        assert_eq!(schedule.due(1, 0, 30_000), Due::Wait { until: MINUTE });
        assert_eq!(schedule.due(1, 0, MINUTE), Due::Run { tick: MINUTE });
        assert_eq!(schedule.due(1, MINUTE, MINUTE), Due::Wait { until: 2 * MINUTE });
        assert_eq!(schedule.due(1, MINUTE, 2 * MINUTE - 1), Due::Wait { until: 2 * MINUTE });
    }

    #[test]
    fn a_clock_that_is_behind_runs_nothing_again() {
        let schedule = schedule();
        for now in [0, 3 * MINUTE, 5 * MINUTE - 1, 5 * MINUTE] {
            assert_eq!(schedule.due(1, 5 * MINUTE, now), Due::Wait { until: 6 * MINUTE });
        }
    }

    #[test]
    fn policies_say_what_becomes_of_missed_ticks() {
        let now = 10 * MINUTE + 20_000;
        let due = |catch_up, done| schedule().catch_up(catch_up).due(1, done, now);
        assert_eq!(due(CatchUp::Latest, 3 * MINUTE), Due::Run { tick: 10 * MINUTE });
        assert_eq!(due(CatchUp::Each { most: 100 }, 3 * MINUTE), Due::Run { tick: 4 * MINUTE });
        assert_eq!(due(CatchUp::Each { most: 2 }, 3 * MINUTE), Due::Run { tick: 9 * MINUTE });
        assert_eq!(due(CatchUp::Each { most: 0 }, 3 * MINUTE), Due::Run { tick: 10 * MINUTE });
        let skip = |seconds| CatchUp::Skip { after: Duration::from_secs(seconds) };
        assert_eq!(due(skip(30), 3 * MINUTE), Due::Run { tick: 10 * MINUTE });
        assert_eq!(due(skip(10), 3 * MINUTE), Due::Wait { until: 11 * MINUTE });
    }

    #[test]
    fn jitter_is_the_same_everywhere_and_leaves_room() {
        let schedule = schedule().jitter(Duration::from_secs(3600));
        let mut starts = Vec::new();
        for minute in 1..100 {
            let tick = minute * MINUTE;
            let Due::Wait { until } = schedule.due(7, tick - 1, tick - 1) else { panic!("early") };
            assert!((tick..=tick + MINUTE / 2).contains(&until), "{until}");
            let before = Due::Wait { until };
            assert!(until == tick || schedule.due(7, tick - 1, until - 1) == before);
            assert_eq!(schedule.due(7, tick - 1, until), Due::Run { tick });
            starts.push(until - tick);
        }
        starts.sort_unstable();
        starts.dedup();
        assert!(starts.len() > 50, "they are spread: {starts:?}");
    }
}
