//! What tests do to any store: exchanges of a few records, and what comes of them.

pub mod cost;
pub mod leases;
pub mod numbered;
pub mod versioned;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use incumbent_core::store::{
    ErrorKind, Exchange, Expect, Found, HintGuard, Key, Lane, Outcome, Put, Read, Record, Reply,
    Stamp, Store, StoreError, Write,
};

/// The cluster of all exchanges that name no other.
pub const CLUSTER: &str = "c";

/// Names that a store could take for something else, or for each other.
pub const HOSTILE: [&str; 20] = [
    " ",
    "'",
    "\"",
    "';DROP TABLE incumbent_records;--",
    "%",
    "_",
    "naïve",
    "nai\u{308}ve",
    "日本",
    "\u{10ffff}",
    "\u{feff}x",
    "\n",
    "A",
    "a",
    "../x",
    "$1",
    "?1",
    "\\",
    "{\"a\",NULL}",
    "NULL",
];

/// Runs a test on a runtime with several threads, so that races are real ones.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(future)
}

/// A name that starts so and that no other test uses.
#[must_use]
pub fn fresh(start: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::SeqCst);
    format!("{start}{}_{number}", std::process::id())
}

/// Sends an exchange.
///
/// # Errors
///
/// What the store says.
pub async fn send(
    store: &impl Store,
    lane: Lane,
    writes: Vec<Write>,
    reads: Vec<Read>,
) -> Result<Reply, StoreError> {
    store.exchange(CLUSTER, lane, Exchange { writes, reads }).await
}

/// One write and its outcome.
///
/// # Errors
///
/// What the store says.
///
/// # Panics
///
/// If the reply has another number of outcomes.
pub async fn write(store: &impl Store, write: Write) -> Result<Outcome, StoreError> {
    let mut reply = send(store, Lane::Change, vec![write], vec![]).await?;
    assert_eq!(reply.writes.len(), 1);
    Ok(reply.writes.remove(0))
}

/// A record, if there is one.
pub async fn find(store: &impl Store, key: &str) -> Option<Record> {
    find_in(store, CLUSTER, key).await
}

/// The same in another cluster.
///
/// # Panics
///
/// If the answer is neither a record nor that there is none.
pub async fn find_in(store: &impl Store, cluster: &str, key: &str) -> Option<Record> {
    let exchange = Exchange { writes: vec![], reads: vec![read(key)] };
    let reply = store.exchange(cluster, Lane::Watch, exchange).await.expect("a read");
    match reply.reads.into_iter().next() {
        Some(Found::Record(record)) => Some(record),
        Some(Found::Absent) => None,
        other => panic!("no record: {other:?}"),
    }
}

/// All records whose keys start so.
///
/// # Panics
///
/// If the answer is anything else.
pub async fn list(store: &impl Store, prefix: &str) -> Vec<Record> {
    let reads = vec![Read::Prefix(Key::new(prefix))];
    let reply = send(store, Lane::Watch, vec![], reads).await.expect("a read");
    match reply.reads.into_iter().next() {
        Some(Found::Records(records)) => records,
        other => panic!("no records: {other:?}"),
    }
}

/// Asks for a record, whatever its version.
#[must_use]
pub fn read(key: &str) -> Read {
    Read::Key { key: Key::new(key), unless: None }
}

fn put(key: &str, expect: Expect, stamp: Stamp, hint: bool, value: &str) -> Write {
    Write::Put(Put {
        key: Key::new(key),
        expect,
        value: value.as_bytes().to_vec(),
        stamp,
        hint,
        durable: true,
    })
}

/// URLs that are refused for good. The error names the value and the next step, and no password, which
/// is `hunter2` wherever there is one.
///
/// # Panics
///
/// If one of them is taken, or something else is said of it.
pub fn assert_refused<T>(
    cases: &[(&str, &str, &str)],
    parse: impl Fn(&str) -> Result<T, StoreError>,
) {
    for (url, value, step) in cases {
        let Err(error) = parse(url) else { panic!("{url} is taken") };
        assert_says(&error, ErrorKind::Rejected, &[value, step]);
        assert!(!error.message.contains("hunter2"), "{url}: {error}");
    }
}

/// # Panics
///
/// If the error is of another kind or lacks one of the words.
pub fn assert_says(error: &StoreError, kind: ErrorKind, words: &[&str]) {
    assert_eq!(error.kind, kind, "{error}");
    for word in words {
        assert!(error.message.contains(word), "no {word:?} in: {error}");
    }
}

/// Waits for something that must come, for a long time at most.
///
/// # Panics
///
/// If it doesn't come.
pub async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..3000 {
        if holds() {
            return;
        }
        pause(10).await;
    }
    panic!("{what} didn't come true");
}

/// Tries until it works, for a long time at most.
///
/// # Panics
///
/// If it never works.
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
        pause(50).await;
    }
    panic!("{what} didn't come back: {last:?}");
}

/// Tries a read until it works.
pub async fn until_readable(store: &impl Store) {
    recovered("reading", || send(store, Lane::Watch, vec![], vec![read("x")])).await;
}

/// Waits for so many milliseconds.
pub async fn pause(milliseconds: u64) {
    tokio::time::sleep(Duration::from_millis(milliseconds)).await;
}

/// Counts the hints of a cluster.
pub struct Hints {
    count: Arc<AtomicUsize>,
    guard: Option<HintGuard>,
}

impl Hints {
    /// From now on.
    ///
    /// # Panics
    ///
    /// If the store doesn't push.
    #[must_use]
    pub fn of(store: &impl Store, cluster: &str) -> Self {
        let count = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&count);
        let wake = Arc::new(move || {
            counter.fetch_add(1, Ordering::SeqCst);
        });
        Self { count, guard: Some(store.hints(cluster, wake).expect("the store pushes")) }
    }

    /// How many there were.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    /// Tells the count when the subscription is gone.
    pub fn counter(&self) -> impl Fn() -> usize + use<> {
        let count = Arc::clone(&self.count);
        move || count.load(Ordering::SeqCst)
    }

    /// Waits for the wake-up that comes once the subscription is there.
    pub async fn ready(self) -> Self {
        eventually("the subscription", || self.count() > 0).await;
        self
    }

    /// Ends the subscription.
    pub fn end(&mut self) {
        self.guard = None;
    }
}
