//! How soon a leader is followed of whose death there is no proof, in shares of its ttl and in virtual time:
//! also one that has led for less than a beat, before those who wait.
//!
//! ```sh
//! cargo test -p incumbent-core --test expiry -- --nocapture    # prints the figures
//! ```

#![allow(clippy::unwrap_used, missing_docs, reason = "a test may")]

use std::collections::BTreeMap;
use std::time::Duration;

use incumbent_core::mutant::Planted;
use incumbent_core::random::Random;
use incumbent_core::records::Profile;
use incumbent_core::store::{
    Exchange, Expect, Found, Key, Outcome, Read, Record, Reply, Version, Write,
};
use incumbent_core::{
    Config, ElectionEvent, Elector, LeaseName, Moment, Request, RequestId, Stance, Timing,
};

const TTL: Duration = Duration::from_secs(10);
const BEAT: Duration = Duration::from_millis(3333);

/// From a node to the store, and back, and for a hint.
const WAY: Duration = Duration::from_micros(400);

/// A store that compares and swaps.
#[derive(Default)]
struct Shelf {
    records: BTreeMap<Key, Record>,
    writes: u64,
}

impl Shelf {
    /// The reply, and whether others are to hear of it.
    fn exchange(&mut self, exchange: &Exchange) -> (Reply, bool) {
        let reads = exchange.reads.iter().map(|read| self.read(read)).collect();
        let mut hint = false;
        let mut writes = Vec::new();
        for write in &exchange.writes {
            let Write::Put(put) = write else {
                self.records.remove(write.key());
                writes.push(Outcome::Deleted);
                continue;
            };
            let there = self.records.get(&put.key).map(|record| &record.version);
            let fits = match &put.expect {
                Expect::Absent => there.is_none(),
                Expect::Version(version) => there == Some(version),
            };
            if !fits {
                writes.push(Outcome::Refused);
                continue;
            }
            self.writes += 1;
            let version = Version::new(&self.writes.to_string());
            let (key, value) = (put.key.clone(), put.value.clone());
            let record = Record { key: key.clone(), value, version: version.clone(), age: None };
            self.records.insert(key, record);
            writes.push(Outcome::Applied(version));
            hint |= put.hint;
        }
        (Reply { writes, reads }, hint)
    }

    fn read(&self, read: &Read) -> Found {
        let known = |record: &Record| match read {
            Read::Key { unless, .. } => unless.as_ref() == Some(&record.version),
            Read::Prefix(_) => false,
        };
        match read {
            Read::Key { key, .. } => match self.records.get(key) {
                Some(record) if known(record) => Found::Unchanged,
                Some(record) => Found::Record(record.clone()),
                None => Found::Absent,
            },
            Read::Prefix(prefix) => {
                let below = |key: &Key| key.as_str().starts_with(prefix.as_str());
                let records = self.records.values().filter(|record| below(&record.key));
                Found::Records(records.cloned().collect())
            }
        }
    }
}

enum Arrival {
    Request(usize, Request),
    Reply(usize, RequestId, Reply),
    Hint,
}

/// Nodes with one clock, a store and the ways between.
struct House {
    now: Moment,
    nodes: Vec<Option<Elector>>,
    shelf: Shelf,
    /// By time and by number.
    arrivals: BTreeMap<(Moment, u64), Arrival>,
    number: u64,
    elected: Option<usize>,
    random: Random,
}

impl House {
    fn new(seed: u64) -> Self {
        Self {
            now: Moment::START + Duration::from_secs(100),
            nodes: Vec::new(),
            shelf: Shelf::default(),
            arrivals: BTreeMap::new(),
            number: 0,
            elected: None,
            random: Random::new(seed),
        }
    }

    fn lease() -> LeaseName {
        LeaseName::new("throne").unwrap()
    }

    fn enter(&mut self) {
        let config = Config {
            profile: Profile::named(&format!("heir-{}", self.nodes.len())),
            timing: Timing::for_ttl(TTL),
            push: true,
            max_value: 1 << 20,
            membership: false,
            planted: Planted::default(),
        };
        let mut node = Elector::new(config, self.random.number(), self.now);
        node.campaign(self.now, Self::lease(), Stance::default());
        self.nodes.push(Some(node));
    }

    fn arrive(&mut self, arrival: Arrival) {
        self.number += 1;
        self.arrivals.insert((self.now + WAY, self.number), arrival);
    }

    /// Goes on until this moment, or until somebody is elected.
    fn run(&mut self, until: Moment) -> Option<usize> {
        loop {
            self.poll();
            if let Some(elected) = self.elected.take() {
                return Some(elected);
            }
            let wakes = self.nodes.iter().flatten().map(Elector::wake_at);
            let arrival = self.arrivals.keys().next().map(|(at, _)| *at);
            let next = wakes.chain(arrival).min().unwrap_or(until).max(self.now);
            if next >= until {
                self.now = until;
                return None;
            }
            self.now = next;
            while let Some(first) = self.arrivals.first_entry()
                && first.key().0 <= next
            {
                let arrival = first.remove();
                self.arrived(arrival);
            }
        }
    }

    fn poll(&mut self) {
        for number in 0..self.nodes.len() {
            let Some(Some(node)) = self.nodes.get_mut(number) else { continue };
            node.poll(self.now);
            while let Some(event) = node.next_event() {
                if matches!(event, ElectionEvent::Elected { .. }) {
                    self.elected = Some(number);
                }
            }
            let requests: Vec<Request> = std::iter::from_fn(|| node.next_request()).collect();
            for request in requests {
                self.arrive(Arrival::Request(number, request));
            }
        }
    }

    fn arrived(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::Request(from, request) => {
                let (reply, hint) = self.shelf.exchange(&request.exchange);
                self.arrive(Arrival::Reply(from, request.id, reply));
                if hint {
                    self.arrive(Arrival::Hint);
                }
            }
            Arrival::Reply(to, id, reply) => {
                if let Some(Some(node)) = self.nodes.get_mut(to) {
                    node.handle(self.now, id, Ok(reply));
                }
            }
            Arrival::Hint => {
                for node in self.nodes.iter_mut().flatten() {
                    node.hint(self.now);
                }
            }
        }
    }

    /// Lets the leader vanish after it has led for so long; gives the next one, and after which share of
    /// the ttl it led.
    fn succeed(&mut self, leader: usize, age: Duration) -> (usize, f64) {
        assert_eq!(self.run(self.now + age), None, "nobody else is elected meanwhile");
        if let Some(node) = self.nodes.get_mut(leader) {
            *node = None;
        }
        let died = self.now;
        let next = self.run(died + 3 * TTL).unwrap();
        let share = self.now.since(died).as_secs_f64() / TTL.as_secs_f64();
        // Not before: everybody looks when somebody joins.
        self.enter();
        (next, share)
    }
}

/// Shares of the ttl, in order, of reigns that last up to so many beats.
fn shares(beats: u64) -> Vec<f64> {
    let mut shares = Vec::new();
    for seed in 0..40 {
        let mut house = House::new(seed);
        for _ in 0..3 {
            house.enter();
        }
        let mut leader = house.run(house.now + TTL).unwrap();
        for _ in 0..10 {
            let most = BEAT.as_nanos() as u64 * beats;
            let age = Duration::from_nanos(house.random.below(most));
            let (next, share) = house.succeed(leader, age);
            leader = next;
            shares.push(share);
        }
    }
    shares.sort_by(f64::total_cmp);
    shares
}

#[test]
fn who_follows_a_leader_without_proof_waits_a_ttl_from_its_last_beat_and_no_more() {
    for beats in [1, 2, 4, 16] {
        let shares = shares(beats);
        let (median, most) = (shares[shares.len() / 2], shares[shares.len() - 1]);
        let above = shares.iter().filter(|share| **share > 1.01).count();
        println!(
            "led for up to {beats:>2} beats: median {median:.3} of the ttl, at most {most:.3}, \
             {above} of {} above 1.01",
            shares.len()
        );
        assert!(most <= 1.01, "{most} after up to {beats} beats");
    }
}
