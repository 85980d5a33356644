//! Nodes with one clock, a store and the ways between, in virtual time.

#![allow(dead_code, unreachable_pub, reason = "each test uses what it needs")]

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

pub const TTL: Duration = Duration::from_secs(10);
pub const BEAT: Duration = Duration::from_millis(3333);

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

/// What a node has asked of the store.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked {
    pub requests: usize,
    pub writes: usize,
    pub reads: usize,
    /// What these say: keys, values and versions, without what a protocol adds.
    pub bytes: usize,
}

impl Asked {
    fn count(&mut self, exchange: &Exchange) {
        self.requests += 1;
        self.writes += exchange.writes.len();
        self.reads += exchange.reads.len();
        for write in &exchange.writes {
            let value = if let Write::Put(put) = write { put.value.len() } else { 0 };
            self.bytes += write.key().as_str().len() + value;
        }
        for read in &exchange.reads {
            self.bytes += match read {
                Read::Key { key, unless } => {
                    key.as_str().len() + unless.as_ref().map_or(0, |it| it.as_str().len())
                }
                Read::Prefix(prefix) => prefix.as_str().len(),
            };
        }
    }
}

/// Nodes with one clock, a store and the ways between.
pub struct House {
    pub now: Moment,
    pub nodes: Vec<Option<Elector>>,
    shelf: Shelf,
    /// By time and by number.
    arrivals: BTreeMap<(Moment, u64), Arrival>,
    number: u64,
    elected: Option<usize>,
    pub random: Random,
    push: bool,
    leases: Vec<LeaseName>,
    /// What each node has asked of the store.
    pub asked: Vec<Asked>,
}

impl House {
    /// Whose nodes all want so many leases, on a store that pushes or doesn't.
    pub fn new(seed: u64, leases: usize, push: bool) -> Self {
        let name = |number| LeaseName::new(&format!("throne-{number}")).unwrap();
        Self {
            now: Moment::START + Duration::from_secs(100),
            nodes: Vec::new(),
            shelf: Shelf::default(),
            arrivals: BTreeMap::new(),
            number: 0,
            elected: None,
            random: Random::new(seed),
            push,
            leases: (0..leases).map(name).collect(),
            asked: Vec::new(),
        }
    }

    pub fn enter(&mut self) {
        let config = Config {
            profile: Profile::named(&format!("heir-{}", self.nodes.len())),
            timing: Timing::for_ttl(TTL),
            push: self.push,
            max_value: 1 << 20,
            membership: false,
            planted: Planted::default(),
        };
        let mut node = Elector::new(config, self.random.number(), self.now);
        for lease in &self.leases {
            node.campaign(self.now, lease.clone(), Stance::default());
        }
        self.asked.push(Asked::default());
        self.nodes.push(Some(node));
    }

    fn arrive(&mut self, arrival: Arrival) {
        self.number += 1;
        self.arrivals.insert((self.now + WAY, self.number), arrival);
    }

    /// Goes on until this moment, or until somebody is elected.
    pub fn run(&mut self, until: Moment) -> Option<usize> {
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
                if let Some(asked) = self.asked.get_mut(number) {
                    asked.count(&request.exchange);
                }
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
}
