//! What a driver counts. It alone writes; everyone may read, and nobody ever waits for anybody.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use incumbent_core::store::{ErrorKind, Lane};
use incumbent_core::{LeaseName, Moment};

use super::histogram::{Buckets, SECONDS, SHARES};
use super::placements::Placements;
use super::{LeaseMetrics, Renewals, StoreMetrics};
use crate::{Loss, MemberState};

/// The least trust is remembered for a minute, in cells of ten seconds.
const CELL: u64 = 10;
const CELLS: usize = 7;

const LOSSES: [Loss; 12] = [
    Loss::WorkEnded,
    Loss::Resigned,
    Loss::Withdrawn,
    Loss::Leaving,
    Loss::CannotTell,
    Loss::Closed(MemberState::Left),
    Loss::Closed(MemberState::Expired),
    Loss::Closed(MemberState::Evicted),
    Loss::Vanished,
    Loss::Superseded,
    Loss::Stuck,
    Loss::Broken,
];

/// In the order of [`Meters::store`].
const LANES: [&str; 3] = ["beat", "change", "watch"];
const OUTCOMES: [&str; 2] = ["answered", "failed"];

/// What the numbers of a histogram are.
#[cfg(feature = "metrics")]
#[derive(Clone, Copy, Debug)]
pub(super) enum Sampled {
    TrustLeft,
    Plans,
    /// By lane and outcome.
    Store(&'static str, &'static str),
}

/// The meters of all leases that are counted.
pub(crate) type LeaseMeters = BTreeMap<LeaseName, Arc<LeaseMeter>>;

#[derive(Debug)]
pub(crate) struct Meters {
    leases: ArcSwap<LeaseMeters>,
    renewed: AtomicU64,
    unavailable: AtomicU64,
    unknown: AtomicU64,
    rejected: AtomicU64,
    /// The number of ten seconds in the upper half, the least milliseconds of trust in the lower.
    least: [AtomicU64; CELLS],
    left: Buckets,
    /// For each lane: answered, failed.
    store: [[Buckets; 2]; 3],
    hints: AtomicU64,
    hints_dropped: AtomicU64,
    plans: Buckets,
    pub(crate) placements: Placements,
}

#[derive(Debug)]
pub(crate) struct LeaseMeter {
    term: AtomicU64,
    won: AtomicU64,
    /// Made with the first loss, because most of thousands of leases are never lost.
    lost: OnceLock<Box<[AtomicU64; LOSSES.len()]>>,
    leaderless: AtomicU64,
    /// Since when nobody leads, in nanoseconds; 0 if somebody does, or nothing was seen yet.
    since: AtomicU64,
    seen: AtomicBool,
    gaps: Buckets,
}

impl Default for Meters {
    fn default() -> Self {
        let lane = || [Buckets::new(SECONDS), Buckets::new(SECONDS)];
        Self {
            leases: ArcSwap::default(),
            renewed: AtomicU64::new(0),
            unavailable: AtomicU64::new(0),
            unknown: AtomicU64::new(0),
            rejected: AtomicU64::new(0),
            least: Default::default(),
            left: Buckets::new(SHARES),
            store: [lane(), lane(), lane()],
            hints: AtomicU64::new(0),
            hints_dropped: AtomicU64::new(0),
            plans: Buckets::new(SECONDS),
            placements: Placements::default(),
        }
    }
}

impl Meters {
    pub(crate) fn renewed(&self, now: Moment, left: Duration, span: Duration) {
        self.renewed.fetch_add(1, Ordering::Relaxed);
        self.left.note(left.as_secs_f64() / span.as_secs_f64().max(f64::MIN_POSITIVE));
        self.trusts(now, left);
    }

    /// So much trust is left at this moment.
    pub(crate) fn trusts(&self, now: Moment, left: Duration) {
        let number = cell(now);
        let Some(cell) = self.least.get(number as usize % CELLS) else { return };
        let left = u64::try_from(left.as_millis()).unwrap_or(u64::MAX).min(u64::from(u32::MAX));
        let former = cell.load(Ordering::Relaxed);
        if former >> 32 != number || former & u64::from(u32::MAX) > left {
            cell.store(number << 32 | left, Ordering::Relaxed);
        }
    }

    pub(crate) fn exchanged(&self, lane: Lane, latency: Duration, error: Option<ErrorKind>) {
        let place = match lane {
            Lane::Beat => 0,
            Lane::Change => 1,
            Lane::Watch => 2,
        };
        if let Some([answered, failed]) = self.store.get(place) {
            let buckets = if error.is_none() { answered } else { failed };
            buckets.note(latency.as_secs_f64());
        }
        let count = match (lane, error) {
            (Lane::Beat, Some(ErrorKind::Unavailable)) => &self.unavailable,
            (Lane::Beat, Some(ErrorKind::Unknown)) => &self.unknown,
            (Lane::Beat, Some(ErrorKind::Rejected)) => &self.rejected,
            (Lane::Beat, None) | (Lane::Change | Lane::Watch, _) => return,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn hinted(&self) {
        self.hints.fetch_add(1, Ordering::Relaxed);
    }

    /// So many datagrams came that were no hints.
    pub(crate) fn dropped(&self, dropped: u64) {
        self.hints_dropped.store(dropped, Ordering::Relaxed);
    }

    pub(crate) fn planned(&self, took: Duration) {
        self.plans.note(took.as_secs_f64());
    }

    /// The leases that are counted from now on.
    pub(crate) fn publish(&self, leases: Arc<LeaseMeters>) {
        self.leases.store(leases);
    }

    pub(crate) fn leases(
        &self,
        now: Moment,
        held: impl Fn(&LeaseName) -> bool,
    ) -> Vec<LeaseMetrics> {
        let read =
            |(lease, meter): (&LeaseName, &Arc<LeaseMeter>)| meter.read(lease, now, held(lease));
        self.leases.load().iter().map(read).collect()
    }

    pub(crate) fn renewals(&self) -> Renewals {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Renewals {
            renewed: read(&self.renewed),
            unavailable: read(&self.unavailable),
            unknown: read(&self.unknown),
            rejected: read(&self.rejected),
        }
    }

    /// The least trust within the last minute, if any was noted.
    pub(crate) fn least(&self, now: Moment) -> Option<Duration> {
        let number = cell(now);
        let recent = |value: &u64| value >> 32 > 0 && (value >> 32) + CELLS as u64 > number;
        let least = self.least.iter().map(|cell| cell.load(Ordering::Relaxed)).filter(recent);
        least.map(|value| Duration::from_millis(value & u64::from(u32::MAX))).min()
    }

    pub(crate) fn left_at_renewal(&self) -> super::Histogram {
        self.left.read()
    }

    pub(crate) fn store(&self) -> Vec<StoreMetrics> {
        let lanes = LANES.into_iter().zip(&self.store);
        let outcomes = |(lane, buckets): (&'static str, &[Buckets; 2])| {
            let outcomes = OUTCOMES.into_iter().zip(buckets.each_ref());
            outcomes
                .map(move |(outcome, at)| StoreMetrics { lane, outcome, latency: at.read() })
                .collect::<Vec<_>>()
        };
        lanes.flat_map(outcomes).collect()
    }

    pub(crate) fn hints(&self) -> u64 {
        self.hints.load(Ordering::Relaxed)
    }

    pub(crate) fn hints_dropped(&self) -> u64 {
        self.hints_dropped.load(Ordering::Relaxed)
    }

    pub(crate) fn plans(&self) -> super::Histogram {
        self.plans.read()
    }

    /// What histograms are read from, by what they are of. Those of leases are with each of these.
    #[cfg(feature = "metrics")]
    pub(super) fn histograms(&self) -> Vec<(Sampled, &Buckets)> {
        let mut all = vec![(Sampled::TrustLeft, &self.left), (Sampled::Plans, &self.plans)];
        for (lane, buckets) in LANES.into_iter().zip(&self.store) {
            let outcomes = OUTCOMES.into_iter().zip(buckets);
            all.extend(outcomes.map(|(outcome, at)| (Sampled::Store(lane, outcome), at)));
        }
        all
    }

    #[cfg(feature = "metrics")]
    pub(super) fn by_lease(&self) -> Arc<LeaseMeters> {
        self.leases.load_full()
    }
}

impl Default for LeaseMeter {
    fn default() -> Self {
        Self {
            term: AtomicU64::new(0),
            won: AtomicU64::new(0),
            lost: OnceLock::new(),
            leaderless: AtomicU64::new(0),
            since: AtomicU64::new(0),
            seen: AtomicBool::new(false),
            gaps: Buckets::new(SECONDS),
        }
    }
}

impl LeaseMeter {
    pub(crate) fn elected(&self, term: u64) {
        self.term.store(term, Ordering::Relaxed);
        self.won.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn lost(&self, why: Loss) {
        let place = LOSSES.iter().position(|loss| loss.code() == why.code());
        let counts = self.lost.get_or_init(Box::default);
        if let Some(count) = place.and_then(|place| counts.get(place)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Somebody was seen to lead, or nobody.
    pub(crate) fn saw(&self, now: Moment, led: bool) {
        let since = self.since.load(Ordering::Relaxed);
        let first = !self.seen.swap(true, Ordering::Relaxed);
        if led && since > 0 {
            let gap = now.since(Moment::from_nanos(since));
            self.leaderless.fetch_add(nanos(gap), Ordering::Relaxed);
            self.since.store(0, Ordering::Relaxed);
            self.gaps.note(gap.as_secs_f64());
        } else if !led && since == 0 && !first {
            // What was never led before this node came isn't a gap.
            self.since.store(now.as_nanos(), Ordering::Relaxed);
        }
    }

    /// What the histogram of its gaps is read from.
    #[cfg(feature = "metrics")]
    pub(super) fn gaps(&self) -> &Buckets {
        &self.gaps
    }

    fn read(&self, lease: &LeaseName, now: Moment, held: bool) -> LeaseMetrics {
        let since = self.since.load(Ordering::Relaxed);
        let gap = if since > 0 { now.since(Moment::from_nanos(since)) } else { Duration::ZERO };
        let counts = self.lost.get().map_or(&[][..], |counts| &counts[..]);
        let lost = LOSSES
            .iter()
            .zip(counts)
            .map(|(why, count)| (why.code(), count.load(Ordering::Relaxed)));
        LeaseMetrics {
            lease: lease.as_str().to_owned(),
            held,
            term: self.term.load(Ordering::Relaxed),
            won: self.won.load(Ordering::Relaxed),
            lost: lost.filter(|(_, count)| *count > 0).collect(),
            leaderless: Duration::from_nanos(self.leaderless.load(Ordering::Relaxed)) + gap,
            gaps: self.gaps.read(),
        }
    }
}

fn cell(now: Moment) -> u64 {
    now.as_nanos() / (CELL * 1_000_000_000)
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn the_least_trust_is_forgotten_after_a_minute() {
        let meters = Meters::default();
        assert_eq!(meters.least(at(1000)), None);
        meters.trusts(at(1000), Duration::from_secs(9));
        meters.trusts(at(1001), Duration::from_secs(3));
        meters.trusts(at(1002), Duration::from_secs(8));
        assert_eq!(meters.least(at(1059)), Some(Duration::from_secs(3)));
        meters.trusts(at(1065), Duration::from_secs(7));
        assert_eq!(meters.least(at(1075)), Some(Duration::from_secs(7)));
        assert_eq!(meters.least(at(1200)), None);
    }

    fn lease() -> LeaseName {
        LeaseName::new("scheduler").unwrap()
    }

    #[test]
    fn a_gap_is_counted_from_when_nobody_led_to_when_somebody_does() {
        let meter = LeaseMeter::default();
        let read = |now| meter.read(&lease(), now, false);
        meter.saw(at(10), false);
        assert_eq!(read(at(20)).leaderless, Duration::ZERO, "nobody led before this node came");
        meter.saw(at(30), true);
        meter.saw(at(40), false);
        meter.saw(at(41), false);
        assert_eq!(read(at(42)).leaderless, Duration::from_secs(2), "under way");
        meter.saw(at(44), true);
        let read = read(at(90));
        assert_eq!(read.leaderless, Duration::from_secs(4));
        assert_eq!((read.gaps.count, read.gaps.sum), (1, 4.0));
    }

    #[test]
    fn losses_are_counted_by_reason() {
        let meter = LeaseMeter::default();
        meter.elected(7);
        for why in LOSSES {
            meter.lost(why);
        }
        meter.lost(Loss::Resigned);
        let read = meter.read(&lease(), at(1), true);
        assert_eq!((read.term, read.won, read.held), (7, 1, true));
        assert_eq!(read.lost.len(), LOSSES.len(), "each has a word of its own");
        assert!(read.lost.contains(&("resigned", 2)), "{:?}", read.lost);
    }
}
