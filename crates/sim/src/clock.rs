//! Clocks that drift, and wall clocks that jump.

use incumbent_core::Moment;

/// One machine's clock: it starts anywhere and runs a little fast or slow.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    /// What it shows at the start of the simulation, in nanoseconds.
    pub(crate) offset: u64,
    /// By how many parts in a million it is fast; negative if slow.
    pub(crate) ppm: i64,
    /// Nanoseconds by which it was held up, which only a broken clock is.
    pub(crate) lost: u64,
    /// By how much the wall clock is off, in milliseconds. It jumps, and must not matter.
    pub(crate) wall_ms: i64,
    /// Whether the wall clock is taken for the real one, which is a planted mistake.
    pub(crate) confused: bool,
}

impl Clock {
    /// What the clock shows at this instant.
    #[must_use]
    pub(crate) fn at(&self, instant: u64) -> Moment {
        let drift = divided(i128::from(instant) * i128::from(self.ppm), 1_000_000);
        let mut shown =
            i128::from(self.offset) + i128::from(instant) + drift - i128::from(self.lost);
        if self.confused {
            shown += i128::from(self.wall_ms) * 1_000_000;
        }
        Moment::from_nanos(u64::try_from(shown.max(0)).unwrap_or(u64::MAX))
    }

    /// The first instant at which the clock shows this moment, or the end of time.
    #[must_use]
    pub(crate) fn instant(&self, moment: Moment) -> u64 {
        if moment == Moment::NEVER {
            return u64::MAX;
        }
        let mut shown =
            i128::from(moment.as_nanos()) - i128::from(self.offset) + i128::from(self.lost);
        if self.confused {
            shown -= i128::from(self.wall_ms) * 1_000_000;
        }
        let instant = divided(shown * 1_000_000, 1_000_000 + self.ppm) + 1;
        u64::try_from(instant.max(0)).unwrap_or(u64::MAX)
    }

    /// What the wall clock shows, in milliseconds.
    #[must_use]
    pub(crate) fn wall(&self, instant: u64) -> u64 {
        let base = 1_800_000_000_000_i64 + self.wall_ms;
        u64::try_from(base).unwrap_or(0) + instant / 1_000_000
    }
}

/// A division that is cheap where the numbers are small, as they nearly always are.
fn divided(number: i128, by: i64) -> i128 {
    match i64::try_from(number) {
        Ok(small) => i128::from(small / by),
        Err(_) => number / i128::from(by),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_when_the_clock_shows_the_moment() {
        for ppm in [-50_000, 0, 50_000] {
            let clock = Clock { offset: 7_000, ppm, lost: 3, wall_ms: 0, confused: false };
            let moment = Moment::from_nanos(123_456_789);
            let instant = clock.instant(moment);
            assert!(clock.at(instant) >= moment);
            assert!(clock.at(instant - 3) < moment);
        }
    }
}
