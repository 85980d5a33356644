//! The records of all clusters of one process, under one lock.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use incumbent_core::store::{
    Answer, Capabilities, Exchange, Expect, Found, HintGuard, Key, Lane, Outcome, Put, Read,
    Record, Reply, Store, Version, Wake, Write,
};

/// A store in memory. Clones share their records.
#[derive(Clone, Default)]
pub struct MemoryStore {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Default)]
struct Shared {
    clusters: BTreeMap<String, Records>,
    subscribers: BTreeMap<u64, Subscriber>,
    next_subscriber: u64,
}

type Records = BTreeMap<Key, Stored>;

struct Stored {
    value: Vec<u8>,
    version: Version,
}

struct Subscriber {
    cluster: String,
    wake: Wake,
}

impl MemoryStore {
    /// A store without records.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn apply(&self, cluster: &str, exchange: Exchange) -> Reply {
        let mut shared = lock(&self.shared);
        let mut reply = Reply::default();
        let mut hint = false;
        // A cluster that is only asked about is not made, so that mistyped names leave no trace.
        if !exchange.writes.is_empty() {
            let records = shared.clusters.entry(cluster.to_owned()).or_default();
            for write in exchange.writes {
                let (outcome, hints) = apply_write(records, write);
                hint |= hints;
                reply.writes.push(outcome);
            }
        }
        let none = Records::new();
        let records = shared.clusters.get(cluster).unwrap_or(&none);
        reply.reads = exchange.reads.iter().map(|read| answer_read(records, read)).collect();
        let wakes = if hint { shared.wakes(cluster) } else { Vec::new() };
        drop(shared);
        // The lock is free by now: a wake may come back into this store.
        for wake in wakes {
            wake();
        }
        reply
    }
}

impl Store for MemoryStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            kind: "memory",
            push: true,
            clock: false,
            max_operations: 10_000,
            max_value: 16 * 1024 * 1024,
            durable: false,
            shared: false,
        }
    }

    fn exchange<'a>(&'a self, cluster: &'a str, _lane: Lane, exchange: Exchange) -> Answer<'a> {
        // Applied when polled, not when called: a future that nobody awaits has sent nothing.
        Box::pin(async move { Ok(self.apply(cluster, exchange)) })
    }

    fn hints(&self, cluster: &str, wake: Wake) -> Option<HintGuard> {
        let mut shared = lock(&self.shared);
        let id = shared.next_subscriber;
        shared.next_subscriber += 1;
        shared.subscribers.insert(id, Subscriber { cluster: cluster.to_owned(), wake });
        Some(Box::new(Subscription { id, shared: Arc::downgrade(&self.shared) }))
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shared = lock(&self.shared);
        f.debug_struct("MemoryStore")
            .field("clusters", &shared.clusters.len())
            .field("subscribers", &shared.subscribers.len())
            .finish()
    }
}

impl Shared {
    fn wakes(&self, cluster: &str) -> Vec<Wake> {
        self.subscribers
            .values()
            .filter(|subscriber| subscriber.cluster == cluster)
            .map(|subscriber| Arc::clone(&subscriber.wake))
            .collect()
    }
}

/// Unsubscribes when dropped. It doesn't keep the records alive.
struct Subscription {
    id: u64,
    shared: Weak<Mutex<Shared>>,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.upgrade() {
            let removed = lock(&shared).subscribers.remove(&self.id);
            // What the wake captured may itself come back here when dropped, so the lock goes
            // first.
            drop(removed);
        }
    }
}

/// Nothing below the lock calls foreign code, so a poisoned lock still guards whole records.
fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Applies one write and says whether others should be woken for it.
fn apply_write(records: &mut Records, write: Write) -> (Outcome, bool) {
    match write {
        Write::Delete(key) => {
            records.remove(&key);
            (Outcome::Deleted, false)
        }
        Write::Put(put) => {
            let hint = put.hint;
            match apply_put(records, put) {
                Some(version) => (Outcome::Applied(version), hint),
                None => (Outcome::Refused, false),
            }
        }
    }
}

fn apply_put(records: &mut Records, put: Put) -> Option<Version> {
    let expected = match (&put.expect, records.get(&put.key)) {
        (Expect::Absent, found) => found.is_none(),
        (Expect::Version(version), Some(found)) => found.version == *version,
        (Expect::Version(_), None) => false,
    };
    if !expected {
        return None;
    }
    let version = put.stamp.version();
    records.insert(put.key, Stored { value: put.value, version: version.clone() });
    Some(version)
}

fn answer_read(records: &Records, read: &Read) -> Found {
    match read {
        Read::Key { key, unless } => match records.get(key) {
            None => Found::Absent,
            Some(stored) if unless.as_ref() == Some(&stored.version) => Found::Unchanged,
            Some(stored) => Found::Record(record(key, stored)),
        },
        Read::Prefix(prefix) => Found::Records(
            records
                .range((Bound::Included(prefix.clone()), Bound::Unbounded))
                .take_while(|(key, _)| key.as_str().starts_with(prefix.as_str()))
                .map(|(key, stored)| record(key, stored))
                .collect(),
        ),
    }
}

fn record(key: &Key, stored: &Stored) -> Record {
    Record {
        key: key.clone(),
        value: stored.value.clone(),
        version: stored.version.clone(),
        age: None,
    }
}
