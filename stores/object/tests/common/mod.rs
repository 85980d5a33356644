//! What the tests of this store share.
#![allow(dead_code, unreachable_pub)] // Each test file uses a part of it.
#![allow(clippy::expect_used, clippy::panic)] // A test fails by panicking, its helpers too.

pub mod canned;
pub mod hashed;

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};

use incumbent_core::store::{
    Exchange, Expect, Found, Key, Lane, Outcome, Put, Read, Record, Reply, Stamp, Store,
    StoreError, Version, Write,
};
use incumbent_object::BucketStore;

pub const CLUSTER: &str = "c";

pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(future)
}

pub async fn connect(url: &str) -> BucketStore {
    BucketStore::connect(url).await.expect("the store is reached")
}

/// A stamp that was never used before.
pub fn stamp() -> Stamp {
    static ATTEMPTS: AtomicU64 = AtomicU64::new(1);
    let attempt = ATTEMPTS.fetch_add(1, Ordering::SeqCst);
    Stamp { writer: u64::from(std::process::id()), attempt }
}

pub fn put(key: &str, expect: Expect, value: &str) -> Write {
    let (key, value) = (Key::new(key), value.as_bytes().to_vec());
    Write::Put(Put { key, expect, value, stamp: stamp(), hint: false })
}

pub fn create(key: &str) -> Write {
    put(key, Expect::Absent, "{}")
}

pub fn read(key: &str) -> Read {
    Read::Key { key: Key::new(key), unless: None }
}

pub async fn send(
    store: &BucketStore,
    lane: Lane,
    writes: Vec<Write>,
    reads: Vec<Read>,
) -> Result<Reply, StoreError> {
    store.exchange(CLUSTER, lane, Exchange { writes, reads }).await
}

/// Writes once, and gives what came of it.
pub async fn write(store: &BucketStore, write: Write) -> Result<Outcome, StoreError> {
    let reply = send(store, Lane::Change, vec![write], vec![]).await?;
    Ok(reply.writes.into_iter().next().expect("an outcome"))
}

/// Writes something that has to apply.
pub async fn applied(store: &BucketStore, put: Write) -> Version {
    match write(store, put).await.expect("a write") {
        Outcome::Applied(version) => version,
        other => panic!("{other:?}"),
    }
}

pub async fn find(store: &BucketStore, key: &str) -> Option<Record> {
    let reply = send(store, Lane::Watch, vec![], vec![read(key)]).await.expect("a read");
    match reply.reads.into_iter().next() {
        Some(Found::Record(record)) => Some(record),
        Some(Found::Absent) => None,
        other => panic!("{other:?}"),
    }
}
