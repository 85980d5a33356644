//! Transactions that race against take-overs, and how many of them were stale.
//!
//! No clock is asked: whoever has taken the lease counts at once what was committed under the term
//! before. Whatever is there of that term in the end and wasn't there then was committed by a
//! leader whose term was over.

pub mod sql;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// One connection of a leader: runs a transaction under this term, and says whether it committed.
pub type Leader = Box<dyn FnMut(u64) -> bool + Send>;

/// Who takes over.
pub trait Taker {
    /// Takes the lease from the term before, and returns when that is done.
    fn take(&mut self, term: u64);

    /// How many transactions of each term have been committed.
    fn committed(&mut self) -> BTreeMap<u64, u64>;
}

/// What came of a race.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Transactions that were committed.
    pub committed: u64,
    /// Transactions that were not.
    pub refused: u64,
    /// How often the lease was taken.
    pub terms: u64,
    /// Transactions that were committed after the next term had begun.
    pub stale: u64,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { committed, refused, terms, stale } = self;
        write!(f, "{committed} committed, {refused} refused, {terms} take-overs, {stale} stale")
    }
}

/// How many transactions race at each isolation level: more on request, because it takes its time.
#[must_use]
pub fn transactions() -> u64 {
    let full = std::env::var_os("INCUMBENT_TEST_FULL").is_some_and(|value| value == "1");
    if full { 10_000 } else { 250 }
}

/// Lets leaders run so many transactions while the lease, held in term 1, is taken over and over.
pub fn race(transactions: u64, leaders: Vec<Leader>, taker: &mut dyn Taker) -> Tally {
    let (term, left) = (AtomicU64::new(1), AtomicU64::new(transactions));
    let (done, refused) = (AtomicBool::new(false), AtomicU64::new(0));
    let count = leaders.len() as u64;
    let ended = AtomicU64::new(0);
    let mut seen: BTreeMap<u64, u64> = BTreeMap::new();
    let (term, left, done, refused, ended) = (&term, &left, &done, &refused, &ended);
    thread::scope(|scope| {
        for (number, mut leader) in leaders.into_iter().enumerate() {
            scope.spawn(move || {
                let mut turn = number as u64;
                let fewer = |left: u64| left.checked_sub(1);
                while left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fewer).is_ok() {
                    let own = term.load(Ordering::SeqCst);
                    // As a process that was paused here would.
                    turn = turn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    thread::park_timeout(Duration::from_micros((turn >> 40) % 3_000));
                    if !leader(own) {
                        refused.fetch_add(1, Ordering::SeqCst);
                    }
                }
                if ended.fetch_add(1, Ordering::SeqCst) + 1 == count {
                    done.store(true, Ordering::SeqCst);
                }
            });
        }
        while !done.load(Ordering::SeqCst) {
            thread::park_timeout(Duration::from_millis(3));
            let old = term.load(Ordering::SeqCst);
            taker.take(old + 1);
            seen.insert(old, taker.committed().get(&old).copied().unwrap_or(0));
            term.store(old + 1, Ordering::SeqCst);
        }
    });
    let found = taker.committed();
    let late = |(term, then): (&u64, &u64)| found.get(term).map_or(0, |now| now - then);
    Tally {
        committed: found.values().sum(),
        refused: refused.load(Ordering::SeqCst),
        terms: seen.len() as u64,
        stale: seen.iter().map(late).sum(),
    }
}
