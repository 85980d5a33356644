use std::hash::{BuildHasher, RandomState};

/// A small seeded generator (SplitMix64). The same seed gives the same draws on every machine, so
/// a report's seed is enough to ask the same questions again.
#[derive(Clone, Debug)]
pub struct Rng {
    state: u64,
}

impl Rng {
    /// A generator that starts from this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// A seed that differs from run to run. The standard library seeds its hash maps so.
    #[must_use]
    pub fn fresh_seed() -> u64 {
        RandomState::new().hash_one("incumbent-testkit")
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, and zero for a bound of zero.
    pub fn below(&mut self, bound: usize) -> usize {
        let bound = bound as u64;
        if bound == 0 { 0 } else { (self.bits() % bound) as usize }
    }

    /// True with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        // The upper 53 bits are all that a double can hold.
        ((self.bits() >> 11) as f64 / (1_u64 << 53) as f64) < probability
    }

    /// One of these.
    pub fn pick<'a, T>(&mut self, among: &'a [T]) -> Option<&'a T> {
        among.get(self.below(among.len()))
    }

    /// A generator of its own for another task.
    #[must_use]
    pub fn fork(&mut self) -> Self {
        Self::new(self.bits())
    }
}

#[cfg(test)]
mod tests {
    use super::Rng;

    #[test]
    fn same_seed_same_draws() {
        let (mut one, mut other) = (Rng::new(7), Rng::new(7));
        assert!((0..100).all(|_| one.bits() == other.bits()));
    }

    #[test]
    fn chance_is_about_right() {
        let mut rng = Rng::new(1);
        let hits = (0..10_000).filter(|_| rng.chance(0.25)).count();
        assert!((2_300..2_700).contains(&hits), "{hits}");
        assert!(!(0..1_000).any(|_| rng.chance(0.0)));
        assert!((0..1_000).all(|_| rng.chance(1.0)));
    }
}
