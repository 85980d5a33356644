//! What the tests of this store share.
#![allow(dead_code, unreachable_pub, unused_imports)] // Each test file uses a part of it.
#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // A test fails by panicking.

pub mod server;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use incumbent_core::store::{
    Exchange, Expect, Found, HintGuard, Key, Lane, Outcome, Put, Read, Record, Reply, Stamp, Store,
    StoreError, Version, Write,
};
use incumbent_proving::Proxy;
use incumbent_redis::RedisStore;

pub use server::{Server, operator, shared};

/// A name that no other test uses, in this run or another.
pub fn fresh() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::SeqCst);
    format!("test-{:x}-{number}", incumbent_testkit::Rng::fresh_seed())
}

/// The URL of a server behind a path.
pub fn through(proxy: &Proxy) -> String {
    format!("redis://127.0.0.1:{}", proxy.port())
}

pub async fn open(url: &str) -> RedisStore {
    RedisStore::connect(url).await.expect("the store opens")
}

pub async fn send(
    store: &RedisStore,
    lane: Lane,
    writes: Vec<Write>,
    reads: Vec<Read>,
) -> Result<Reply, StoreError> {
    store.exchange("test", lane, Exchange { writes, reads }).await
}

pub async fn write(store: &RedisStore, write: Write) -> Result<Outcome, StoreError> {
    let reply = send(store, Lane::Change, vec![write], vec![]).await;
    reply.map(|mut reply| reply.writes.remove(0))
}

pub async fn find(store: &RedisStore, key: &str) -> Option<Record> {
    let found = send(store, Lane::Watch, vec![], vec![read(key)]).await.expect("a read");
    match found.reads.into_iter().next() {
        Some(Found::Record(record)) => Some(record),
        Some(Found::Absent) => None,
        other => panic!("unexpected {other:?}"),
    }
}

pub async fn list(store: &RedisStore, prefix: &str) -> Vec<Record> {
    let reads = vec![Read::Prefix(Key::new(prefix))];
    let found = send(store, Lane::Watch, vec![], reads).await.expect("a read");
    match found.reads.into_iter().next() {
        Some(Found::Records(records)) => records,
        other => panic!("unexpected {other:?}"),
    }
}

pub fn read(key: &str) -> Read {
    Read::Key { key: Key::new(key), unless: None }
}

pub fn stamp(attempt: u64) -> Stamp {
    Stamp { writer: u64::from(std::process::id()), attempt }
}

pub fn version(attempt: u64) -> Version {
    stamp(attempt).version()
}

pub fn applied(attempt: u64) -> Outcome {
    Outcome::Applied(version(attempt))
}

/// Creates a record, quietly.
pub fn create(key: &str, attempt: u64) -> Write {
    put(key, Expect::Absent, attempt, false)
}

/// Swaps a record, quietly: a beat.
pub fn beat(key: &str, from: u64, attempt: u64) -> Write {
    put(key, Expect::Version(version(from)), attempt, false)
}

/// Swaps a record and tells others.
pub fn change(key: &str, from: u64, attempt: u64) -> Write {
    put(key, Expect::Version(version(from)), attempt, true)
}

pub fn put(key: &str, expect: Expect, attempt: u64, hint: bool) -> Write {
    let value = format!("{{\"format\":1,\"attempt\":{attempt}}}").into_bytes();
    Write::Put(Put { key: Key::new(key), expect, value, stamp: stamp(attempt), hint })
}

pub async fn pause(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

/// Waits for something that must come, for a long time at most.
pub async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..2000 {
        if holds() {
            return;
        }
        pause(10).await;
    }
    panic!("{what} didn't come true");
}

/// Counts the hints of the cluster.
pub struct Hints {
    count: Arc<AtomicUsize>,
    guard: Option<HintGuard>,
}

impl Hints {
    pub fn of(store: &RedisStore) -> Self {
        let count = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&count);
        let wake = Arc::new(move || {
            counter.fetch_add(1, Ordering::SeqCst);
        });
        Self { count, guard: Some(store.hints("test", wake).expect("the store pushes")) }
    }

    pub fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    pub fn end(&mut self) {
        self.guard = None;
    }
}
