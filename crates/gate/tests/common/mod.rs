//! A stale leader races a new one at a gate.
#![allow(dead_code, unreachable_pub)] // Each test file uses a part of it.
#![allow(clippy::expect_used, clippy::panic)] // A test fails by panicking, its helpers too.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

pub const OLD: u64 = 7;
pub const NEW: u64 = 8;

pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(3).enable_all().build();
    runtime.expect("a runtime").block_on(future)
}

/// A pause as a garbage collector makes one, at the worst moment.
pub async fn pause() {
    tokio::time::sleep(Duration::from_millis(2)).await;
}

/// How a writer goes about it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Way {
    /// Through the gate.
    Gate,
    /// It asks the gate, and writes afterwards: what people do without one.
    AskFirst,
}

/// One connection to a resource whose data says which term wrote it last.
pub trait Resource: Send + 'static {
    /// Writes the term as data, the new one in the best way that the others leave it, and says whether it was let through. Panics if nobody knows.
    fn write(&mut self, term: u64, way: Way) -> impl Future<Output = bool> + Send;

    /// The data.
    fn data(&mut self) -> impl Future<Output = u64> + Send;
}

/// How often data of the old term came after the new one had gone through the gate. Each round has a
/// resource of its own; `open` makes a connection to that of a round.
pub async fn stale<R: Resource, F: Future<Output = R>>(
    rounds: u64,
    way: Way,
    open: impl Fn(u64) -> F,
) -> u64 {
    let (mut stale, mut before) = (0, 0);
    for round in 0..rounds {
        let taken = Arc::new(AtomicBool::new(false));
        let written = Arc::new(AtomicU64::new(0));
        let mut old = Vec::new();
        for _ in 0..4 {
            let mut resource = open(round).await;
            let (taken, written) = (Arc::clone(&taken), Arc::clone(&written));
            old.push(tokio::runtime::Handle::current().spawn(async move {
                // It goes on until long after, as one that knows nothing does.
                let mut late = 0;
                while late < 5 {
                    late += u32::from(taken.load(Ordering::SeqCst));
                    let through = resource.write(OLD, way).await;
                    written.fetch_add(u64::from(through), Ordering::SeqCst);
                }
            }));
        }
        let mut new = open(round).await;
        while written.load(Ordering::SeqCst) < 4 {
            pause().await;
        }
        before += written.load(Ordering::SeqCst);
        // Where a write is based on what was there, others may be in its way, but not for good.
        let mut tries = 0;
        while !new.write(NEW, way).await {
            tries += 1;
            assert!(tries < 1000, "a higher term is let through");
        }
        taken.store(true, Ordering::SeqCst);
        if way == Way::Gate {
            assert_eq!(new.data().await, NEW, "overwritten at once, or never written");
        }
        for writer in old {
            writer.await.expect("no panic");
        }
        stale += u64::from(new.data().await != NEW);
    }
    println!("{way:?}: {before} writes of the old term before, {stale} of {rounds} rounds stale");
    assert!(before >= 4 * rounds);
    stale
}

/// Nothing stale gets through the gate, and the same race shows something where one asks first.
pub async fn holds<R: Resource, F: Future<Output = R>>(rounds: u64, open: impl Fn(Way, u64) -> F) {
    let through = stale(rounds, Way::Gate, |round| open(Way::Gate, round)).await;
    assert_eq!(through, 0, "stale writes got through the gate");
    let through = stale(rounds, Way::AskFirst, |round| open(Way::AskFirst, round)).await;
    assert!(through > 0, "the race shows nothing");
}
