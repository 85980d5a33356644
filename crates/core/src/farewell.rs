//! Closing one's own record after trust has ended and all work has stopped.

use std::time::Duration;

use crate::backoff::Backoff;
use crate::names::MemberId;
use crate::random::Random;
use crate::records::{Content, MemberRecord, MemberState};
use crate::store::{ErrorKind, Found, Outcome, Version};
use crate::time::Moment;

/// A former incarnation of this node, to be closed as Left if it can be: then its leases are
/// free at once instead of after its ttl. Never a reason to wait.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Farewell {
    pub(crate) id: MemberId,
    record: MemberRecord,
    version: Version,
    stage: Stage,
    retry: Backoff,
    /// No use trying after this: others will have closed it.
    give_up: Moment,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stage {
    /// Work under it still runs.
    Working,
    /// Something is to be sent at this moment; the flag says whether it is a read.
    Due(Moment, bool),
    Waiting,
    Over,
}

/// What is to be sent.
pub(crate) enum Step {
    Close(MemberRecord, Version),
    Read,
}

impl Farewell {
    pub(crate) fn new(record: MemberRecord, version: Version, give_up: Moment) -> Self {
        let retry = Backoff::new(Duration::from_millis(50), Duration::from_secs(1));
        Self { id: record.id.clone(), record, version, stage: Stage::Working, retry, give_up }
    }

    /// All work under it has stopped.
    pub(crate) fn stopped(&mut self, now: Moment) {
        if self.stage == Stage::Working {
            self.stage = Stage::Due(now, false);
        }
    }

    pub(crate) fn is_working(&self) -> bool {
        self.stage == Stage::Working
    }

    /// Whether nothing more will be tried.
    pub(crate) fn is_over(&self, now: Moment) -> bool {
        self.stage == Stage::Over || (self.stage != Stage::Working && now >= self.give_up)
    }

    pub(crate) fn wake_at(&self) -> Moment {
        match self.stage {
            Stage::Due(at, _) => at.min(self.give_up),
            Stage::Waiting => self.give_up,
            Stage::Working | Stage::Over => Moment::NEVER,
        }
    }

    pub(crate) fn step(&mut self, now: Moment) -> Option<Step> {
        let Stage::Due(at, reading) = self.stage else { return None };
        if now < at {
            return None;
        }
        self.stage = Stage::Waiting;
        Some(if reading {
            Step::Read
        } else {
            Step::Close(self.record.closed(MemberState::Left), self.version.clone())
        })
    }

    pub(crate) fn closed(
        &mut self,
        now: Moment,
        outcome: Result<&Outcome, ErrorKind>,
        random: &mut Random,
    ) {
        self.stage = match outcome {
            Ok(Outcome::Applied(_) | Outcome::Deleted) => Stage::Over,
            Ok(Outcome::Refused) => Stage::Due(now, true),
            Err(_) => Stage::Due(now + self.retry.pause(random), true),
        };
    }

    pub(crate) fn read(
        &mut self,
        now: Moment,
        found: Result<&Found, ErrorKind>,
        random: &mut Random,
    ) {
        self.stage = match found {
            Err(_) => Stage::Due(now + self.retry.pause(random), true),
            Ok(Found::Record(stored)) => match MemberRecord::read(stored) {
                // An evicted member that has stopped may say so: its leases needn't wait.
                Ok(record) if matches!(record.state, MemberState::Alive | MemberState::Evicted) => {
                    self.record = record;
                    self.version = stored.version.clone();
                    Stage::Due(now + self.retry.pause(random), false)
                }
                Ok(_) | Err(_) => Stage::Over,
            },
            Ok(_) => Stage::Over,
        };
    }
}
