//! What the tests of this store share.
#![allow(dead_code, unreachable_pub, unused_imports)] // Each test file uses a part of it.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, clippy::indexing_slicing)] // A test fails by panicking, its helpers too.

pub mod http;
pub mod server;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use incumbent_core::store::{
    ErrorKind, Exchange, Expect, Found, HintGuard, Key, Lane, Outcome, Put, Read, Record, Reply,
    Stamp, Store, StoreError, Version, Write,
};
use incumbent_etcd::EtcdStore;
use incumbent_proving::Proxy;

pub use server::{Server, shared};

/// Runs a test on a runtime with several threads, so that races are real ones.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(future)
}

/// A prefix that no other test uses.
pub fn fresh() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::SeqCst);
    format!("/test-{}-{number}", std::process::id())
}

/// The URL of a prefix behind a path.
pub fn through(proxy: &Proxy, prefix: &str) -> String {
    format!("etcd://127.0.0.1:{}{prefix}", proxy.port())
}

pub async fn connect(url: &str) -> EtcdStore {
    EtcdStore::connect(url).await.unwrap_or_else(|error| panic!("the store opens: {error}"))
}

pub async fn send(
    store: &EtcdStore,
    lane: Lane,
    writes: Vec<Write>,
    reads: Vec<Read>,
) -> Result<Reply, StoreError> {
    store.exchange("c", lane, Exchange { writes, reads }).await
}

/// One write and its outcome.
pub async fn write(store: &EtcdStore, write: Write) -> Result<Outcome, StoreError> {
    let mut reply = send(store, Lane::Change, vec![write], vec![]).await?;
    assert_eq!(reply.writes.len(), 1);
    Ok(reply.writes.remove(0))
}

/// One write that must apply, and its version.
pub async fn applied(store: &EtcdStore, what: Write) -> Version {
    match write(store, what).await {
        Ok(Outcome::Applied(version)) => version,
        other => panic!("the write should apply: {other:?}"),
    }
}

pub async fn find(store: &EtcdStore, key: &str) -> Option<Record> {
    find_in(store, "c", key).await
}

pub async fn find_in(store: &EtcdStore, cluster: &str, key: &str) -> Option<Record> {
    let exchange = Exchange { writes: vec![], reads: vec![read(key)] };
    let reply = store.exchange(cluster, Lane::Watch, exchange).await.expect("a read");
    match reply.reads.into_iter().next() {
        Some(Found::Record(record)) => Some(record),
        _ => None,
    }
}

pub fn read(key: &str) -> Read {
    Read::Key { key: Key::new(key), unless: None }
}

/// Creates a record, quietly.
pub fn create(key: &str, value: &str) -> Write {
    put(key, Expect::Absent, value, false)
}

/// Swaps a record, quietly: a beat.
pub fn beat(key: &str, from: &Version, value: &str) -> Write {
    put(key, Expect::Version(from.clone()), value, false)
}

/// Swaps a record and tells others.
pub fn change(key: &str, from: &Version, value: &str) -> Write {
    put(key, Expect::Version(from.clone()), value, true)
}

pub fn put(key: &str, expect: Expect, value: &str, hint: bool) -> Write {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let attempt = NEXT.fetch_add(1, Ordering::SeqCst);
    let stamp = Stamp { writer: u64::from(std::process::id()), attempt };
    Write::Put(Put { key: Key::new(key), expect, value: value.as_bytes().to_vec(), stamp, hint })
}

pub fn assert_says(error: &StoreError, kind: ErrorKind, words: &[&str]) {
    assert_eq!(error.kind, kind, "{error}");
    for word in words {
        assert!(error.message.contains(word), "no {word:?} in: {error}");
    }
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

/// Tries a read until it works.
pub async fn until_readable(store: &EtcdStore) {
    for _ in 0..300 {
        if send(store, Lane::Watch, vec![], vec![read("x")]).await.is_ok() {
            return;
        }
        pause(100).await;
    }
    panic!("reads never worked again");
}

pub async fn pause(milliseconds: u64) {
    tokio::time::sleep(Duration::from_millis(milliseconds)).await;
}

/// Counts the hints of a cluster.
pub struct Hints {
    count: Arc<AtomicUsize>,
    _guard: HintGuard,
}

impl Hints {
    pub fn of(store: &EtcdStore, cluster: &str) -> Self {
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

    /// Waits for the wake-up that comes once the watch is there.
    pub async fn ready(self) -> Self {
        eventually("the watch", || self.count() > 0).await;
        self
    }
}
