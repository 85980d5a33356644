//! Runs of seeds, one after the other or many at once.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use incumbent::DriverMutant;
use incumbent::testing::World;

use crate::book::{Counts, Violation};
use crate::stage;

/// How a run ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What must not be, if anything.
    pub violation: Option<Violation>,
    /// What happened, line by line, if that was asked for.
    pub lines: Vec<String>,
    /// The same for all runs of a seed.
    pub digest: u64,
    /// How much happened.
    pub counts: Counts,
}

/// A seed that failed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The seed.
    pub seed: u64,
    /// What it violated.
    pub violation: Violation,
}

/// Plays one seed.
#[must_use]
pub fn play(seed: u64, mutant: Option<DriverMutant>, tells: bool) -> Outcome {
    let played = catch_unwind(AssertUnwindSafe(|| {
        World::run(seed, |world| async move {
            let book = stage::play(world, seed, mutant, tells).await;
            Outcome {
                violation: book.violation(),
                lines: book.lines(),
                digest: book.digest(),
                counts: book.counts(),
            }
        })
    }));
    played.unwrap_or_else(|_| {
        let story = "the run itself panicked".to_owned();
        let violation = Violation { invariant: "no-panic", at: Duration::ZERO, story };
        Outcome {
            violation: Some(violation),
            lines: Vec::new(),
            digest: 0,
            counts: Counts::default(),
        }
    })
}

/// Plays many seeds on all processors; gives what happened in all, and those that failed, up to
/// a number.
pub fn play_many(
    first: u64,
    seeds: u64,
    mutant: Option<DriverMutant>,
    most: usize,
) -> (Counts, Vec<Failure>) {
    let next = AtomicU64::new(first);
    let total = Mutex::new((Counts::default(), Vec::new()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let enough =
                        || total.lock().unwrap_or_else(PoisonError::into_inner).1.len() >= most;
                    if seed >= first + seeds || enough() {
                        return;
                    }
                    let outcome = play(seed, mutant, false);
                    let mut total = total.lock().unwrap_or_else(PoisonError::into_inner);
                    total.0.add(&outcome.counts);
                    total.1.extend(outcome.violation.map(|violation| Failure { seed, violation }));
                }
            });
        }
    });
    let (counts, mut failures) = total.into_inner().unwrap_or_else(PoisonError::into_inner);
    failures.sort_by_key(|failure| failure.seed);
    (counts, failures)
}

impl Counts {
    fn add(&mut self, other: &Self) {
        self.elections += other.elections;
        self.steps += other.steps;
        self.faults += other.faults;
        self.failures += other.failures;
        self.millis += other.millis;
    }
}
