//! Closing one's own record after trust has ended and all work has stopped.
//!
//! ```text
//!            work stopped        sent              applied, or closed by others
//!  Working ──────────────▶ Due ───────▶ Waiting ──────────────────────────────────▶ Over
//!                           ▲              │ refused, or in doubt: read it back
//!                           └──────────────┘
//! ```

use crate::backoff::Backoff;
use crate::keys;
use crate::names::MemberId;
use crate::outbox::{Answered, Outbox, Purpose, first_read, first_write};
use crate::own::UpkeepKind;
use crate::pace;
use crate::random::Random;
use crate::records::{Content, MemberRecord, MemberState};
use crate::store::{ErrorKind, Expect, Found, Lane, Outcome, Read, Version};
use crate::time::Moment;

/// A former incarnation of this node, to be closed as Left if it can be: then its leases are
/// free at once instead of after its ttl. Never a reason to wait.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Farewell {
    id: MemberId,
    record: MemberRecord,
    version: Version,
    stage: FarewellStage,
    retry: Backoff,
    /// No use trying after this: others will have closed it.
    give_up: Moment,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum FarewellStage {
    /// Work under it still runs.
    Working,
    /// Something is to be sent at this moment; the flag says whether it is a read.
    Due(Moment, bool),
    Waiting,
    Over,
}

/// All former incarnations that are not closed yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Farewells(Vec<Farewell>);

impl Farewells {
    /// This incarnation is over, and nobody tries to close it after `give_up`.
    pub(crate) fn add(&mut self, record: MemberRecord, version: Version, give_up: Moment) {
        self.0.push(Farewell::new(record, version, give_up));
    }

    /// Lets those go whose work has stopped.
    pub(crate) fn release(&mut self, now: Moment, works: impl Fn(&MemberId) -> bool) {
        let working = self.0.iter_mut().filter(|farewell| farewell.is_working());
        working.filter(|farewell| !works(&farewell.id)).for_each(|it| it.stopped(now));
    }

    pub(crate) fn poll(&mut self, now: Moment, outbox: &mut Outbox) {
        self.0.iter_mut().for_each(|farewell| farewell.poll(now, outbox));
        self.0.retain(|farewell| !farewell.is_over(now));
    }

    pub(crate) fn replied(
        &mut self,
        now: Moment,
        id: &MemberId,
        asked: UpkeepKind,
        answer: Answered<'_>,
        random: &mut Random,
    ) {
        let Some(farewell) = self.0.iter_mut().find(|farewell| farewell.id == *id) else { return };
        match asked {
            UpkeepKind::Write => farewell.closed(now, first_write(answer), random),
            UpkeepKind::Read => farewell.read(now, first_read(answer), random),
        }
    }

    pub(crate) fn wake_at(&self) -> Moment {
        self.0.iter().map(Farewell::wake_at).min().unwrap_or(Moment::NEVER)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn has(&self, id: &MemberId) -> bool {
        self.0.iter().any(|farewell| farewell.id == *id)
    }
}

impl Farewell {
    fn new(record: MemberRecord, version: Version, give_up: Moment) -> Self {
        let retry = Backoff::new(pace::FAILURE.0, pace::FAILURE.1);
        Self {
            id: record.id.clone(),
            record,
            version,
            stage: FarewellStage::Working,
            retry,
            give_up,
        }
    }

    /// All work under it has stopped.
    fn stopped(&mut self, now: Moment) {
        if self.stage == FarewellStage::Working {
            self.stage = FarewellStage::Due(now, false);
        }
    }

    fn is_working(&self) -> bool {
        self.stage == FarewellStage::Working
    }

    /// Whether nothing more will be tried.
    fn is_over(&self, now: Moment) -> bool {
        self.stage == FarewellStage::Over
            || (self.stage != FarewellStage::Working && now >= self.give_up)
    }

    fn wake_at(&self) -> Moment {
        match self.stage {
            FarewellStage::Due(at, _) => at.min(self.give_up),
            FarewellStage::Waiting => self.give_up,
            FarewellStage::Working | FarewellStage::Over => Moment::NEVER,
        }
    }

    fn poll(&mut self, now: Moment, outbox: &mut Outbox) {
        let FarewellStage::Due(at, reading) = self.stage else { return };
        if now < at {
            return;
        }
        self.stage = FarewellStage::Waiting;
        let key = keys::member(&self.id);
        if reading {
            let reads = vec![Read::Key { key, unless: None }];
            let purpose = Purpose::Farewell(self.id.clone(), UpkeepKind::Read);
            return outbox.ask(now, Lane::Change, reads, purpose);
        }
        let expect = Expect::Version(self.version.clone());
        let record = self.record.closed(MemberState::Left);
        let put = outbox.put(key, expect, record.bytes(), true).durable(!record.state.is_final());
        outbox.write(now, vec![put], Purpose::Farewell(self.id.clone(), UpkeepKind::Write));
    }

    fn closed(&mut self, now: Moment, outcome: Result<&Outcome, ErrorKind>, random: &mut Random) {
        self.stage = match outcome {
            Ok(Outcome::Applied(_) | Outcome::Deleted) => FarewellStage::Over,
            Ok(Outcome::Refused) => FarewellStage::Due(now, true),
            Err(_) => FarewellStage::Due(now + self.retry.pause(random), true),
        };
    }

    fn read(&mut self, now: Moment, found: Result<&Found, ErrorKind>, random: &mut Random) {
        self.stage = match found {
            Err(_) => FarewellStage::Due(now + self.retry.pause(random), true),
            Ok(Found::Record(stored)) => match MemberRecord::read(stored) {
                // An evicted member that has stopped may say so: its leases needn't wait.
                Ok(record) if matches!(record.state, MemberState::Alive | MemberState::Evicted) => {
                    self.record = record;
                    self.version = stored.version.clone();
                    FarewellStage::Due(now + self.retry.pause(random), false)
                }
                Ok(_) | Err(_) => FarewellStage::Over,
            },
            Ok(_) => FarewellStage::Over,
        };
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::store::{Reply, Write};

    #[test]
    fn nobody_is_closed_before_its_work_has_stopped_and_doubts_are_read_back() {
        let (id, ttl) = (MemberId::new("m"), Duration::from_secs(3));
        let (mut farewells, mut random) = (Farewells::default(), Random::new(1));
        let mut outbox = Outbox::new(1, ttl);
        let record = MemberRecord::joining(id.clone(), ttl, ttl / 3);
        farewells.add(record, Version::new("1"), Moment::START + ttl * 2);
        farewells.release(Moment::START, |_| true);
        farewells.poll(Moment::START, &mut outbox);
        assert!(outbox.next_request().is_none(), "work still runs");
        farewells.release(Moment::START, |_| false);
        farewells.poll(Moment::START, &mut outbox);
        let request = outbox.next_request().unwrap();
        assert!(matches!(&request.exchange.writes[..], [Write::Put(put)] if put.hint));
        let doubt = Err(ErrorKind::Unknown);
        farewells.replied(Moment::START, &id, UpkeepKind::Write, doubt, &mut random);
        let at = farewells.wake_at();
        farewells.poll(at, &mut outbox);
        assert!(outbox.next_request().unwrap().exchange.writes.is_empty(), "it is read first");
        let gone = Reply { writes: Vec::new(), reads: vec![Found::Absent] };
        farewells.replied(at, &id, UpkeepKind::Read, Ok(&gone), &mut random);
        farewells.poll(at, &mut outbox);
        assert!(farewells.is_empty());
    }
}
