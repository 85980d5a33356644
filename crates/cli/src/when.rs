//! Moments of wall clocks, for people.

use std::time::{Duration, UNIX_EPOCH};

use incumbent::clock;

use crate::span;

/// A day that no clock of ours shows: the end of the year 9999.
const LATEST_MS: u64 = 253_402_300_799_000;

/// `2026-11-15T21:24:44Z`.
pub(crate) fn date(at_ms: u64) -> String {
    let at = UNIX_EPOCH + Duration::from_millis(at_ms.min(LATEST_MS));
    humantime::format_rfc3339_seconds(at).to_string()
}

/// `11-15 21:24:44`, in UTC.
pub(crate) fn short(at_ms: u64) -> String {
    date(at_ms).replace('T', " ").chars().skip(5).take(14).collect()
}

/// `21:24:44`, in UTC.
pub(crate) fn time(at_ms: u64) -> String {
    date(at_ms).chars().skip(11).take(8).collect()
}

/// How long ago that was by this machine's clock, `12 s ago`; `-` if nobody ever said when, as of a
/// member that was killed before it could say anything about itself.
pub(crate) fn ago(at_ms: u64) -> String {
    if at_ms == 0 {
        return "-".to_owned();
    }
    format!("{} ago", passed(at_ms))
}

/// How long ago that was by this machine's clock, `12 s`.
pub(crate) fn passed(at_ms: u64) -> String {
    span::text(Duration::from_millis(clock::wall_ms().saturating_sub(at_ms)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_date_panics() {
        assert_eq!(date(0), "1970-01-01T00:00:00Z");
        assert_eq!(date(u64::MAX), "9999-12-31T23:59:59Z");
        assert_eq!(time(45_296_000), "12:34:56");
        assert_eq!(short(45_296_000), "01-01 12:34:56");
        assert_eq!((ago(0).as_str(), ago(u64::MAX).as_str()), ("-", "0 µs ago"));
    }
}
