//! The times that the protocol runs by.

use std::time::Duration;

use crate::random::Random;
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
    /// When beats fall due.
    pub rhythm: Rhythm,
}

/// When the beats of a member fall due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rhythm {
    /// A beat's time after the last one, spread by ±10 %, so that nodes don't come all at once.
    Spread,
    /// Just a beat's time after the last one: only where a checker wants all in lockstep.
    Exact,
    /// Whenever whole beats have passed since this moment: those who share it beat together.
    Together(Moment),
}

impl Rhythm {
    /// How long after this moment the next beat is due.
    pub(crate) fn interval(self, now: Moment, beat: Duration, random: &mut Random) -> Duration {
        match self {
            Self::Spread => random.span(beat.mul_f64(0.9), beat.mul_f64(1.1)),
            Self::Exact => beat,
            Self::Together(since) => {
                let beat = beat.as_nanos().max(1);
                let left = beat - now.since(since).as_nanos() % beat;
                // Right before the next one it is that one's turn already.
                let wait = if left < beat / 10 { left + beat } else { left };
                Duration::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX))
            }
        }
    }
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
            rhythm: Rhythm::Spread,
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
    fn who_beats_together_is_due_at_one_moment_and_never_later_than_others() {
        let (beat, second) = (Duration::from_secs(5), Duration::from_secs(1));
        let since = Moment::START + 3 * second;
        let mut random = Random::new(1);
        for millis in 0..20_000 {
            let now = since + Duration::from_millis(millis);
            let interval = Rhythm::Together(since).interval(now, beat, &mut random);
            let due = (now + interval).since(since);
            assert_eq!(due.as_nanos() % beat.as_nanos(), 0, "{due:?} after the first");
            assert!(interval >= beat / 10 && interval <= beat.mul_f64(1.1), "{interval:?}");
        }
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
