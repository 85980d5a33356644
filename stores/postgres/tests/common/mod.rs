//! What the tests of this store share.
#![allow(dead_code, unreachable_pub, unused_imports)] // Each test file uses a part of it.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, clippy::indexing_slicing)] // A test fails by panicking, its helpers too.

pub mod bouncer;
pub mod server;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use incumbent_core::store::{
    Exchange, Expect, Found, HintGuard, Key, Lane, Outcome, Put, Read, Record, Reply, Stamp, Store,
    StoreError, Version, Write,
};
use incumbent_postgres::PostgresStore;
use incumbent_proving::Proxy;
use tokio_postgres::{Client, NoTls};

pub use server::{Server, shared};

/// Runs a test on a runtime with several threads, so that races are real ones.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.expect("a runtime").block_on(future)
}

/// A schema that no other test uses.
pub fn fresh() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::SeqCst);
    format!("test_{}_{number}", std::process::id())
}

/// The URL of a schema behind a path.
pub fn through(proxy: &Proxy, schema: &str) -> String {
    format!("postgres://postgres@127.0.0.1:{}/postgres?schema={schema}", proxy.port())
}

pub async fn connect(url: &str) -> PostgresStore {
    PostgresStore::connect(url).await.unwrap_or_else(|error| panic!("the store opens: {error}"))
}

/// A connection as the application would have one.
pub async fn application(url: &str) -> Client {
    let base = url.split('?').next().expect("a URL");
    let (client, connection) = tokio_postgres::connect(base, NoTls).await.expect("a connection");
    tokio::runtime::Handle::current().spawn(async move {
        let _ = connection.await;
    });
    client
}

pub async fn send(
    store: &PostgresStore,
    lane: Lane,
    writes: Vec<Write>,
    reads: Vec<Read>,
) -> Result<Reply, StoreError> {
    store.exchange("c", lane, Exchange { writes, reads }).await
}

/// One write and its outcome.
pub async fn write(store: &PostgresStore, write: Write) -> Result<Outcome, StoreError> {
    let mut reply = send(store, Lane::Change, vec![write], vec![]).await?;
    assert_eq!(reply.writes.len(), 1);
    Ok(reply.writes.remove(0))
}

pub async fn find(store: &PostgresStore, key: &str) -> Option<Record> {
    find_in(store, "c", key).await
}

pub async fn find_in(store: &PostgresStore, cluster: &str, key: &str) -> Option<Record> {
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
    let value = format!("{{\"format\":1,\"attempt\":{attempt}}}");
    with_value(key, expect, attempt, hint, &value)
}

pub fn with_value(key: &str, expect: Expect, attempt: u64, hint: bool, value: &str) -> Write {
    let (key, value) = (Key::new(key), value.as_bytes().to_vec());
    Write::Put(Put { key, expect, value, stamp: stamp(attempt), hint })
}

/// Waits for something that must come, for a long time at most.
pub async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..3000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{what} didn't come true");
}

/// Counts the hints of a cluster.
pub struct Hints {
    count: Arc<AtomicUsize>,
    _guard: HintGuard,
}

impl Hints {
    pub fn of(store: &PostgresStore, cluster: &str) -> Self {
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
