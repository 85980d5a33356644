//! What the leader of the cluster counts of the plans that it makes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use incumbent_core::Moment;

/// The driver alone writes.
#[derive(Debug, Default)]
pub(crate) struct Placements {
    moves: AtomicU64,
    /// Duties that the last plan found no place for, and from when on they count.
    unplaced: AtomicU64,
    since: AtomicU64,
    /// In milliseconds, of all duties together.
    waited: AtomicU64,
}

impl Placements {
    /// A plan moves so many duties, and leaves so many without a place.
    pub(crate) fn planned(&self, now: Moment, moves: usize, unplaced: usize) {
        let waited = u64::try_from(self.under_way(now).as_millis()).unwrap_or(u64::MAX);
        self.waited.fetch_add(waited, Ordering::Relaxed);
        self.since.store(now.as_nanos(), Ordering::Relaxed);
        self.unplaced.store(unplaced as u64, Ordering::Relaxed);
        self.moves.fetch_add(moves as u64, Ordering::Relaxed);
    }

    /// This node doesn't lead the cluster any more, so that what is unplaced is another's to count.
    pub(crate) fn end(&self, now: Moment) {
        self.planned(now, 0, 0);
    }

    pub(crate) fn moves(&self) -> u64 {
        self.moves.load(Ordering::Relaxed)
    }

    /// How long duties had no place, all together.
    pub(crate) fn unplaced(&self, now: Moment) -> Duration {
        Duration::from_millis(self.waited.load(Ordering::Relaxed)) + self.under_way(now)
    }

    fn under_way(&self, now: Moment) -> Duration {
        let unplaced = u32::try_from(self.unplaced.load(Ordering::Relaxed)).unwrap_or(u32::MAX);
        now.since(Moment::from_nanos(self.since.load(Ordering::Relaxed))).saturating_mul(unplaced)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_unplaced_duty_counts_until_it_is_placed_or_another_leads() {
        let at = |second| Moment::START + Duration::from_secs(second);
        let placements = Placements::default();
        assert_eq!(placements.unplaced(at(10)), Duration::ZERO);
        placements.planned(at(10), 5, 2);
        assert_eq!(placements.unplaced(at(13)), Duration::from_secs(6), "under way");
        placements.planned(at(20), 1, 1);
        placements.end(at(25));
        assert_eq!(placements.unplaced(at(90)), Duration::from_secs(25));
        assert_eq!(placements.moves(), 6);
    }
}
