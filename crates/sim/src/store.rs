//! A linearizable store in memory, and ways to build it wrong.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use incumbent_core::store::{
    Exchange, Expect, Found, Key, Outcome, Put, Read, Record, Reply, Version, Write,
};

/// How the store is built wrong, if it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// Reads come from a replica that lags behind.
    StaleReads,
    /// Versions count from one for each key, and begin again after a delete.
    VersionsRestart,
    /// The swap doesn't compare.
    BlindSwap,
}

/// One change to the store, for those who check it.
#[derive(Clone, Debug)]
pub(crate) struct Applied {
    /// Where.
    pub(crate) key: Key,
    /// What was there.
    pub(crate) before: Option<Vec<u8>>,
    /// What is there now; nothing after a delete.
    pub(crate) after: Option<Vec<u8>>,
    /// Who wrote it, by the stamp.
    pub(crate) writer: u64,
    /// Which attempt, by the stamp.
    pub(crate) attempt: u64,
}

#[derive(Clone, Debug)]
struct Entry {
    value: Vec<u8>,
    version: Version,
    written: u64,
    created: u64,
}

/// The store.
#[derive(Debug, Default)]
pub(crate) struct ModelStore {
    records: BTreeMap<Key, Entry>,
    /// What is in the records, some changes ago.
    replica: BTreeMap<Key, Entry>,
    backlog: VecDeque<(u64, Key, Option<Entry>)>,
    counts: BTreeMap<Key, u64>,
    flaw: Option<Flaw>,
    /// Whether reads may miss a record that is just a few seconds old, as caches of absence do.
    /// The core must not mind.
    pub(crate) forgets_the_new: bool,
    forgetting: u64,
    /// By how many nanoseconds the store's own clock is ahead, which must not matter.
    pub(crate) skew: i64,
}

impl ModelStore {
    /// A store that is built right, unless a flaw is named.
    #[must_use]
    pub(crate) fn new(flaw: Option<Flaw>) -> Self {
        Self { flaw, ..Self::default() }
    }

    /// Applies an exchange at this instant; says what changed.
    pub(crate) fn exchange(&mut self, instant: u64, exchange: &Exchange) -> (Reply, Vec<Applied>) {
        let mut applied = Vec::new();
        let reads = exchange.reads.iter().map(|read| self.read(instant, read)).collect();
        let mut writes = Vec::new();
        for write in &exchange.writes {
            writes.push(match write {
                Write::Put(put) => self.put(instant, put, &mut applied),
                Write::Delete(key) => self.delete(instant, key, &mut applied),
            });
        }
        (Reply { writes, reads }, applied)
    }

    /// The record under a key as it is now.
    #[must_use]
    pub(crate) fn record(&self, key: &Key) -> Option<Record> {
        self.records.get(key).map(|entry| record(key, entry, None))
    }

    /// All records whose keys begin so.
    pub(crate) fn records_below(&self, prefix: &Key) -> Vec<Record> {
        let below = |(key, _): &(&Key, &Entry)| key.as_str().starts_with(prefix.as_str());
        self.records.iter().filter(below).map(|(key, entry)| record(key, entry, None)).collect()
    }

    fn put(&mut self, instant: u64, put: &Put, applied: &mut Vec<Applied>) -> Outcome {
        let there = self.records.get(&put.key);
        let expected = match (&put.expect, there) {
            (Expect::Absent, None) => true,
            (Expect::Version(version), Some(entry)) => *version == entry.version,
            (Expect::Absent, Some(_)) | (Expect::Version(_), None) => false,
        };
        if !expected && self.flaw != Some(Flaw::BlindSwap) {
            return Outcome::Refused;
        }
        let before = there.map(|entry| entry.value.clone());
        let created = there.map_or(instant, |entry| entry.created);
        let version = self.version(put);
        let value = put.value.clone();
        let entry = Entry { value, version: version.clone(), written: instant, created };
        self.change(instant, &put.key, Some(entry));
        applied.push(Applied {
            key: put.key.clone(),
            before,
            after: Some(put.value.clone()),
            writer: put.stamp.writer,
            attempt: put.stamp.attempt,
        });
        Outcome::Applied(version)
    }

    fn delete(&mut self, instant: u64, key: &Key, applied: &mut Vec<Applied>) -> Outcome {
        if let Some(entry) = self.records.get(key) {
            let before = Some(entry.value.clone());
            self.change(instant, key, None);
            applied.push(Applied { key: key.clone(), before, after: None, writer: 0, attempt: 0 });
        }
        self.counts.remove(key);
        Outcome::Deleted
    }

    fn change(&mut self, instant: u64, key: &Key, entry: Option<Entry>) {
        if self.flaw == Some(Flaw::StaleReads) {
            self.backlog.push_back((instant, key.clone(), entry.clone()));
        }
        set(&mut self.records, key, entry);
    }

    fn version(&mut self, put: &Put) -> Version {
        match self.flaw {
            Some(Flaw::VersionsRestart) => {
                let count = self.counts.entry(put.key.clone()).or_insert(0);
                *count += 1;
                Version::new(&count.to_string())
            }
            Some(Flaw::StaleReads | Flaw::BlindSwap) | None => put.stamp.version(),
        }
    }

    fn read(&mut self, instant: u64, read: &Read) -> Found {
        let lag = 4_000_000_000;
        while let Some((at, ..)) = self.backlog.front() {
            if at + lag > instant {
                break;
            }
            if let Some((_, key, entry)) = self.backlog.pop_front() {
                set(&mut self.replica, &key, entry);
            }
        }
        let stale = self.flaw == Some(Flaw::StaleReads);
        let from = if stale { &self.replica } else { &self.records };
        let age = |entry: &Entry| {
            let nanos = i64::try_from(instant - entry.written).unwrap_or(i64::MAX);
            Some(Duration::from_nanos(u64::try_from(nanos.saturating_add(self.skew)).unwrap_or(0)))
        };
        self.forgetting += 1;
        let forgotten = |entry: &&Entry| {
            self.forgets_the_new
                && entry.created + 3_000_000_000 > instant
                && self.forgetting.is_multiple_of(2)
        };
        match read {
            Read::Key { key, unless } => match from.get(key).filter(|entry| !forgotten(entry)) {
                None => Found::Absent,
                Some(entry) if unless.as_ref() == Some(&entry.version) => Found::Unchanged,
                Some(entry) => Found::Record(record(key, entry, age(entry))),
            },
            Read::Prefix(prefix) => Found::Records(
                from.iter()
                    .filter(|(key, _)| key.as_str().starts_with(prefix.as_str()))
                    .map(|(key, entry)| record(key, entry, age(entry)))
                    .collect(),
            ),
        }
    }
}

fn set(records: &mut BTreeMap<Key, Entry>, key: &Key, entry: Option<Entry>) {
    match entry {
        Some(entry) => records.insert(key.clone(), entry),
        None => records.remove(key),
    };
}

fn record(key: &Key, entry: &Entry, age: Option<Duration>) -> Record {
    Record { key: key.clone(), value: entry.value.clone(), version: entry.version.clone(), age }
}
