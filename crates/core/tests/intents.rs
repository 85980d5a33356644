//! A request to resign is obeyed, whatever read was on its way when it was written.

#![allow(clippy::unwrap_used, missing_docs, reason = "a test may")]

use std::collections::BTreeMap;
use std::time::Duration;

use incumbent_core::mutant::Planted;
use incumbent_core::records::{Ask, Board, Content, Extra, FORMAT, Intent, IntentState, Profile};
use incumbent_core::store::{Exchange, Found, Key, Outcome, Read, Record, Reply, Version, Write};
use incumbent_core::{
    Config, ElectionEvent, Elector, LeaseName, LossCause, Moment, Request, Stance, Timing, keys,
};

/// A store that trusts its only user to expect the right thing.
#[derive(Default)]
struct Shelf {
    records: BTreeMap<Key, (Vec<u8>, u64)>,
    writes: u64,
}

impl Shelf {
    fn put(&mut self, key: Key, value: Vec<u8>) -> Version {
        self.writes += 1;
        self.records.insert(key, (value, self.writes));
        Version::new(&self.writes.to_string())
    }

    fn exchange(&mut self, exchange: &Exchange) -> Reply {
        let reads = exchange.reads.iter().map(|read| self.read(read)).collect();
        let mut writes = Vec::new();
        for write in &exchange.writes {
            let Write::Put(put) = write else { continue };
            writes.push(Outcome::Applied(self.put(put.key.clone(), put.value.clone())));
        }
        Reply { writes, reads }
    }

    fn read(&self, read: &Read) -> Found {
        let record = |key: &Key, (value, version): &(Vec<u8>, u64)| Record {
            key: key.clone(),
            value: value.clone(),
            version: Version::new(&version.to_string()),
            age: None,
        };
        match read {
            Read::Key { key, .. } => {
                self.records.get(key).map_or(Found::Absent, |it| Found::Record(record(key, it)))
            }
            Read::Prefix(prefix) => Found::Records(
                self.records
                    .iter()
                    .filter(|(key, _)| key.as_str().starts_with(prefix.as_str()))
                    .map(|(key, it)| record(key, it))
                    .collect(),
            ),
        }
    }

    /// What an operator does: the intent first, then the board's counter.
    fn ask_to_resign(&mut self, id: &str, lease: &str, revision: u64) {
        let intent = Intent {
            format: FORMAT,
            id: id.to_owned(),
            ask: Ask::Resign { lease: lease.to_owned(), term: 1, successor: None },
            state: IntentState::Open,
            by: String::new(),
            at_ms: 0,
            extra: Extra::new(),
        };
        self.put(keys::intent(id), intent.bytes());
        self.put(keys::board(), Board { intents: revision, ..Board::fresh() }.bytes());
    }
}

fn node(now: Moment) -> (Elector, LeaseName) {
    let config = Config {
        profile: Profile::named("a"),
        // A beat comes while a read is on its way, which may take five seconds.
        timing: Timing { beat: Duration::from_secs(2), ..Timing::default() },
        push: true,
        max_value: 16 << 20,
        membership: false,
        planted: Planted::default(),
    };
    let mut node = Elector::new(config, 7, now);
    let lease = LeaseName::new("scheduler").unwrap();
    node.campaign(now, lease.clone(), Stance::default());
    (node, lease)
}

fn reads_intents(request: &Request) -> bool {
    request.exchange.reads.contains(&Read::Prefix(keys::intents()))
}

#[test]
fn a_request_is_obeyed_within_a_beat_and_marked_done() {
    let mut shelf = Shelf::default();
    let mut now = Moment::from_nanos(1_000_000_000);
    let (mut node, lease) = node(now);
    let mut lost_at = None;
    for step in 0..200 {
        now = now + Duration::from_millis(100);
        node.poll(now);
        while let Some(request) = node.next_request() {
            let reply = shelf.exchange(&request.exchange);
            node.handle(now, request.id, Ok(reply));
        }
        while let Some(event) = node.next_event() {
            if let ElectionEvent::Lost { why, .. } = event {
                assert_eq!(why, LossCause::Resigned);
                lost_at = lost_at.or(Some(step));
                node.stopped(now, &lease, 1);
            }
        }
        if step == 20 {
            assert_eq!(node.held(&lease), Some(1));
            shelf.ask_to_resign("i", "scheduler", 1);
        }
    }
    let waited = lost_at.unwrap() - 20;
    assert!(waited <= 25, "a beat is at most 2.2 s, and this took {waited} steps of 100 ms");
    let stored = shelf.records.get(&keys::intent("i")).unwrap().0.clone();
    assert!(String::from_utf8(stored).unwrap().contains("\"state\":\"done\""));
}

#[test]
fn a_request_behind_a_read_on_its_way_is_not_missed() {
    let mut shelf = Shelf::default();
    let mut now = Moment::from_nanos(1_000_000_000);
    let (mut node, lease) = node(now);
    let mut held_back = None;
    let mut asked_at = None;
    let mut lost = false;
    for step in 0..300 {
        now = now + Duration::from_millis(100);
        node.poll(now);
        while let Some(request) = node.next_request() {
            let reply = shelf.exchange(&request.exchange);
            if asked_at.is_none() && reads_intents(&request) {
                // The read was answered before the operator wrote, and the answer comes late.
                held_back = Some((request.id, reply));
                shelf.ask_to_resign("meant", "scheduler", 2);
                asked_at = Some(step);
            } else {
                node.handle(now, request.id, Ok(reply));
            }
        }
        while let Some(event) = node.next_event() {
            lost |= matches!(event, ElectionEvent::Lost { .. });
        }
        if step == 20 {
            assert_eq!(node.held(&lease), Some(1));
            shelf.ask_to_resign("not-meant", "another", 1);
        }
        // After the next beat showed the new board, and before the node gives the read up.
        let late = asked_at.is_some_and(|asked| step == asked + 45);
        if let Some((id, reply)) = held_back.take_if(|_| late) {
            node.handle(now, id, Ok(reply));
        }
    }
    assert!(asked_at.is_some() && held_back.is_none(), "the race did not take place");
    assert!(lost, "the request was missed");
}
