//! How the store fares, so that each change of it is reported once.

use std::time::Duration;

use incumbent_core::Moment;
use incumbent_core::store::{Lane, StoreError};

use super::Driver;
use super::lanes::Landed;
use crate::driver::clock;
use crate::node::event::Event;
use crate::node::health::Failure;

/// For so long nothing may fail before a store is said to answer again. A full disk fails some
/// exchanges and not others, many times a second.
const CALM: Duration = Duration::from_secs(5);

/// A lane on which nothing has been asked since it failed says nothing about the store after so long.
const FORGOTTEN: Duration = Duration::from_secs(60);

const LANES: [Lane; 3] = [Lane::Beat, Lane::Change, Lane::Watch];

pub(super) struct LanesHealth {
    node: String,
    lanes: [LaneHealth; 3],
    last: Option<String>,
    /// What is told of the store as a whole, and when it failed last.
    failure: Option<(Failure, Moment)>,
}

/// How one lane fares.
#[derive(Clone, Copy, Default)]
struct LaneHealth {
    /// When an exchange failed last, if that was told and not taken back.
    failing: Option<Moment>,
    /// Whether the last exchange was answered.
    answered: bool,
}

impl LaneHealth {
    /// Takes in an outcome; says whether it is the first failure.
    fn outcome(&mut self, failed: bool, now: Moment) -> bool {
        self.answered = !failed;
        failed && self.failing.replace(now).is_none()
    }

    /// Whether it is time to say that the store answers again, which is said once.
    fn recovered(&mut self, now: Moment) -> bool {
        let calm = if self.answered { CALM } else { FORGOTTEN };
        self.failing.take_if(|failed| now.since(*failed) >= calm).is_some()
    }
}

impl LanesHealth {
    pub(super) fn new(node: &str) -> Self {
        Self { node: node.to_owned(), lanes: [LaneHealth::default(); 3], last: None, failure: None }
    }

    /// What the store said last, if it fails.
    pub(super) fn last(&self) -> Option<&str> {
        self.last.as_deref()
    }

    /// Since when the store is said to fail, and its last error.
    pub(super) fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref().map(|(failure, _)| failure)
    }

    /// Takes in an exchange; says what is to be told of the store as a whole.
    fn note(&mut self, landed: &Landed, now: Moment) -> Option<Event> {
        let latency = landed.latency.as_micros() as u64;
        let error = landed.answers.iter().find_map(|(_, answer)| answer.as_ref().err());
        let action = action(landed.lane);
        let node = self.node.as_str();
        let [beat, change, watch] = &mut self.lanes;
        let lane = match landed.lane {
            Lane::Beat => beat,
            Lane::Change => change,
            Lane::Watch => watch,
        };
        let first = lane.outcome(error.is_some(), now);
        match error {
            None => tracing::trace!(node, action, latency_us = latency, "the store answered"),
            Some(StoreError { kind, message }) if first => {
                tracing::warn!(node, action, latency_us = latency, ?kind, error = %message, "the store fails");
            }
            Some(StoreError { kind, message }) => {
                tracing::debug!(node, action, latency_us = latency, ?kind, error = %message, "the store still fails");
            }
        }
        // Looked at for all, because one lane may be idle for long.
        for (lane, health) in LANES.into_iter().zip(&mut self.lanes) {
            if health.recovered(now) {
                tracing::info!(node, action = self::action(lane), "the store answers again");
            }
        }
        match error {
            Some(error) => self.last = Some(error.message.clone()),
            None if self.lanes.iter().all(|lane| lane.answered || lane.failing.is_none()) => {
                self.last = None;
            }
            None => {}
        }
        self.overall(error.map(|error| error.message.as_str()), now)
    }

    /// All lanes together: the first to fail is told, and the last to recover.
    fn overall(&mut self, error: Option<&str>, now: Moment) -> Option<Event> {
        match (error, &mut self.failure) {
            (Some(error), Some((failure, last))) => {
                error.clone_into(&mut failure.error);
                *last = now;
                None
            }
            (Some(error), None) => {
                let error = error.to_owned();
                self.failure = Some((Failure { since: now, error: error.clone() }, now));
                Some(Event::StoreFails { error })
            }
            (None, _) if self.lanes.iter().any(|lane| lane.failing.is_some()) => None,
            (None, _) => {
                let (failure, last) = self.failure.take()?;
                Some(Event::StoreAnswers { after: last.since(failure.since) })
            }
        }
    }
}

impl Driver {
    /// Takes in how an exchange went, and tells who wants to know.
    pub(super) fn note_health(&mut self, landed: &Landed) {
        let event = self.health.note(landed, clock::now());
        if event.is_some() || landed.answers.iter().any(|(_, answer)| answer.is_err()) {
            self.shared.pulse.store(self.health.failure().cloned());
        }
        if let Some(event) = event {
            self.tell(event);
        }
    }
}

fn action(lane: Lane) -> &'static str {
    match lane {
        Lane::Beat => "beat",
        Lane::Change => "change",
        Lane::Watch => "watch",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn o32_a_store_that_fails_now_and_then_is_said_to_fail_once() {
        let mut lane = LaneHealth::default();
        let (mut failures, mut recoveries, mut now) = (0, 0, Moment::START);
        for step in 0..100 {
            now = now + Duration::from_millis(100);
            failures += usize::from(lane.outcome(step % 2 == 0, now));
            recoveries += usize::from(lane.recovered(now));
        }
        assert_eq!((failures, recoveries), (1, 0), "while it flaps");
        for _ in 0..100 {
            now = now + Duration::from_millis(100);
            failures += usize::from(lane.outcome(false, now));
            recoveries += usize::from(lane.recovered(now));
        }
        assert_eq!((failures, recoveries), (1, 1), "when it is well again");
        assert!(lane.outcome(true, now), "and the next failure is told");
    }

    fn landed(lane: Lane, error: Option<&str>) -> Landed {
        let answer = error.map_or_else(
            || Ok(incumbent_core::store::Reply::default()),
            |error| Err(StoreError::unavailable(error)),
        );
        let answers = vec![(incumbent_core::RequestId(1), answer)];
        Landed { lane, latency: Duration::ZERO, answers }
    }

    #[test]
    fn all_lanes_together_are_told_once_for_each_outage() {
        let mut health = LanesHealth::new("a");
        let at = |seconds: u64| Moment::from_nanos(seconds * 1_000_000_000);
        let error = |error: &str| Some(Event::StoreFails { error: error.to_owned() });
        assert_eq!(health.note(&landed(Lane::Beat, None), at(1)), None);
        assert_eq!(health.note(&landed(Lane::Beat, Some("away")), at(10)), error("away"));
        assert_eq!(health.note(&landed(Lane::Watch, Some("full")), at(12)), None);
        let failure = Failure { since: at(10), error: "full".to_owned() };
        assert_eq!(health.failure(), Some(&failure), "since the first, with the last error");
        assert_eq!(health.note(&landed(Lane::Watch, None), at(16)), None);
        assert_eq!(health.note(&landed(Lane::Watch, None), at(18)), None, "beats still fail");
        let after = Duration::from_secs(2);
        let answers = Some(Event::StoreAnswers { after });
        assert_eq!(health.note(&landed(Lane::Beat, None), at(19)), answers);
        assert_eq!(health.failure(), None);
        assert_eq!(health.note(&landed(Lane::Beat, Some("away")), at(20)), error("away"));
    }

    #[test]
    fn a_lane_that_is_not_used_any_more_does_not_keep_the_store_failing() {
        let mut health = LanesHealth::new("a");
        let at = |seconds: u64| Moment::from_nanos(seconds * 1_000_000_000);
        assert!(health.note(&landed(Lane::Watch, Some("away")), at(10)).is_some());
        assert_eq!(health.note(&landed(Lane::Beat, None), at(60)), None);
        let told = health.note(&landed(Lane::Beat, None), at(70));
        assert_eq!(told, Some(Event::StoreAnswers { after: Duration::ZERO }));
    }
}
