//! Randomness from a seed, so that a run can be repeated.

use std::time::Duration;

/// A small generator (SplitMix64). Its whole state is the seed it was given, which makes the
/// core a pure function and lets the model checker hash it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Random(u64);

impl Random {
    /// A generator that gives the same numbers for the same seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, or 0 if that is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        // The product's upper half is spread evenly enough for jitter.
        ((u128::from(self.number()) * u128::from(bound)) >> 64) as u64
    }

    /// A span from `low` to `high`.
    pub fn span(&mut self, low: Duration, high: Duration) -> Duration {
        let width = high.saturating_sub(low).as_nanos().min(u128::from(u64::MAX)) as u64;
        low + Duration::from_nanos(self.below(width.saturating_add(1)))
    }
}
