//! Sweeping where nobody leads the cluster: now and then a node looks who is there, closes those
//! that expired and deletes what they left behind.
//!
//! One sweep is two looks a ttl apart, because who stands still shows in the second. The larger the
//! cluster the more rarely each node sweeps, so that together they do it about once a period.

use std::time::Duration;

use crate::census::{Census, WantedWrite};
use crate::keys;
use crate::mutant::{Mutant, Planted};
use crate::names::LeaseName;
use crate::node::Config;
use crate::outbox::{Answered, Outbox, Purpose};
use crate::pace;
use crate::random::Random;
use crate::records::{Content, LeaseRecord, MemberState};
use crate::settings::Timing;
use crate::store::{Found, Lane, Read};
use crate::time::Moment;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Sweep {
    census: Census,
    stage: SweepStage,
    next: Moment,
    /// The first look was taken.
    looked: bool,
    /// Its own, so that sweeping changes nothing about when anything else is done.
    random: Random,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum SweepStage {
    /// Look at [`Sweep::next`]; at [`Moment::NEVER`] that has not been drawn yet.
    Idle,
    Looking,
    Writing,
}

/// What a request of a sweep was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Look {
    Read,
    Write,
}

impl Sweep {
    pub(crate) fn new(random: Random) -> Self {
        let (census, next) = (Census::default(), Moment::NEVER);
        Self { census, stage: SweepStage::Idle, next, looked: false, random }
    }

    /// Forgets what was seen, and begins anew after a while.
    pub(crate) fn reset(&mut self) {
        *self = Self::new(self.random.clone());
    }

    pub(crate) fn wake_at(&self) -> Moment {
        match self.stage {
            SweepStage::Idle => self.next,
            SweepStage::Looking | SweepStage::Writing => Moment::NEVER,
        }
    }

    pub(crate) fn poll(
        &mut self,
        now: Moment,
        timing: &Timing,
        planted: Planted,
        outbox: &mut Outbox,
    ) {
        if let Some(reads) = self.step(now, timing, planted) {
            outbox.ask(now, Lane::Watch, reads, Purpose::Sweep(Look::Read));
        }
    }

    pub(crate) fn replied(
        &mut self,
        now: Moment,
        look: Look,
        answer: Answered<'_>,
        config: &Config,
        outbox: &mut Outbox,
    ) {
        if look == Look::Write {
            return self.wrote(now, answer.is_ok());
        }
        let wanted = self.looked(now, answer, &config.timing, config.planted);
        if !wanted.is_empty() {
            let writes = wanted.into_iter().map(|wanted| outbox.stamped(wanted)).collect();
            outbox.write(now, writes, Purpose::Sweep(Look::Write));
        }
    }

    /// What to read, if it is time to look.
    fn step(&mut self, now: Moment, timing: &Timing, planted: Planted) -> Option<Vec<Read>> {
        if self.stage != SweepStage::Idle || planted.is(Mutant::NobodySweeps) {
            return None;
        }
        if self.next == Moment::NEVER {
            let period = period(timing);
            self.next = now + self.random.span(period / 2, period * 3 / 2);
        }
        if now < self.next {
            return None;
        }
        self.stage = SweepStage::Looking;
        let mut reads = vec![
            Read::Prefix(keys::intents()),
            Read::Prefix(keys::members()),
            Read::Key { key: keys::lease(&LeaseName::leader()), unless: None },
        ];
        reads.extend(self.census.lease_reads(now, timing));
        Some(reads)
    }

    /// Takes in a look; says what is to be written.
    fn looked(
        &mut self,
        now: Moment,
        answer: Answered<'_>,
        timing: &Timing,
        planted: Planted,
    ) -> Vec<WantedWrite> {
        if self.stage != SweepStage::Looking {
            return Vec::new();
        }
        self.stage = SweepStage::Idle;
        let Ok(reply) = answer else {
            self.rest(now, timing);
            return Vec::new();
        };
        let mut reads = reply.reads.iter();
        if let Some(Found::Records(records)) = reads.next() {
            let _intents = self.census.see_intents(now, records, timing);
        }
        if let Some(Found::Records(records)) = reads.next() {
            self.census.see_members(now, records);
        }
        if self.is_led(now, reads.next()) {
            // Whether that leader still beats shows only after its ttl.
            if std::mem::replace(&mut self.looked, true) {
                self.rest(now, timing);
            } else {
                self.look_again(now, timing);
            }
            return Vec::new();
        }
        self.census.see_leases(now, reads, planted);
        let writes = self.census.review(now, timing, planted);
        if !writes.is_empty() {
            self.stage = SweepStage::Writing;
            self.looked = true;
        } else if !self.looked {
            self.looked = true;
            self.look_again(now, timing);
        } else if self.census.has_remains() {
            self.next = now + self.random.span(timing.visible, timing.visible * 3 / 2);
        } else {
            self.rest(now, timing);
        }
        writes
    }

    /// Takes in whether the writes were answered.
    fn wrote(&mut self, now: Moment, answered: bool) {
        if self.stage == SweepStage::Writing {
            self.stage = SweepStage::Idle;
            self.census.wrote(answered);
            self.next = now + self.random.span(pace::SWEEP.0, pace::SWEEP.1);
        }
    }

    /// Looks again when all that are dead will have been silent for their ttl.
    fn look_again(&mut self, now: Moment, timing: &Timing) {
        let ttl = self.census.members().map(|(_, record)| record.ttl()).max();
        let ttl = ttl.unwrap_or(timing.ttl);
        self.next = now + self.random.span(ttl * 11 / 10, ttl * 3 / 2);
    }

    /// Whether the cluster has a leader, who looks after all this.
    fn is_led(&self, now: Moment, lease: Option<&Found>) -> bool {
        let Some(Found::Record(stored)) = lease else { return false };
        let holder = LeaseRecord::read(stored).ok().and_then(|lease| lease.holder);
        holder.is_some_and(|holder| self.census.is_heard_of(&holder.member, now))
    }

    /// Until the next sweep nothing is remembered.
    fn rest(&mut self, now: Moment, timing: &Timing) {
        let alive = |state: MemberState| state == MemberState::Alive;
        let living = self.census.members().filter(|(_, record)| alive(record.state)).count();
        let living = u32::try_from(living.clamp(1, 10_000)).unwrap_or(1);
        let period = period(timing) * living;
        self.reset();
        self.next = now + self.random.span(period / 2, period * 3 / 2);
    }
}

/// How often somebody should sweep.
fn period(timing: &Timing) -> Duration {
    timing.visible.max(timing.ttl * 4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::MemberId;
    use crate::records::{Holder, MemberRecord};
    use crate::store::{Key, Record, Reply, Version};

    /// What a look shows: a leader of which this many beats were seen.
    fn look(leader: &MemberId, beats: u64) -> Reply {
        let timing = Timing::default();
        let mut member = MemberRecord::joining(leader.clone(), timing.ttl, timing.beat);
        member.beat = beats;
        let holder = Holder {
            member: leader.clone(),
            node: "leader".to_owned(),
            address: None,
            mark: None,
            unproven: false,
            due_ms: 0,
        };
        let name = LeaseName::leader();
        let lease = LeaseRecord { term: 1, holder: Some(holder), ..LeaseRecord::fresh(&name) };
        let stored = |key: Key, value: Vec<u8>| {
            let version = Version::new(&beats.to_string());
            Record { key, value, version, age: None }
        };
        let reads = vec![
            Found::Records(Vec::new()),
            Found::Records(vec![stored(keys::member(leader), member.bytes())]),
            Found::Record(stored(keys::lease(&name), lease.bytes())),
        ];
        Reply { writes: Vec::new(), reads }
    }

    fn second_look(beats: u64) -> Vec<WantedWrite> {
        let (timing, planted) = (Timing::default(), Planted::default());
        let leader = MemberId::new("leader");
        let mut sweep = Sweep::new(Random::new(1));
        let mut now = Moment::START;
        assert!(sweep.step(now, &timing, planted).is_none(), "not at once");
        let mut writes = Vec::new();
        for beats in [1, beats] {
            now = sweep.wake_at();
            assert!(sweep.step(now, &timing, planted).is_some());
            assert!(writes.is_empty());
            writes = sweep.looked(now, Ok(&look(&leader, beats)), &timing, planted);
        }
        writes
    }

    #[test]
    fn a_leader_that_stands_still_between_two_looks_keeps_nobody_from_sweeping() {
        assert!(matches!(&second_look(1)[..], [WantedWrite::Put(..)]), "it is closed");
        assert!(second_look(2).is_empty(), "it beats, and sees to all this");
    }
}
