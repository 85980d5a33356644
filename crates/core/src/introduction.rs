//! What a member says about itself: its profile, written once it is alive and whenever that changes.

use crate::keys;
use crate::names::MemberId;
use crate::outbox::{Answered, Outbox, Purpose, first_read, first_write};
use crate::own::{OwnRecord, Upkeep, UpkeepKind};
use crate::random::Random;
use crate::records::{Content, Profile};
use crate::settings::Timing;
use crate::store::{Lane, Read};
use crate::time::Moment;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Introduction {
    record: OwnRecord,
    /// How often what it says has changed, and which of these is written.
    changes: u64,
    made: u64,
    joined_ms: u64,
}

impl Introduction {
    pub(crate) fn new(timing: &Timing) -> Self {
        Self { record: OwnRecord::new(timing), changes: 1, made: 0, joined_ms: 0 }
    }

    /// The incarnation is over; the next one says it all again.
    pub(crate) fn end(&mut self, timing: &Timing) {
        self.record = OwnRecord::new(timing);
        self.made = 0;
    }

    /// What it says has changed.
    pub(crate) fn changed(&mut self) {
        self.changes += 1;
    }

    pub(crate) fn wake_at(&self) -> Moment {
        self.record.wake_at()
    }

    /// Whether there is something that it has not said yet.
    pub(crate) fn is_due(&self) -> bool {
        self.made != self.changes
    }

    /// Sets what it says from now on.
    pub(crate) fn say(&mut self, mut profile: Profile, wall_ms: u64) {
        if self.made == 0 {
            self.joined_ms = wall_ms;
        }
        self.made = self.changes;
        profile.joined_ms = self.joined_ms;
        profile.revision = self.changes;
        self.record.want(profile.bytes());
    }

    pub(crate) fn poll(&mut self, now: Moment, own: &MemberId, outbox: &mut Outbox) {
        let Some(step) = self.record.step(now) else { return };
        let key = keys::profile(own);
        match step {
            Upkeep::Write(expect, content) => {
                let put = outbox.put(key, expect, content, true);
                outbox.write(now, vec![put], Purpose::Profile(UpkeepKind::Write));
            }
            Upkeep::Read => {
                let reads = vec![Read::Key { key, unless: None }];
                outbox.ask(now, Lane::Change, reads, Purpose::Profile(UpkeepKind::Read));
            }
        }
    }

    /// Takes in a reply; says how often the profile has changed once the store has it as it is.
    pub(crate) fn replied(
        &mut self,
        now: Moment,
        asked: UpkeepKind,
        answer: Answered<'_>,
        random: &mut Random,
    ) -> Option<u64> {
        match asked {
            UpkeepKind::Write => self.record.wrote(now, first_write(answer), random),
            UpkeepKind::Read => self.record.read(now, first_read(answer), random),
        }
        self.record.is_settled().then_some(self.made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{ErrorKind, Outcome, Reply, Version, Write};

    #[test]
    fn what_changes_while_a_write_is_in_doubt_is_written_after_it_was_read_back() {
        let (own, now, mut random) = (MemberId::new("m"), Moment::START, Random::new(1));
        let mut outbox = Outbox::new(1, std::time::Duration::from_secs(1));
        let mut introduction = Introduction::new(&Timing::default());
        assert!(introduction.is_due());
        introduction.say(Profile::named("a"), 17);
        introduction.poll(now, &own, &mut outbox);
        assert!(matches!(&outbox.next_request().unwrap().exchange.writes[..], [Write::Put(_)]));
        let told =
            introduction.replied(now, UpkeepKind::Write, Err(ErrorKind::Unknown), &mut random);
        assert_eq!(told, None, "it may not be there");
        introduction.changed();
        introduction.say(Profile::named("b"), 18);
        introduction.poll(introduction.wake_at(), &own, &mut outbox);
        let request = outbox.next_request().unwrap();
        assert!(request.exchange.writes.is_empty(), "it is read back first");
        let nothing = Reply { writes: Vec::new(), reads: vec![crate::store::Found::Absent] };
        assert_eq!(introduction.replied(now, UpkeepKind::Read, Ok(&nothing), &mut random), None);
        introduction.poll(introduction.wake_at(), &own, &mut outbox);
        let request = outbox.next_request().unwrap();
        let [Write::Put(put)] = &request.exchange.writes[..] else { panic!("{request:?}") };
        let profile: Profile = serde_json::from_slice(&put.value).unwrap();
        assert_eq!((profile.node.as_str(), profile.revision, profile.joined_ms), ("b", 2, 17));
        let written =
            Reply { writes: vec![Outcome::Applied(Version::new("1"))], reads: Vec::new() };
        assert_eq!(
            introduction.replied(now, UpkeepKind::Write, Ok(&written), &mut random),
            Some(2)
        );
    }
}
