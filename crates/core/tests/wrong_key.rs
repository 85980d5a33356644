//! O10: a record that says it is another's is unreadable, and nobody is closed because of it.

#![allow(clippy::unwrap_used, clippy::panic, missing_docs, reason = "a test may")]

use std::collections::BTreeMap;
use std::time::Duration;

use incumbent_core::mutant::Planted;
use incumbent_core::records::{
    Ask, Content, Extra, FORMAT, Holder, Intent, IntentState, LeaseRecord, MemberRecord, Profile,
};
use incumbent_core::store::{Expect, Found, Key, Outcome, Read, Record, Reply, Version, Write};
use incumbent_core::{
    Config, ElectionEvent, Elector, LeaseName, MemberId, Moment, Stance, Timing, keys,
};

fn stored(key: Key, value: Vec<u8>) -> Record {
    Record { key, value, version: Version::new("1"), age: None }
}

fn is_unreadable_elsewhere<T: Content>(content: &T, right: Key) {
    assert!(T::read(&stored(right.clone(), content.bytes())).is_ok(), "{right}");
    let wrong = Key::new(&format!("{right}x"));
    let Err(unreadable) = T::read(&stored(wrong.clone(), content.bytes())) else {
        panic!("{wrong} was read");
    };
    assert!(unreadable.reason.contains(right.as_str()), "{unreadable}");
}

#[test]
fn every_record_that_names_itself_is_held_to_it() {
    let id = MemberId::new("a");
    let lease = LeaseName::new("scheduler").unwrap();
    let ttl = Duration::from_secs(15);
    let intent = Intent {
        format: FORMAT,
        id: "i1".to_owned(),
        ask: Ask::Freeze,
        state: IntentState::Open,
        by: String::new(),
        at_ms: 0,
        extra: Extra::new(),
    };
    is_unreadable_elsewhere(&MemberRecord::joining(id.clone(), ttl, ttl / 3), keys::member(&id));
    is_unreadable_elsewhere(&LeaseRecord::fresh(&lease), keys::lease(&lease));
    is_unreadable_elsewhere(
        &LeaseRecord::fresh(&LeaseName::leader()),
        keys::lease(&LeaseName::leader()),
    );
    is_unreadable_elsewhere(&intent, keys::intent("i1"));
}

#[derive(Default)]
struct Shelf {
    records: BTreeMap<Key, (Vec<u8>, u64)>,
    writes: u64,
}

impl Shelf {
    fn write(&mut self, write: &Write) -> Outcome {
        let Write::Put(put) = write else { return Outcome::Deleted };
        let there = self.records.get(&put.key).map(|(_, version)| version.to_string());
        let expected = match &put.expect {
            Expect::Absent => None,
            Expect::Version(version) => Some(version.as_str().to_owned()),
        };
        if there != expected {
            return Outcome::Refused;
        }
        self.writes += 1;
        self.records.insert(put.key.clone(), (put.value.clone(), self.writes));
        Outcome::Applied(Version::new(&self.writes.to_string()))
    }

    fn read(&self, read: &Read) -> Found {
        let Read::Key { key, .. } = read else { return Found::Records(Vec::new()) };
        self.records.get(key).map_or(Found::Absent, |(value, version)| {
            let version = Version::new(&version.to_string());
            Found::Record(Record { key: key.clone(), value: value.clone(), version, age: None })
        })
    }
}

#[test]
fn whoever_waits_for_a_member_under_a_wrong_key_neither_closes_it_nor_gives_up() {
    let lease = LeaseName::new("scheduler").unwrap();
    let holder = MemberId::new("holder");
    let ttl = Duration::from_secs(3);
    let mut record = LeaseRecord::fresh(&lease);
    record.term = 1;
    record.holder = Some(Holder {
        member: holder.clone(),
        node: "a".to_owned(),
        address: None,
        mark: None,
        unproven: false,
        due_ms: 0,
    });
    let mut shelf = Shelf::default();
    shelf.records.insert(keys::lease(&lease), (record.bytes(), 901));
    let other = MemberRecord::joining(MemberId::new("other"), ttl, ttl / 3);
    shelf.records.insert(keys::member(&holder), (other.bytes(), 902));
    let config = Config {
        profile: Profile::named("b"),
        timing: Timing::for_ttl(ttl),
        push: false,
        membership: false,
        planted: Planted::default(),
        max_value: 1 << 20,
    };
    let mut node = Elector::new(config, 7, Moment::from_nanos(1));
    node.campaign(Moment::from_nanos(1), lease.clone(), Stance::default());
    let (mut reported, mut elected) = (0, 0);
    for step in 1..=3_000_u64 {
        if step == 2_000 {
            // Somebody mends the record: it closes in order.
            let left = MemberRecord::joining(holder.clone(), ttl, ttl / 3);
            let left = left.closed(incumbent_core::records::MemberState::Left);
            shelf.records.insert(keys::member(&holder), (left.bytes(), 903));
        }
        let now = Moment::from_nanos(step * 10_000_000);
        node.poll(now);
        while let Some(request) = node.next_request() {
            let closes = |write: &Write| *write.key() == keys::member(&holder);
            assert!(!request.exchange.writes.iter().any(closes), "it was closed");
            let reads = request.exchange.reads.iter().map(|read| shelf.read(read)).collect();
            let writes = request.exchange.writes.iter().map(|write| shelf.write(write)).collect();
            node.handle(now, request.id, Ok(Reply { writes, reads }));
            node.poll(now);
        }
        while let Some(event) = node.next_event() {
            match event {
                ElectionEvent::Unreadable(unreadable) => {
                    assert_eq!(unreadable.key, keys::member(&holder).as_str());
                    reported += 1;
                }
                ElectionEvent::Elected { .. } => elected += 1,
                _ => {}
            }
        }
        assert!(step >= 2_000 || elected == 0, "elected over a holder that may be alive");
    }
    assert_eq!((reported, elected), (1, 1), "reported once, and taken once it was mended");
}
