//! The times that the protocol runs by.

use std::time::Duration;

use crate::time::Moment;

/// The shortest ttl outside tests.
pub const MIN_TTL: Duration = Duration::from_secs(3);

/// The longest ttl that a record may claim; one beyond it is not believed.
pub const MAX_TTL: Duration = Duration::from_secs(3600);

/// How long things take. All follow from the ttl unless chosen.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Timing {
    /// How long a member is waited for after its last visible beat.
    pub ttl: Duration,
    /// From one beat to the next, before jitter.
    pub beat: Duration,
    /// By how much trust ends before the ttl: for drifting clocks and for work to stop.
    pub margin: Duration,
    /// How long one request may take.
    pub request: Duration,
    /// How long a closed member stays visible before it is deleted.
    pub visible: Duration,
    /// Whether beats are spread by ±10 % (off only where a checker wants all in lockstep).
    pub jitter: bool,
}

impl Default for Timing {
    fn default() -> Self {
        Self::for_ttl(Duration::from_secs(15))
    }
}

/// Why times don't fit together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimingError {
    /// The ttl is out of bounds.
    #[error(
        "ttl {ttl:?} is not between {least:?} and {MAX_TTL:?}: a shorter one expires members \
         over ordinary pauses, a longer one leaves work undone"
    )]
    Ttl {
        /// The value.
        ttl: Duration,
        /// The least that is allowed.
        least: Duration,
    },
    /// The beat leaves no second chance before trust ends.
    #[error(
        "beat {beat:?} is too long for ttl {ttl:?} with margin {margin:?}: one missed beat would \
         end trust; use at most {most:?}"
    )]
    Beat {
        /// The value.
        beat: Duration,
        /// The ttl.
        ttl: Duration,
        /// The margin.
        margin: Duration,
        /// The longest that fits.
        most: Duration,
    },
    /// The margin is too small for drift, or takes too much of the ttl.
    #[error(
        "margin {margin:?} does not fit ttl {ttl:?}: it must be between ttl/100 (clocks drift) \
         and ttl/2 (there must be time to lead)"
    )]
    Margin {
        /// The value.
        margin: Duration,
        /// The ttl.
        ttl: Duration,
    },
    /// A request could outlast every chance to retry.
    #[error(
        "request time-out {request:?} does not fit ttl {ttl:?}: use more than zero and at most \
         ttl/3, so that a hung request leaves time for another"
    )]
    Request {
        /// The value.
        request: Duration,
        /// The ttl.
        ttl: Duration,
    },
}

impl Timing {
    /// The defaults for this ttl.
    #[must_use]
    pub fn for_ttl(ttl: Duration) -> Self {
        Self {
            ttl,
            beat: ttl / 3,
            margin: ttl / 10,
            request: (ttl / 3).min(Duration::from_secs(5)),
            visible: Duration::from_secs(90),
            jitter: true,
        }
    }

    /// Checks that the times fit together; `least` is the shortest ttl to accept.
    ///
    /// # Errors
    /// Names the value, the reason and what would fit.
    pub fn check(&self, least: Duration) -> Result<(), TimingError> {
        let Self { ttl, beat, margin, request, .. } = *self;
        if ttl < least || ttl > MAX_TTL {
            return Err(TimingError::Ttl { ttl, least });
        }
        if margin < ttl / 100 || margin > ttl / 2 {
            return Err(TimingError::Margin { margin, ttl });
        }
        // F16: two beats and their jitter must fit into the trust window.
        let most = (ttl - margin).mul_f64(0.45);
        if beat.is_zero() || beat > most {
            return Err(TimingError::Beat { beat, ttl, margin, most });
        }
        if request.is_zero() || request > ttl / 3 {
            return Err(TimingError::Request { request, ttl });
        }
        Ok(())
    }

    /// The longest that a member may trust a beat, counted from before it was sent.
    #[must_use]
    pub fn trust(&self) -> Duration {
        self.ttl.saturating_sub(self.margin)
    }

    /// When a beat was sent from which trust lasts until this moment.
    #[must_use]
    pub fn sent(&self, until: Moment) -> Moment {
        let trust = u64::try_from(self.trust().as_nanos()).unwrap_or(u64::MAX);
        Moment::from_nanos(until.as_nanos().saturating_sub(trust))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_fit() {
        for seconds in [3, 15, 60, 3600] {
            Timing::for_ttl(Duration::from_secs(seconds)).check(MIN_TTL).unwrap();
        }
    }

    #[test]
    fn a_ttl_equal_to_the_beat_is_refused() {
        let mut timing = Timing::default();
        timing.beat = timing.ttl;
        let said = timing.check(MIN_TTL).unwrap_err().to_string();
        assert!(said.contains("15s") && said.contains("6.075s"), "F16: {said}");
    }

    #[test]
    fn each_bound_is_checked() {
        let fit = Timing::default();
        let second = Duration::from_secs(1);
        assert!(matches!(Timing::for_ttl(second).check(MIN_TTL), Err(TimingError::Ttl { .. })));
        let thin = Timing { margin: Duration::ZERO, ..fit.clone() };
        assert!(matches!(thin.check(MIN_TTL), Err(TimingError::Margin { .. })));
        let slow = Timing { request: 6 * second, ..fit };
        assert!(matches!(slow.check(MIN_TTL), Err(TimingError::Request { .. })));
    }
}
