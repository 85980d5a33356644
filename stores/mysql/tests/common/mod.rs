//! What the tests of this store share.
#![allow(dead_code, unreachable_pub, unused_imports)] // Each test file uses a part of it.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, clippy::indexing_slicing)] // A test fails by panicking, its helpers too.

pub mod server;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use incumbent_core::store::{
    ErrorKind, Exchange, Expect, Found, Key, Lane, Outcome, Put, Read, Record, Reply, Stamp, Store,
    StoreError, Version, Write,
};
use incumbent_mysql::MysqlStore;
use incumbent_proving::Proxy;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, OptsBuilder};

pub use server::{Server, shared};

/// Runs a test on a runtime with several threads, so that races are real ones.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.expect("a runtime").block_on(future)
}

/// A prefix that no other test uses.
pub fn fresh() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::SeqCst);
    format!("t{}_{number}_", std::process::id())
}

/// The prefix in a URL.
pub fn prefix(url: &str) -> &str {
    let rest = url.split("prefix=").nth(1).expect("a prefix");
    rest.split('&').next().expect("a prefix")
}

/// The URL of a prefix behind a path.
pub fn through(proxy: &Proxy, prefix: &str) -> String {
    format!("mysql://root@127.0.0.1:{}/app?prefix={prefix}", proxy.port())
}

pub async fn connect(url: &str) -> MysqlStore {
    MysqlStore::connect(url).await.unwrap_or_else(|error| panic!("the store opens: {error}"))
}

/// A connection as the application would have one.
pub async fn application(url: &str) -> Conn {
    Conn::new(opts(url)).await.expect("a connection")
}

/// The driver's options for the database in a URL. Left alone it would go on over a socket.
pub fn opts(url: &str) -> OptsBuilder {
    let base = url.split('?').next().expect("a URL").replace("mariadb://", "mysql://");
    OptsBuilder::from_opts(Opts::from_url(&base).expect("a URL")).prefer_socket(false)
}

/// Runs statements that bring no rows.
pub async fn run(conn: &mut Conn, sql: &str) {
    conn.query_drop(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

pub async fn send(
    store: &MysqlStore,
    lane: Lane,
    writes: Vec<Write>,
    reads: Vec<Read>,
) -> Result<Reply, StoreError> {
    store.exchange("c", lane, Exchange { writes, reads }).await
}

/// One write and its outcome.
pub async fn write(store: &MysqlStore, write: Write) -> Result<Outcome, StoreError> {
    let mut reply = send(store, Lane::Change, vec![write], vec![]).await?;
    assert_eq!(reply.writes.len(), 1);
    Ok(reply.writes.remove(0))
}

pub async fn find(store: &MysqlStore, key: &str) -> Option<Record> {
    find_in(store, "c", key).await
}

pub async fn find_in(store: &MysqlStore, cluster: &str, key: &str) -> Option<Record> {
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

/// Creates a record.
pub fn create(key: &str, attempt: u64) -> Write {
    put(key, Expect::Absent, attempt)
}

/// Swaps a record.
pub fn change(key: &str, from: u64, attempt: u64) -> Write {
    put(key, Expect::Version(version(from)), attempt)
}

pub fn put(key: &str, expect: Expect, attempt: u64) -> Write {
    with_value(key, expect, attempt, &format!("{{\"format\":1,\"attempt\":{attempt}}}"))
}

pub fn with_value(key: &str, expect: Expect, attempt: u64, value: &str) -> Write {
    let (key, value) = (Key::new(key), value.as_bytes().to_vec());
    Write::Put(Put { key, expect, value, stamp: stamp(attempt), hint: true })
}

pub fn assert_says(error: &StoreError, kind: ErrorKind, words: &[&str]) {
    assert_eq!(error.kind, kind, "{error}");
    for word in words {
        assert!(error.message.contains(word), "no {word:?} in: {error}");
    }
}

/// Tries until it works, for a long time at most.
pub async fn recovered<T, F>(what: &str, mut attempt: impl FnMut() -> F) -> T
where
    F: Future<Output = Result<T, StoreError>>,
{
    let mut last = None;
    for _ in 0..600 {
        match attempt().await {
            Ok(done) => return done,
            Err(error) => last = Some(error),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{what} didn't come back: {last:?}");
}
