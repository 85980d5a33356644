//! A linearizable store in memory, and ways to build it wrong.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use incumbent_core::records::{MemberRecord, MemberState};
use incumbent_core::store::{
    Exchange, Expect, Found, Key, Outcome, Put, Read, Record, Reply, Version, Write,
};
use serde::de::DeserializeOwned;

use crate::stored::Stored;

/// How the store is built wrong, if it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// Versions count from one for each key, and begin again after a delete.
    VersionsRestart,
    /// The swap doesn't compare.
    BlindSwap,
}

/// So many former values of a record are kept, for reads that are stale.
const MOST_PAST: usize = 64;

/// One change to the store, for those who check it.
#[derive(Clone, Debug)]
pub(crate) struct Applied {
    /// The record that changed.
    pub(crate) key: Key,
    /// What was there.
    pub(crate) before: Option<Rc<Stored>>,
    /// What is there now; nothing after a delete.
    pub(crate) after: Option<Rc<Stored>>,
    /// Who wrote it, by the stamp.
    pub(crate) writer: u64,
    /// Which attempt, by the stamp.
    pub(crate) attempt: u64,
    /// Whether it has to survive the store's crash.
    pub(crate) durable: bool,
}

impl Applied {
    fn by_nobody(key: Key, before: Option<Rc<Stored>>, after: Option<Rc<Stored>>) -> Self {
        Self { key, before, after, writer: 0, attempt: 0, durable: true }
    }

    /// The record that was there, if one was and is of this kind.
    pub(crate) fn before<T: DeserializeOwned + 'static>(&self) -> Option<Rc<T>> {
        self.before.as_ref()?.read()
    }

    /// Whether a live member is there now.
    pub(crate) fn lives(&self) -> bool {
        self.after::<MemberRecord>().is_some_and(|record| record.state == MemberState::Alive)
    }

    /// The record that is there now, if one is and is of this kind.
    pub(crate) fn after<T: DeserializeOwned + 'static>(&self) -> Option<Rc<T>> {
        self.after.as_ref()?.read()
    }
}

#[derive(Clone, Debug)]
struct Entry {
    value: Rc<Stored>,
    version: Version,
    written: u64,
    created: u64,
}

/// The store.
#[derive(Debug, Default)]
pub(crate) struct ModelStore {
    records: BTreeMap<Key, Entry>,
    /// What was there before, and until when, the oldest first.
    past: BTreeMap<Key, VecDeque<(u64, Option<Entry>)>>,
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
        self.exchange_as_of(instant, instant, exchange)
    }

    /// Applies an exchange at this instant, and answers its reads as they would have been answered
    /// at another, before.
    pub(crate) fn exchange_as_of(
        &mut self,
        instant: u64,
        as_of: u64,
        exchange: &Exchange,
    ) -> (Reply, Vec<Applied>) {
        let mut applied = Vec::new();
        let reads = exchange.reads.iter().map(|read| self.read(instant, as_of, read)).collect();
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
        below(&self.records, prefix).map(|(key, entry)| record(key, entry, None)).collect()
    }

    /// Loses everything below these prefixes, or goes back to what was there at an instant before;
    /// says what is different now.
    pub(crate) fn forget(
        &mut self,
        instant: u64,
        prefixes: &[&str],
        back_to: Option<u64>,
    ) -> Vec<Applied> {
        let below = |key: &&Key| prefixes.iter().any(|prefix| key.as_str().starts_with(prefix));
        let keys: BTreeSet<Key> =
            self.records.keys().chain(self.past.keys()).filter(below).cloned().collect();
        let mut changes = Vec::new();
        for key in keys {
            let entry = back_to.and_then(|as_of| self.entry(&key, as_of)).cloned();
            let before = self.records.get(&key);
            if before.map(|entry| &entry.version) == entry.as_ref().map(|entry| &entry.version) {
                continue;
            }
            let before = before.map(|entry| entry.value.clone());
            let after = entry.as_ref().map(|entry| entry.value.clone());
            self.change(instant, &key, entry);
            changes.push(Applied::by_nobody(key, before, after));
        }
        changes
    }

    /// What was under a key at an instant.
    fn entry(&self, key: &Key, as_of: u64) -> Option<&Entry> {
        let past =
            self.past.get(key).and_then(|past| past.iter().find(|(until, _)| as_of < *until));
        match past {
            Some((_, entry)) => entry.as_ref(),
            None => self.records.get(key),
        }
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
        let value = Rc::new(Stored::new(put.value.clone()));
        let after = Some(Rc::clone(&value));
        let entry = Entry { value, version: version.clone(), written: instant, created };
        self.change(instant, &put.key, Some(entry));
        applied.push(Applied {
            key: put.key.clone(),
            before,
            after,
            writer: put.stamp.writer,
            attempt: put.stamp.attempt,
            durable: put.durable,
        });
        Outcome::Applied(version)
    }

    fn delete(&mut self, instant: u64, key: &Key, applied: &mut Vec<Applied>) -> Outcome {
        if let Some(entry) = self.records.get(key) {
            let before = Some(entry.value.clone());
            self.change(instant, key, None);
            applied.push(Applied::by_nobody(key.clone(), before, None));
        }
        self.counts.remove(key);
        Outcome::Deleted
    }

    fn change(&mut self, instant: u64, key: &Key, entry: Option<Entry>) {
        let before = match entry {
            Some(entry) => self.records.insert(key.clone(), entry),
            None => self.records.remove(key),
        };
        let past = self.past.entry(key.clone()).or_default();
        past.push_back((instant, before));
        if past.len() > MOST_PAST {
            past.pop_front();
        }
    }

    fn version(&mut self, put: &Put) -> Version {
        match self.flaw {
            Some(Flaw::VersionsRestart) => {
                let count = self.counts.entry(put.key.clone()).or_insert(0);
                *count += 1;
                Version::new(&count.to_string())
            }
            Some(Flaw::BlindSwap) | None => put.stamp.version(),
        }
    }

    fn read(&mut self, instant: u64, as_of: u64, read: &Read) -> Found {
        let age = |entry: &Entry| {
            let nanos = i64::try_from(instant.saturating_sub(entry.written)).unwrap_or(i64::MAX);
            Some(Duration::from_nanos(u64::try_from(nanos.saturating_add(self.skew)).unwrap_or(0)))
        };
        self.forgetting += 1;
        let forgotten = |entry: &&Entry| {
            self.forgets_the_new
                && entry.created + 3_000_000_000 > instant
                && self.forgetting.is_multiple_of(2)
        };
        match read {
            Read::Key { key, unless } => {
                let there = match as_of == instant {
                    true => self.records.get(key),
                    false => self.entry(key, as_of),
                };
                match there.filter(|entry| !forgotten(entry)) {
                    None => Found::Absent,
                    Some(entry) if unless.as_ref() == Some(&entry.version) => Found::Unchanged,
                    Some(entry) => Found::Record(record(key, entry, age(entry))),
                }
            }
            Read::Prefix(prefix) if as_of == instant => {
                let there = below(&self.records, prefix);
                Found::Records(there.map(|(key, entry)| record(key, entry, age(entry))).collect())
            }
            Read::Prefix(prefix) => {
                let there_now = below(&self.records, prefix).map(|(key, _)| key);
                let old = below(&self.past, prefix).map(|(key, _)| key);
                let keys: BTreeSet<&Key> = there_now.chain(old).collect();
                let there =
                    |key: &Key| self.entry(key, as_of).map(|entry| record(key, entry, age(entry)));
                Found::Records(keys.into_iter().filter_map(there).collect())
            }
        }
    }
}

/// What is under keys that begin so.
fn below<'a, T>(
    map: &'a BTreeMap<Key, T>,
    prefix: &'a Key,
) -> impl Iterator<Item = (&'a Key, &'a T)> {
    map.range(prefix..).take_while(|(key, _)| key.as_str().starts_with(prefix.as_str()))
}

fn record(key: &Key, entry: &Entry, age: Option<Duration>) -> Record {
    let value = entry.value.bytes().to_vec();
    Record { key: key.clone(), value, version: entry.version.clone(), age }
}
