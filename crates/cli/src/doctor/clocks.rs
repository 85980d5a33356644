//! The clock that decides here, and the one of the store, which decides nothing.

use std::time::Duration;

use incumbent::clock;

use super::finding::Finding;
use crate::measure::Clocks;
use crate::span;

/// So often is the clock read to see what that costs.
const READINGS: u32 = 10_000;
/// Clocks that disagree by less are not worth a word.
const APART: Duration = Duration::from_secs(1);

/// Looks at the clock of this machine, and compares the store's with it.
pub(crate) fn look(clocks: Option<Clocks>) -> Finding {
    let here = match reading() {
        Some(cost) => format!("{CLOCK}; a reading takes {} ns{}", cost.as_nanos(), source()),
        None => {
            return Finding::fail(
                "clocks",
                "this machine's clock went backwards between two readings: nothing that is \
                 decided by it holds. Don't use incumbent here",
            );
        }
    };
    let Some(clocks) = clocks else {
        return Finding::ok("clocks", here)
            .note("The store doesn't report the age of records: status can't say who is overdue.");
    };
    let (there, most) = (span::text(clocks.there), span::text(clocks.most));
    if clocks.apart() < APART.max(clocks.most / 20) {
        return Finding::ok("clocks", here)
            .note(format!("The store's clock counted {there} where this one counted {most}."));
    }
    Finding::warn(
        "clocks",
        format!(
            "the store's clock counted {there} where this machine's counted {most}: one of them \
             jumped, or runs at another rate. Elections don't go by it, but `run --once-per` and \
             overdue members in `status` do. Check its time synchronisation"
        ),
    )
    .note(here)
}

/// What one reading costs; nothing if the clock goes backwards.
fn reading() -> Option<Duration> {
    let began = clock::now();
    let mut last = began;
    for _ in 0..READINGS {
        let now = clock::now();
        if now < last {
            return None;
        }
        last = now;
    }
    Some(last.since(began) / READINGS)
}

#[cfg(any(target_os = "linux", target_os = "android"))]
const CLOCK: &str = "CLOCK_BOOTTIME decides; it keeps running while the machine sleeps";
#[cfg(any(target_os = "macos", target_os = "ios"))]
const CLOCK: &str = "CLOCK_MONOTONIC decides; it keeps running while the machine sleeps";
#[cfg(not(any(
    target_os = "linux",
    target_os = "android",
    target_os = "macos",
    target_os = "ios"
)))]
const CLOCK: &str = "the deciding clock may stop while the machine sleeps: don't let it sleep";

/// Where Linux has the time from.
fn source() -> String {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let source = std::fs::read_to_string(path).unwrap_or_default();
    match source.trim() {
        "" => String::new(),
        source => format!(" ({source})"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Mark;
    use super::*;

    #[test]
    fn clocks_that_agree_are_fine_and_a_jump_is_told() {
        let clocks = |there: u64| {
            let (least, most) = (Duration::from_millis(900), Duration::from_secs(1));
            look(Some(Clocks { there: Duration::from_millis(there), least, most }))
        };
        assert_eq!(clocks(950).mark, Mark::Ok);
        let jumped = clocks(3_600_000);
        assert_eq!(jumped.mark, Mark::Warn);
        assert!(jumped.said.contains("60 min"), "{}", jumped.said);
    }
}
