//! Waiting longer after each failure, with jitter.

use std::time::Duration;

use crate::random::Random;

/// Doubles from `first` to `most`; each pause is drawn from its upper half.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Backoff {
    first: Duration,
    most: Duration,
    failures: u32,
}

impl Backoff {
    /// A backoff without failures so far.
    #[must_use]
    pub const fn new(first: Duration, most: Duration) -> Self {
        Self { first, most, failures: 0 }
    }

    /// Counts a failure and says how long to wait.
    pub fn pause(&mut self, random: &mut Random) -> Duration {
        let full = self.first.saturating_mul(1 << self.failures.min(16)).min(self.most);
        self.failures = self.failures.saturating_add(1);
        random.span(full / 2, full)
    }

    /// Forgets all failures.
    pub fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_to_its_bound_and_starts_again() {
        let mut random = Random::new(7);
        let (first, most) = (Duration::from_millis(10), Duration::from_millis(100));
        let mut backoff = Backoff::new(first, most);
        let early = backoff.pause(&mut random);
        assert!(early >= first / 2 && early <= first);
        for _ in 0..40 {
            assert!(backoff.pause(&mut random) <= most);
        }
        assert!(backoff.pause(&mut random) >= most / 2);
        backoff.reset();
        assert!(backoff.pause(&mut random) <= first);
    }
}
