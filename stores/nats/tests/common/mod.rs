//! What the tests of this store share.
#![allow(dead_code, unreachable_pub, unused_imports)] // Each test file uses a part of it.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, clippy::indexing_slicing)] // A test fails by panicking, its helpers too.

pub mod server;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use incumbent_core::store::{
    Exchange, Expect, Found, HintGuard, Key, Lane, Outcome, Put, Read, Record, Reply, Stamp, Store,
    StoreError, Version, Write,
};
use incumbent_nats::NatsStore;
use incumbent_proving::Proxy;

pub use server::{Server, shared};

/// A bucket that no other test uses.
pub fn fresh() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::SeqCst);
    format!("test-{}-{number}", std::process::id())
}

/// The URL of a bucket behind a path.
pub fn through(proxy: &Proxy, bucket: &str) -> String {
    format!("nats://127.0.0.1:{}?bucket={bucket}", proxy.port())
}

pub async fn open(url: &str) -> NatsStore {
    NatsStore::connect(url).await.unwrap_or_else(|error| panic!("the store opens: {error}"))
}

pub async fn pause(milliseconds: u64) {
    tokio::time::sleep(Duration::from_millis(milliseconds)).await;
}

pub async fn send(
    store: &NatsStore,
    lane: Lane,
    writes: Vec<Write>,
    reads: Vec<Read>,
) -> Result<Reply, StoreError> {
    store.exchange("c", lane, Exchange { writes, reads }).await
}

/// One write and its outcome.
pub async fn write(store: &NatsStore, write: Write) -> Result<Outcome, StoreError> {
    let mut reply = send(store, Lane::Change, vec![write], vec![]).await?;
    assert_eq!(reply.writes.len(), 1);
    Ok(reply.writes.remove(0))
}

/// One write that has to apply, and the version that it made.
pub async fn apply(store: &NatsStore, put: Write) -> Version {
    match write(store, put).await {
        Ok(Outcome::Applied(version)) => version,
        other => panic!("it was not applied: {other:?}"),
    }
}

pub async fn find(store: &NatsStore, key: &str) -> Option<Record> {
    let reply = send(store, Lane::Watch, vec![], vec![read(key)]).await.expect("a read");
    match reply.reads.into_iter().next() {
        Some(Found::Record(record)) => Some(record),
        _ => None,
    }
}

pub async fn list(store: &NatsStore, prefix: &str) -> Vec<Record> {
    let reads = vec![Read::Prefix(Key::new(prefix))];
    let reply = send(store, Lane::Watch, vec![], reads).await.expect("a read");
    match reply.reads.into_iter().next() {
        Some(Found::Records(records)) => records,
        other => panic!("no records: {other:?}"),
    }
}

pub fn read(key: &str) -> Read {
    Read::Key { key: Key::new(key), unless: None }
}

pub fn create(key: &str) -> Write {
    put(key, Expect::Absent, "{}", false)
}

/// Swaps a record, quietly: a beat.
pub fn beat(key: &str, from: &Version, value: &str) -> Write {
    put(key, Expect::Version(from.clone()), value, false)
}

pub fn put(key: &str, expect: Expect, value: &str, hint: bool) -> Write {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let stamp = Stamp { writer: 7, attempt: NEXT.fetch_add(1, Ordering::SeqCst) };
    Write::Put(Put { key: Key::new(key), expect, value: value.into(), stamp, hint })
}

/// Waits for something that must come, for a long time at most.
pub async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..3000 {
        if holds() {
            return;
        }
        pause(10).await;
    }
    panic!("{what} didn't come true");
}

/// Counts the hints of a cluster.
pub struct Hints {
    count: Arc<AtomicUsize>,
    _guard: HintGuard,
}

impl Hints {
    pub fn of(store: &NatsStore, cluster: &str) -> Self {
        let count = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&count);
        let wake = Arc::new(move || {
            counter.fetch_add(1, Ordering::SeqCst);
        });
        Self { count, _guard: store.hints(cluster, wake).expect("the store pushes") }
    }

    pub fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    /// Waits for the wake-up that comes once the subscription is there.
    pub async fn ready(self) -> Self {
        eventually("the subscription", || self.count() > 0).await;
        self
    }
}
