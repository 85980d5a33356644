//! The one place that reads clocks.
//!
//! Decisions compare [`Moment`]s, read from a clock that goes on while the machine sleeps (F11):
//!
//! | platform | clock | while the machine sleeps |
//! | --- | --- | --- |
//! | Linux, Android | `CLOCK_BOOTTIME` (through the vDSO) | goes on |
//! | macOS, iOS | `CLOCK_MONOTONIC` | goes on |
//! | FreeBSD and other Unix | `CLOCK_MONOTONIC` | may stand still: let such machines not sleep, or fence |
//! | others (Windows) | `std::time::Instant` | depends on the system: let such machines not sleep, or fence |
//!
//! A virtual machine that is paused or restored from a snapshot may stop every one of these
//! clocks. Then only a fence protects.
//!
//! With the feature `testing`, what runs in a `testing::World` reads that world's clock instead.

use std::time::Duration;

use incumbent_core::Moment;

/// What time it is on this machine's clock.
#[cfg(unix)]
#[must_use]
#[inline]
pub fn now() -> Moment {
    #[cfg(feature = "testing")]
    if let Some(now) = crate::testing::now() {
        return now;
    }
    let time = rustix::time::clock_gettime(CLOCK);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    Moment::from_nanos(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
}

#[cfg(any(target_os = "linux", target_os = "android"))]
const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Boottime;

#[cfg(all(unix, not(any(target_os = "linux", target_os = "android"))))]
const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Monotonic;

/// What time it is on this machine's clock.
#[cfg(not(unix))]
#[must_use]
#[allow(clippy::disallowed_methods, reason = "there is no better clock here; see the table above")]
pub fn now() -> Moment {
    #[cfg(feature = "testing")]
    if let Some(now) = crate::testing::now() {
        return now;
    }
    use std::sync::OnceLock;
    use std::time::Instant;
    static START: OnceLock<Instant> = OnceLock::new();
    let passed = START.get_or_init(Instant::now).elapsed();
    // One, so that no moment is the very start, which means "never trusted".
    Moment::from_nanos(1) + passed
}

/// The moment as tokio's timers count, for `timeout_at` and `sleep_until`; the present one if it has passed.
/// What is further off than a month counts as a month away.
///
/// Timers only wake: they stand still while the machine sleeps, so ask [`Term::is_held`](crate::Term::is_held)
/// when one has.
///
/// ```no_run
/// # async fn send(term: incumbent::Term, write: impl Future<Output = ()>) {
/// let until = incumbent::clock::instant(term.trusted_until());
/// let _ = tokio::time::timeout_at(until, write).await;
/// # }
/// ```
#[must_use]
#[allow(clippy::disallowed_methods, reason = "it is handed to timers, and compared with nothing")]
pub fn instant(moment: Moment) -> tokio::time::Instant {
    tokio::time::Instant::now() + moment.since(now()).min(MONTH)
}

/// Longer than any wait, and short enough for every clock.
const MONTH: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Wall-clock milliseconds since 1970, for people to read. Nothing about leases is ever decided by
/// it (F4); only when a periodic job is due is, because schedules are about that clock.
#[must_use]
#[allow(clippy::disallowed_methods, reason = "for display alone")]
pub fn wall_ms() -> u64 {
    #[cfg(feature = "testing")]
    if let Some(wall) = crate::testing::wall_ms() {
        return wall;
    }
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_forward() {
        let first = now();
        assert!(first > Moment::START);
        assert!(now() >= first);
        assert!(wall_ms() > 1_600_000_000_000);
    }

    #[tokio::test]
    async fn a_moment_is_what_timers_wait_for() {
        let soon = now() + Duration::from_millis(20);
        tokio::time::sleep_until(instant(soon)).await;
        assert!(now() >= soon);
        assert!(instant(Moment::START) <= instant(now()), "it has passed");
        let never = tokio::time::timeout_at(instant(Moment::NEVER), std::future::ready(7)).await;
        assert_eq!(never.ok(), Some(7));
    }
}
