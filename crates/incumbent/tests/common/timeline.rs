//! A wall clock that a test sets, and what ran by it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use incumbent::{Run, Schedule};

/// From one tick to the next.
pub const MINUTE: Duration = Duration::from_secs(60);

/// A wall clock. It stands still unless it is set.
#[derive(Clone)]
pub struct Wall(Arc<AtomicU64>);

impl Wall {
    /// In the middle of the minute of this number, many years after 1970.
    pub fn at(minute: u64) -> Self {
        let wall = Self(Arc::default());
        wall.set(minute);
        wall
    }

    pub fn set(&self, minute: u64) {
        let since = time(minute).duration_since(UNIX_EPOCH).expect("after 1970") + MINUTE / 2;
        self.0.store(since.as_millis() as u64, Ordering::SeqCst);
    }

    pub fn advance(&self, span: Duration) {
        self.0.fetch_add(span.as_millis() as u64, Ordering::SeqCst);
    }

    /// A tick at the beginning of each minute, by this clock, with short pauses after errors.
    pub fn minutely(&self) -> Schedule {
        let wall = Arc::clone(&self.0);
        let now = move || UNIX_EPOCH + Duration::from_millis(wall.load(Ordering::SeqCst));
        let pauses = (Duration::from_millis(50), Duration::from_millis(200));
        Schedule::every(MINUTE).wall_clock(now).retry_pauses(pauses.0, pauses.1)
    }
}

/// The beginning of a minute.
pub fn time(minute: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_700_000_040) + MINUTE * u32::try_from(minute).expect("few")
}

/// Which minute a time is.
pub fn minute(time: SystemTime) -> u64 {
    let since = time.duration_since(self::time(0)).expect("after the beginning");
    since.as_secs() / 60
}

/// What ran, in order.
#[derive(Clone, Default)]
pub struct Runs(Arc<Mutex<Entries>>);

#[derive(Default)]
struct Entries {
    all: Vec<Entry>,
    running: u32,
    mistakes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub node: String,
    pub minute: u64,
    pub since: u64,
    pub fence: u64,
}

/// A run, until this is dropped.
pub struct Entered(Runs, bool);

impl Runs {
    /// Writes down that a run has begun. No other may be under way that is trusted, nor may the
    /// fence go back.
    pub fn enter(&self, node: &str, run: &Run) -> Entered {
        let fence = run.fence().as_u64();
        let (minute, since) = (minute(run.scheduled()), minute(run.since()));
        let mut entries = self.entries();
        let counts = run.is_held();
        if counts && entries.running > 0 {
            entries.mistakes.push(format!("minute {minute} runs beside another on {node}"));
        }
        if entries.all.last().is_some_and(|last| last.fence > fence) {
            entries.mistakes.push(format!("the fence goes back to {fence} on {node}"));
        }
        entries.running += u32::from(counts);
        entries.all.push(Entry { node: node.to_owned(), minute, since, fence });
        Entered(self.clone(), counts)
    }

    pub fn all(&self) -> Vec<Entry> {
        self.entries().all.clone()
    }

    pub fn minutes(&self) -> Vec<u64> {
        self.entries().all.iter().map(|entry| entry.minute).collect()
    }

    /// How often each minute ran.
    pub fn counts(&self) -> BTreeMap<u64, u32> {
        let mut counts = BTreeMap::new();
        for minute in self.minutes() {
            *counts.entry(minute).or_default() += 1;
        }
        counts
    }

    /// Fails the test if two ran at once, or a fence went back.
    pub fn check(&self) {
        assert!(self.entries().mistakes.is_empty(), "{:?}", self.entries().mistakes);
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut entries = self.0.entries();
        entries.running = entries.running.saturating_sub(u32::from(self.1));
    }
}
