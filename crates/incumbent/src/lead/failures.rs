//! How often in a row something failed.

use std::time::Duration;

use incumbent_core::backoff::Backoff;
use incumbent_core::random::Random;

use crate::driver::seed;

/// Failures in a row, and how long to wait after each.
pub(crate) struct Failures {
    times: u32,
    longest: Duration,
    backoff: Backoff,
    random: Random,
}

impl Failures {
    /// None yet. The pause after the first, and the longest.
    pub(crate) fn new(first: Duration, longest: Duration) -> Self {
        let (backoff, random) = (Backoff::new(first, longest), Random::new(seed::draw()));
        Self { times: 0, longest, backoff, random }
    }

    /// Another one: how many these are now, and the pause after it.
    pub(crate) fn another(&mut self) -> (u32, Duration) {
        self.times = self.times.saturating_add(1);
        (self.times, self.backoff.pause(&mut self.random))
    }

    /// What runs for longer than the longest pause starts counting anew.
    pub(crate) fn ran(&mut self, span: Duration) {
        if span > self.longest {
            self.forget();
        }
    }

    /// Starts counting anew.
    pub(crate) fn forget(&mut self) {
        self.times = 0;
        self.backoff.reset();
    }
}
