//! One incarnation of a node: its record, its beats and the trust that follows from them.
//!
//! ```text
//!         sent            applied             ┌── beat applied: trust until sent + ttl − margin
//!  Fresh ─────▶ Creating ─────────▶ Alive ◀───┘
//!                  │                 │ │
//!                  │ refused, or     │ └── beat refused: read back ── ours after all ──▶ Alive
//!                  │ in doubt        │                                 └ closed or gone ─▶ Ended
//!                  ▼                 └── trust ran out ──▶ Ended
//!          abandoned: the id is never used
//! ```
//!
//! A beat in doubt stretches no trust, unless a later read shows that it was applied. Who has ended
//! says farewell once its work has stopped, and the node joins again under a new id.

use std::time::Duration;

use crate::backoff::Backoff;
use crate::mutant::{Mutant, Planted, fault};
use crate::names::MemberId;
use crate::random::Random;
use crate::records::{Content, MemberRecord, MemberState};
use crate::settings::Timing;
use crate::store::{ErrorKind, Expect, Found, Outcome, Version};
use crate::time::Moment;

/// Why an incarnation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ending {
    /// Its trust ran out before a beat got through: whether others closed it can't be told.
    TrustRanOut,
    /// Others closed it.
    Closed(MemberState),
    /// Its record is gone, unreadable or not ours: the store was wiped, restored or tampered
    /// with.
    Vanished,
    /// It was asked to leave.
    Left,
}

/// What the member wants done now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MemberStep {
    /// Create the record.
    Create(MemberRecord),
    /// Beat.
    Beat(MemberRecord, Expect),
    /// Read the record back, because a beat was refused.
    ReadBack,
    /// Trust is over.
    End(Ending),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Membership {
    pub(crate) id: MemberId,
    stage: Life,
    /// Trust ends here. Every question compares the clock with it when asked.
    until: Moment,
    /// When this incarnation became alive.
    pub(crate) since: Moment,
    retry: Backoff,
    /// Counts attempts, retries included.
    attempts: u64,
    /// How often its profile and its report changed and its leases were freed, as the next beat says.
    changes: Changes,
    /// Creations that may still land, which only a planted mistake has.
    doubtful: Vec<BeatAttempt>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Life {
    /// To be created at this moment.
    Fresh(Moment),
    /// The creation was sent.
    Creating(BeatAttempt),
    Alive(Alive),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Alive {
    /// As the last acknowledged beat left it.
    version: Version,
    /// When something is to be sent.
    due: Moment,
    /// A beat or a read-back is on its way.
    waiting: bool,
    /// A beat was refused: read before anything else.
    refused: bool,
    /// Beats that may have been applied, or may still be.
    unsettled: Vec<BeatAttempt>,
    /// The beat on its way.
    sending: Option<BeatAttempt>,
    acknowledged: u64,
}

/// How often what a member says about itself has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Changes {
    pub(crate) profile: u64,
    pub(crate) report: u64,
    freed: u64,
    /// The next beat goes out at once, and with a hint.
    urgent: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct BeatAttempt {
    number: u64,
    sent: Moment,
    interval: Duration,
}

impl Membership {
    /// An incarnation that will be created at `at`.
    pub(crate) fn new(id: MemberId, timing: &Timing, at: Moment) -> Self {
        Self {
            id,
            stage: Life::Fresh(at),
            until: Moment::START,
            since: at,
            // Quick to the end: what is left when an outage is over decides whether it cost anything.
            retry: Backoff::new(timing.ttl / 60, timing.ttl / 30),
            attempts: 0,
            changes: Changes { freed: 1, ..Changes::default() },
            doubtful: Vec::new(),
        }
    }

    /// Until when this member may believe that it is alive.
    pub(crate) fn until(&self) -> Moment {
        self.until
    }

    /// Whether its creation was acknowledged.
    pub(crate) fn is_alive(&self) -> bool {
        matches!(self.stage, Life::Alive(_))
    }

    /// Whether it may believe that it is alive.
    pub(crate) fn is_trusted(&self, now: Moment) -> bool {
        self.is_alive() && now < self.until
    }

    /// Whether a beat or read-back is on its way.
    pub(crate) fn is_waiting(&self) -> bool {
        matches!(&self.stage, Life::Alive(alive) if alive.waiting)
    }

    /// The version to expect when closing it, once it is alive.
    pub(crate) fn version(&self) -> Option<&Version> {
        match &self.stage {
            Life::Alive(alive) => Some(&alive.version),
            Life::Fresh(_) | Life::Creating(_) => None,
        }
    }

    /// When [`Self::step`] has something to do.
    pub(crate) fn wake_at(&self, planted: Planted) -> Moment {
        match &self.stage {
            Life::Fresh(at) => *at,
            Life::Creating(_) => Moment::NEVER,
            Life::Alive(alive) => {
                let due = if alive.waiting { Moment::NEVER } else { alive.due };
                fault!(planted, CreateRetriedAndBeatsOn => due, self.until.min(due))
            }
        }
    }

    /// What is to be done now, if anything.
    pub(crate) fn step(
        &mut self,
        now: Moment,
        timing: &Timing,
        random: &mut Random,
        planted: Planted,
    ) -> Option<MemberStep> {
        if let Some(ending) = self.ended(now, planted) {
            return Some(MemberStep::End(ending));
        }
        match &mut self.stage {
            Life::Fresh(at) if now >= *at => {
                let attempt = attempt(&mut self.attempts, now, timing, random);
                let record = self.record(&attempt, timing);
                self.stage = Life::Creating(attempt);
                Some(MemberStep::Create(record))
            }
            Life::Alive(alive) if !alive.waiting && now >= alive.due => {
                alive.waiting = true;
                if alive.refused {
                    return Some(MemberStep::ReadBack);
                }
                let expect = Expect::Version(alive.version.clone());
                let attempt = attempt(&mut self.attempts, now, timing, random);
                alive.sending = Some(attempt.clone());
                let mut record = self.record(&attempt, timing);
                record.ttl_ms /= fault!(planted, TtlChangesInMidLife => 2, 1);
                Some(MemberStep::Beat(record, expect))
            }
            Life::Fresh(_) | Life::Creating(_) | Life::Alive(_) => None,
        }
    }

    /// Says in the next beat how often the profile changed; that beat doesn't wait to be due.
    pub(crate) fn tell_profile(&mut self, now: Moment, changes: u64) {
        if self.changes.profile < changes {
            // The leader looks for the first by itself.
            let first = std::mem::replace(&mut self.changes.profile, changes) == 0 && changes == 1;
            if first {
                return;
            }
            self.beat_soon(now);
        }
    }

    /// Says in the next beat how often the report changed.
    pub(crate) fn tell_report(&mut self, changes: u64) {
        self.changes.report = self.changes.report.max(changes);
    }

    #[cfg(test)]
    pub(crate) fn freed(&self) -> u64 {
        self.changes.freed
    }

    /// Says in the next beat that a lease was freed; if `soon`, that beat doesn't wait to be due.
    pub(crate) fn tell_freed(&mut self, now: Moment, soon: bool) {
        self.changes.freed += 1;
        if soon {
            self.beat_soon(now);
        }
    }

    /// Has a beat sent at once, after the one on its way if there is one.
    pub(crate) fn beat_soon(&mut self, now: Moment) {
        self.changes.urgent = true;
        if let Life::Alive(alive) = &mut self.stage
            && !alive.refused
        {
            alive.due = alive.due.min(now);
        }
    }

    /// The number of the last beat that was sent.
    pub(crate) fn attempts(&self) -> u64 {
        self.attempts
    }

    /// The number of the last beat that is known to have been applied.
    pub(crate) fn acknowledged(&self) -> u64 {
        match &self.stage {
            Life::Alive(alive) => alive.acknowledged,
            Life::Fresh(_) | Life::Creating(_) => 0,
        }
    }

    /// Whether the beat on its way is worth a hint; asked once.
    pub(crate) fn take_urgency(&mut self) -> bool {
        std::mem::take(&mut self.changes.urgent)
    }

    fn ended(&self, now: Moment, planted: Planted) -> Option<Ending> {
        let over = self.is_alive() && now >= self.until;
        let over = fault!(planted, CreateRetriedAndBeatsOn => false, over);
        over.then_some(Ending::TrustRanOut)
    }

    fn record(&self, attempt: &BeatAttempt, timing: &Timing) -> MemberRecord {
        let mut record = MemberRecord::joining(self.id.clone(), timing.ttl, attempt.interval);
        record.beat = attempt.number;
        record.profile = self.changes.profile;
        record.report = self.changes.report;
        record.freed = self.changes.freed;
        record
    }

    /// The last record that this member may have written, in another state.
    pub(crate) fn closing(&self, timing: &Timing) -> MemberRecord {
        let mut record = MemberRecord::joining(self.id.clone(), timing.ttl, timing.beat);
        record.beat = self.attempts;
        record.closed(MemberState::Left)
    }

    /// Takes in what became of the creation; false means that the id is to be abandoned.
    pub(crate) fn created(
        &mut self,
        now: Moment,
        outcome: Result<&Outcome, ErrorKind>,
        timing: &Timing,
        planted: Planted,
    ) -> bool {
        let Life::Creating(attempt) = &self.stage else { return true };
        let Ok(Outcome::Applied(version)) = outcome else { return false };
        let from = fault!(planted, TrustFromReply => now, attempt.sent);
        self.until = trust_from(from, timing, planted);
        self.since = now;
        self.stage = Life::Alive(Alive {
            version: version.clone(),
            due: attempt.sent + attempt.interval,
            waiting: false,
            refused: false,
            unsettled: std::mem::take(&mut self.doubtful),
            sending: None,
            acknowledged: attempt.number,
        });
        self.is_trusted(now)
    }

    /// Sends the creation again under the same id, which only a planted mistake does.
    pub(crate) fn create_again(&mut self, at: Moment) {
        if let Life::Creating(attempt) = std::mem::replace(&mut self.stage, Life::Fresh(at)) {
            self.doubtful.push(attempt);
        }
    }

    /// Takes in what became of a beat.
    pub(crate) fn beaten(
        &mut self,
        now: Moment,
        outcome: Result<&Outcome, ErrorKind>,
        timing: &Timing,
        random: &mut Random,
        planted: Planted,
    ) {
        let Life::Alive(alive) = &mut self.stage else { return };
        let Some(attempt) = alive.sending.take() else { return };
        alive.waiting = false;
        match outcome {
            Ok(Outcome::Applied(version)) => {
                alive.version = version.clone();
                // What changed while the beat was on its way is not in it.
                let due = attempt.sent + attempt.interval;
                alive.due = if self.changes.urgent { now } else { due };
                alive.unsettled.clear();
                alive.acknowledged = attempt.number;
                let from = fault!(planted, TrustFromReply => now, attempt.sent);
                self.until = self.until.max(trust_from(from, timing, planted));
                self.retry.reset();
            }
            Ok(Outcome::Refused | Outcome::Deleted) => {
                alive.refused = true;
                alive.due = now;
            }
            Err(kind) => {
                if kind == ErrorKind::Unknown {
                    alive.unsettled.push(attempt);
                }
                alive.due = now + self.retry.pause(random);
            }
        }
    }

    /// Takes in the record as it is now, after a beat was refused. An ending means that trust
    /// is over at once.
    pub(crate) fn read_back(
        &mut self,
        now: Moment,
        found: Result<&Found, ErrorKind>,
        timing: &Timing,
        random: &mut Random,
        planted: Planted,
    ) -> Option<Ending> {
        let Life::Alive(alive) = &mut self.stage else { return None };
        alive.waiting = false;
        let Ok(found) = found else {
            alive.due = now + self.retry.pause(random);
            return None;
        };
        let Found::Record(stored) = found else { return Some(Ending::Vanished) };
        let Ok(record) = MemberRecord::read(stored) else { return Some(Ending::Vanished) };
        if record.state != MemberState::Alive && record.beat < alive.acknowledged {
            // Others made it anew, because the store had forgotten it.
            return Some(Ending::Vanished);
        }
        if record.state != MemberState::Alive {
            if planted.is(Mutant::BeatOverClosed) {
                alive.version = stored.version.clone();
                alive.refused = false;
                return None;
            }
            return Some(Ending::Closed(record.state));
        }
        alive.refused = false;
        if stored.version == alive.version && record.beat == alive.acknowledged {
            // Refused for another reason, such as a lock: nothing changed.
            alive.due = now + self.retry.pause(random);
            return None;
        }
        // Only an attempt of our own may be there, and it gives its own send's trust.
        let own = alive.unsettled.iter().find(|attempt| attempt.number == record.beat).cloned();
        let Some(own) = own else { return Some(Ending::Vanished) };
        alive.version = stored.version.clone();
        alive.acknowledged = own.number;
        alive.due = own.sent + own.interval;
        alive.unsettled.clear();
        self.retry.reset();
        let from = fault!(planted, SettledBeatTrustsFromRead => now, own.sent);
        self.until = self.until.max(trust_from(from, timing, planted));
        None
    }
}

fn trust_from(sent: Moment, timing: &Timing, planted: Planted) -> Moment {
    sent + fault!(planted, NoMargin => timing.ttl, timing.trust())
}

fn attempt(attempts: &mut u64, now: Moment, timing: &Timing, random: &mut Random) -> BeatAttempt {
    *attempts += 1;
    let interval = timing.rhythm.interval(now, timing.beat, random);
    // The record announces whole milliseconds, and the next beat keeps to what was announced.
    let interval = Duration::from_millis(interval.as_millis().max(1) as u64);
    BeatAttempt { number: *attempts, sent: now, interval }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Record;

    /// O20: beats fall due after 0.37 ttl at most, and trust ends at 0.9.
    #[test]
    fn an_outage_of_two_fifths_of_the_ttl_is_over_in_time_for_the_next_beat() {
        let planted = Planted::default();
        let timing = Timing::for_ttl(Duration::from_secs(15));
        let version = Outcome::Applied(Version::new("1"));
        for seed in 0..500 {
            let mut random = Random::new(seed);
            let mut member = Membership::new(MemberId::draw(&mut random), &timing, Moment::START);
            member.step(Moment::START, &timing, &mut random, planted);
            assert!(member.created(Moment::START, Ok(&version), &timing, planted));
            // It begins just before the first beat is due, which is the worst moment.
            let mut now = member.wake_at(planted);
            let over = now + timing.ttl.mul_f64(0.4);
            while now < over {
                let step = member.step(now, &timing, &mut random, planted);
                assert!(matches!(step, Some(MemberStep::Beat(..))), "{step:?}");
                member.beaten(now, Err(ErrorKind::Unavailable), &timing, &mut random, planted);
                now = member.wake_at(planted);
            }
            let left = member.until().since(now);
            assert!(left > timing.ttl.mul_f64(0.09), "seed {seed}: {left:?} before trust ends");
        }
    }

    /// O6: whoever closes a member that the store forgot writes its record anew.
    #[test]
    fn a_member_tells_an_eviction_from_a_store_that_forgot_it() {
        let planted = Planted::default();
        let timing = Timing::for_ttl(Duration::from_secs(15));
        let found = |record: MemberRecord| {
            let (key, value) = (crate::keys::member(&record.id), record.bytes());
            Found::Record(Record { key, value, version: Version::new("2"), age: None })
        };
        let end = |closed: fn(&MemberRecord) -> MemberRecord| {
            let mut random = Random::new(1);
            let mut member = Membership::new(MemberId::draw(&mut random), &timing, Moment::START);
            let step = member.step(Moment::START, &timing, &mut random, planted);
            let Some(MemberStep::Create(record)) = step else { panic!("{step:?}") };
            let version = Outcome::Applied(Version::new("1"));
            assert!(member.created(Moment::START, Ok(&version), &timing, planted));
            let now = member.wake_at(planted);
            member.step(now, &timing, &mut random, planted);
            member.beaten(now, Ok(&Outcome::Refused), &timing, &mut random, planted);
            let found = found(closed(&record));
            member.read_back(now, Ok(&found), &timing, &mut random, planted)
        };
        let evicted = MemberState::Evicted;
        assert_eq!(
            end(|record| record.closed(MemberState::Evicted)),
            Some(Ending::Closed(evicted))
        );
        let anew = |record: &MemberRecord| {
            MemberRecord::forgotten(record.id.clone(), record.ttl(), MemberState::Evicted)
        };
        assert_eq!(end(anew), Some(Ending::Vanished));
    }
}
