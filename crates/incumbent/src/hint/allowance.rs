//! How often something may be done that others can ask for.

use std::time::Duration;

use incumbent_core::Moment;

/// From one to the next, once those at once are spent.
const PACE: Duration = Duration::from_millis(100);
/// So many at once, after a while without any.
const AT_ONCE: u32 = 5;

/// Ten a second, after five at once.
#[derive(Debug)]
pub(crate) struct Allowance {
    left: u32,
    /// Up to which moment the allowance was counted.
    counted: Moment,
}

impl Allowance {
    pub(crate) fn new(now: Moment) -> Self {
        Self { left: AT_ONCE, counted: now }
    }

    /// Spends one, if there is one left.
    pub(crate) fn take(&mut self, now: Moment) -> bool {
        let earned = now.since(self.counted).as_nanos() / PACE.as_nanos();
        let earned = u32::try_from(earned).unwrap_or(u32::MAX);
        if self.left.saturating_add(earned) >= AT_ONCE {
            (self.left, self.counted) = (AT_ONCE, now);
        } else {
            self.left += earned;
            self.counted = self.counted + PACE * earned;
        }
        let some = self.left > 0;
        self.left = self.left.saturating_sub(1);
        some
    }

    /// When there is one again.
    pub(crate) fn next(&self) -> Moment {
        if self.left > 0 { self.counted } else { self.counted + PACE }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Moment {
        Moment::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn a_flood_gets_five_and_then_ten_a_second() {
        let mut allowance = Allowance::new(at(0));
        let taken = (0..10_000).filter(|millis| allowance.take(at(*millis))).count();
        assert_eq!(taken, 5 + 99, "in ten seconds");
    }

    #[test]
    fn who_was_refused_is_told_when_to_come_again() {
        let mut allowance = Allowance::new(at(0));
        while allowance.take(at(30)) {}
        let next = allowance.next();
        assert_eq!(next, at(130));
        assert!(!allowance.take(at(129)));
        assert!(allowance.take(next));
        assert!(allowance.next() > next);
    }

    #[test]
    fn what_is_not_spent_does_not_pile_up() {
        let mut allowance = Allowance::new(at(0));
        assert!(allowance.take(at(0)));
        let later = at(1_000_000);
        assert_eq!((0..100).filter(|_| allowance.take(later)).count(), 5);
    }
}
