//! Numbers sorted into buckets, counted without a lock.

#[cfg(feature = "metrics")]
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
#[cfg(feature = "metrics")]
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

#[cfg(feature = "metrics")]
use arc_swap::ArcSwapOption;

/// How often a number was at most as large as each bound.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Histogram {
    /// Upper bounds and how many numbers were at or below them, as Prometheus counts.
    pub buckets: Vec<(f64, u64)>,
    /// How many there were.
    pub count: u64,
    /// Their sum.
    pub sum: f64,
}

/// Seconds, from a round trip on one machine to a request time-out.
pub(super) const SECONDS: &[f64] =
    &[0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

/// Shares of a whole.
pub(super) const SHARES: &[f64] = &[0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9];

/// What a histogram is read from. One thread writes it.
#[derive(Debug)]
pub(super) struct Buckets {
    bounds: &'static [f64],
    /// One more than bounds: what is above all of them. Made with the first number, because most leases
    /// have a histogram that stays empty.
    counts: OnceLock<Box<[AtomicU64]>>,
    /// In millionths: sums of fractions can't be added up without a lock otherwise.
    sum: AtomicU64,
    /// Who wants each number.
    #[cfg(feature = "metrics")]
    tap: ArcSwapOption<SyncSender<f64>>,
}

impl Buckets {
    pub(super) fn new(bounds: &'static [f64]) -> Self {
        Self {
            bounds,
            counts: OnceLock::new(),
            sum: AtomicU64::new(0),
            #[cfg(feature = "metrics")]
            tap: ArcSwapOption::empty(),
        }
    }

    pub(super) fn note(&self, number: f64) {
        let place = self.bounds.partition_point(|bound| *bound < number);
        let zeros = || (0..=self.bounds.len()).map(|_| AtomicU64::new(0)).collect();
        if let Some(count) = self.counts.get_or_init(zeros).get(place) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        self.sum.fetch_add((number.max(0.0) * 1e6) as u64, Ordering::Relaxed);
        #[cfg(feature = "metrics")]
        if let Some(tap) = &*self.tap.load() {
            // It never waits: who reads too slowly misses some.
            if let Err(TrySendError::Disconnected(_)) = tap.try_send(number) {
                self.tap.store(None);
            }
        }
    }

    /// Each number that comes from now on, for one reader: the last who asked. So many wait for it at
    /// most, which takes room from now on; those that come after that are left out there.
    #[cfg(feature = "metrics")]
    pub(super) fn tap(&self, waiting: usize) -> Receiver<f64> {
        let (sender, numbers) = sync_channel(waiting);
        self.tap.store(Some(Arc::new(sender)));
        numbers
    }

    pub(super) fn read(&self) -> Histogram {
        let mut count = 0;
        let mut up_to = |place: usize| {
            let counted = self.counts.get().and_then(|counts| counts.get(place));
            count += counted.map_or(0, |counted| counted.load(Ordering::Relaxed));
            count
        };
        let bounds = self.bounds.iter().enumerate();
        let buckets: Vec<(f64, u64)> =
            bounds.map(|(place, bound)| (*bound, up_to(place))).collect();
        up_to(self.bounds.len());
        Histogram { buckets, count, sum: self.sum.load(Ordering::Relaxed) as f64 / 1e6 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_count_at_their_bound_and_above_it() {
        let buckets = Buckets::new(SHARES);
        for number in [0.05, 0.051, 0.95, 2.0] {
            buckets.note(number);
        }
        let read = buckets.read();
        assert_eq!(read.count, 4);
        assert_eq!(read.buckets.first(), Some(&(0.05, 1)), "a bound belongs to its bucket");
        assert_eq!(read.buckets.get(1), Some(&(0.1, 2)));
        assert_eq!(read.buckets.last(), Some(&(0.9, 2)), "two are above all bounds");
        assert!((read.sum - 3.051).abs() < 1e-5, "{}", read.sum);
    }
}
