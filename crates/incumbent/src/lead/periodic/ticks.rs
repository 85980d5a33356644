//! The times at which a job is due, in milliseconds since 1970.

use std::time::Duration;

/// The last millisecond of the year 9999: what is later isn't meant.
pub(super) const LAST: u64 = 253_402_300_799_999;

/// So many missed ticks are looked at at most, whatever a schedule says: they cost time and room.
const MOST: u32 = 10_000;

#[derive(Clone, Debug)]
pub(super) enum Ticks {
    /// At each multiple of so many milliseconds.
    Every(u64),
    #[cfg(feature = "cron")]
    Cron(Box<super::crontab::Crontab>),
}

impl Ticks {
    pub(super) fn every(interval: Duration) -> Self {
        Self::Every(u64::try_from(interval.as_millis()).unwrap_or(u64::MAX).max(1))
    }

    #[cfg(feature = "cron")]
    pub(super) fn cron(expression: &str, zone: &str) -> Result<Self, super::ScheduleError> {
        super::crontab::Crontab::new(expression, zone).map(|cron| Self::Cron(Box::new(cron)))
    }

    /// The first tick after a time.
    pub(super) fn next(&self, after: u64) -> Option<u64> {
        let next = match self {
            Self::Every(interval) => (after / interval).checked_add(1)?.checked_mul(*interval),
            #[cfg(feature = "cron")]
            Self::Cron(cron) => cron.next(after),
        };
        next.filter(|next| *next <= LAST)
    }

    /// The last `most` ticks after one time and not after another, the oldest first.
    pub(super) fn recent(&self, after: u64, until: u64, most: u32) -> Vec<u64> {
        if until <= after {
            return Vec::new();
        }
        let most = most.clamp(1, MOST) as usize;
        // Twice as far back each time, until there are enough: so that years of missed ticks cost
        // no more than those that are wanted.
        let mut span: u64 = match self {
            Self::Every(interval) => interval.saturating_mul(most as u64),
            #[cfg(feature = "cron")]
            Self::Cron(_) => 60_000,
        };
        loop {
            let from = until.saturating_sub(span).max(after);
            let mut ticks: Vec<u64> =
                std::iter::successors(self.next(from), |tick| self.next(*tick))
                    .take_while(|tick| *tick <= until)
                    .collect();
            if ticks.len() >= most || from == after {
                ticks.drain(..ticks.len().saturating_sub(most));
                return ticks;
            }
            span = span.saturating_mul(2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_ticks_at_its_multiples() {
        let ticks = Ticks::every(Duration::from_secs(60));
        assert_eq!(ticks.next(0), Some(60_000));
        assert_eq!(ticks.next(59_999), Some(60_000));
        assert_eq!(ticks.next(60_000), Some(120_000));
        assert_eq!(ticks.next(LAST), None);
        assert_eq!(Ticks::every(Duration::ZERO).next(7), Some(8));
        assert_eq!(Ticks::every(Duration::MAX).next(7), None);
    }

    #[test]
    fn recent_ticks_are_the_last_ones() {
        let ticks = Ticks::every(Duration::from_secs(60));
        assert!(ticks.recent(0, 59_999, 1).is_empty());
        assert_eq!(ticks.recent(0, 60_000, 1), [60_000]);
        assert_eq!(ticks.recent(60_000, 300_000, 2), [240_000, 300_000]);
        assert_eq!(ticks.recent(60_000, 180_000, 9), [120_000, 180_000]);
        assert!(ticks.recent(400_000, 300_000, 9).is_empty());
        // Fifty years of milliseconds.
        let fine = Ticks::every(Duration::from_millis(1));
        assert_eq!(fine.recent(0, 1_600_000_000_000, 1), [1_600_000_000_000]);
    }
}
