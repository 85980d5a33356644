use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::ticks::Ticks;
use crate::driver::clock;
use crate::lead::PAUSES;

/// When a periodic job runs, and what becomes of the times at which it could not.
///
/// The times at which it is due are its *ticks*. They depend on nothing but the schedule and the
/// calendar, so that all nodes agree about them whenever they joined.
///
/// ```
/// # use std::time::Duration;
/// # use incumbent::{CatchUp, Schedule};
/// let hourly = Schedule::every(Duration::from_secs(3600));
/// let each = hourly.catch_up(CatchUp::Each { most: 24 }).jitter(Duration::from_secs(60));
/// ```
#[derive(Clone)]
pub struct Schedule {
    pub(super) ticks: Ticks,
    pub(super) catch_up: CatchUp,
    pub(super) jitter: Duration,
    pub(super) pauses: (Duration, Duration),
    wall: Option<Arc<dyn Fn() -> SystemTime + Send + Sync>>,
}

/// What becomes of ticks that were missed: because nobody led, because the run before took too
/// long or failed, or because the machine slept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CatchUp {
    /// One run makes up for all of them. It is given the time of the latest, and
    /// [`Run::since`](super::Run::since) says from when on it has to make up.
    #[default]
    Latest,
    /// Each gets a run of its own, one after the other and the oldest first. Of more than `most`
    /// the oldest are left out.
    Each {
        /// How many at most, from 1 to 10,000.
        most: u32,
    },
    /// None is made up for: a tick that could not start in time is left out. After a crash others
    /// take over within a ttl, so give them that at least.
    Skip {
        /// How late a tick may start.
        after: Duration,
    },
}

/// Why a schedule can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// The expression isn't one.
    #[error(
        "the cron expression {expression:?} is not understood: {reason}. Use five fields, \
         from minute to day of the week, such as \"0 3 * * *\" for three o'clock each night"
    )]
    Expression {
        /// What was given.
        expression: String,
        /// What is wrong with it.
        reason: String,
    },
    /// No time will ever match it, such as the 30th of February.
    #[error("the cron expression {expression:?} never matches any more: no tick would ever come")]
    Never {
        /// What was given.
        expression: String,
    },
    /// The time zone isn't known here.
    #[error(
        "the time zone {zone:?} is not known on this machine: {reason}. Name one such as \
         \"Europe/Berlin\", and check that the system's time zone database is installed"
    )]
    TimeZone {
        /// What was given.
        zone: String,
        /// What went wrong.
        reason: String,
    },
}

impl Schedule {
    /// One tick an interval, counted from the beginning of 1970 in UTC: `every(1 h)` ticks on the
    /// hour, `every(24 h)` at midnight UTC. An interval below a millisecond counts as one.
    #[must_use]
    pub fn every(interval: Duration) -> Self {
        Self::of(Ticks::every(interval))
    }

    /// Ticks at the times that a cron expression matches, **in UTC**: `0 3 * * *` for three
    /// o'clock each night. [`Self::cron_in`] takes a time zone. There may be a sixth field before
    /// the others, for seconds, and a seventh after them, for years; `@hourly`, `@daily` and their
    /// like, `L`, `W` and `#` work too.
    ///
    /// # Errors
    /// If the expression isn't understood, or never matches any more.
    #[cfg(feature = "cron")]
    pub fn cron(expression: &str) -> Result<Self, ScheduleError> {
        Ticks::cron(expression, "UTC").map(Self::of)
    }

    /// As [`Self::cron`] in a time zone of the IANA database, such as `Europe/Berlin`, as this
    /// machine's copy of it knows it. All nodes should name the same one.
    ///
    /// Where a clock is put forward, a time of day that is left out ticks right after the gap.
    /// Where it is put back, a time of day that comes twice ticks the first time alone. What is
    /// due every so many minutes or hours goes by the time that passes.
    ///
    /// # Errors
    /// As [`Self::cron`], and if the time zone isn't known.
    #[cfg(feature = "cron")]
    pub fn cron_in(expression: &str, zone: &str) -> Result<Self, ScheduleError> {
        Ticks::cron(expression, zone).map(Self::of)
    }

    fn of(ticks: Ticks) -> Self {
        let (catch_up, jitter) = (CatchUp::default(), Duration::ZERO);
        Self { ticks, catch_up, jitter, pauses: PAUSES, wall: None }
    }

    /// What becomes of ticks that were missed ([`CatchUp::Latest`]).
    #[must_use]
    pub fn catch_up(mut self, catch_up: CatchUp) -> Self {
        self.catch_up = catch_up;
        self
    }

    /// Starts each tick up to so much later, so that jobs of the same hour don't all begin
    /// together (none). How much is drawn from the job's name and the tick, so that every node
    /// draws the same. It is never more than half of the time to the next tick.
    #[must_use]
    pub fn jitter(mut self, jitter: Duration) -> Self {
        self.jitter = jitter;
        self
    }

    /// How long this node stands back after a run that failed: at first, and at most after many
    /// in a row (from a second to a minute). Another node may try at once.
    #[must_use]
    pub fn retry_pauses(mut self, first: Duration, longest: Duration) -> Self {
        self.pauses = (first, longest.max(first));
        self
    }

    /// Goes by this clock instead of the machine's wall clock: for tests.
    #[must_use]
    pub fn wall_clock(mut self, wall: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.wall = Some(Arc::new(wall));
        self
    }

    /// The first tick after this time, without jitter; nothing if there is none any more.
    #[must_use]
    pub fn next_after(&self, time: SystemTime) -> Option<SystemTime> {
        self.ticks.next(millis(time)).map(system_time)
    }

    /// What time it is, in milliseconds since 1970.
    pub(super) fn now(&self) -> u64 {
        self.wall.as_ref().map_or_else(clock::wall_ms, |wall| millis(wall()))
    }
}

impl fmt::Debug for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schedule")
            .field("ticks", &self.ticks)
            .field("catch_up", &self.catch_up)
            .field("jitter", &self.jitter)
            .finish_non_exhaustive()
    }
}

/// Milliseconds since 1970.
pub(super) fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The time so many milliseconds after 1970, or the last that the system can tell.
pub(crate) fn system_time(millis: u64) -> SystemTime {
    // A record may say anything; beyond the year 9999 nothing is meant.
    UNIX_EPOCH + Duration::from_millis(millis.min(super::ticks::LAST))
}
