//! Which ttl fits a store, by how long its beats take.
//!
//! A beat is due every ttl/3 (up to 10 % later), and trust ends ttl − margin after the last one
//! was sent. A last grace before that, `run` asks its command to end. Should a beat hang until its
//! request is given up, another one has to get through in what is left. That is the patience:
//!
//! ```text
//! 0        1.1 ttl/3        + request time-out    + ttl/60            ttl − ttl/10 − last grace
//! sent ──► next beat, hangs ──► given up ──► tried again ── patience ──► SIGTERM
//! ```
//!
//! Of a store that refuses at once, a beat is tried again after ttl/30 at most. So an outage that
//! begins just before a beat may last until a retry and its answer before that moment.
//!
//! What was measured is the p99 of a quiet minute. A ttl fits if ten times that is within the
//! patience, and twice that within the time-out of a request.

use std::time::Duration;

use incumbent::Timing;
use serde_json::{Value, json};

use super::finding::Finding;
use crate::json::millis;
use crate::setting::LAST_GRACE;
use crate::span;

/// A bad day is so much slower than what was measured.
const RESERVE: u32 = 10;
/// No request is given up while it might well be answered.
const HASTE: u32 = 2;
/// The ttl that is right for most: it rides over ordinary pauses of processes and stores.
const USUAL: Duration = Duration::from_secs(15);
/// The shortest and the longest ttl that there are.
const BOUNDS: (u64, u64) = (3, 3600);

/// What fits a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Advice {
    /// The ttl that was asked about.
    pub(crate) asked: Duration,
    /// How long a beat took, but for one in a hundred.
    pub(crate) p99: Duration,
    /// How long before trust ends a command of `run` is asked to end.
    pub(crate) last_grace: Duration,
    /// How long an outage may be that costs no command its lease.
    pub(crate) outage: Duration,
    /// How long a second beat may take with that ttl, if the first hangs.
    pub(crate) patience: Duration,
    /// Whether it fits.
    pub(crate) fits: bool,
    /// The shortest ttl that fits, if any does.
    pub(crate) shortest: Option<Duration>,
    /// The ttl to use, if any fits.
    pub(crate) recommended: Option<Duration>,
}

impl Advice {
    /// What fits a store whose beats take so long; with the usual last grace unless one was chosen.
    pub(crate) fn new(asked: Duration, p99: Duration, chosen: Option<Duration>) -> Self {
        let (least, most) = BOUNDS;
        let last_grace = |ttl| chosen.unwrap_or(ttl / LAST_GRACE);
        let fits = |ttl| fits(ttl, p99, last_grace(ttl));
        let shortest = (least..=most).map(Duration::from_secs).find(|ttl| fits(*ttl));
        // In steps of five seconds, which are easier to remember.
        let round = |ttl: Duration| Duration::from_secs(ttl.as_secs().div_ceil(5) * 5);
        Self {
            asked,
            p99,
            last_grace: last_grace(asked),
            outage: outage(asked, p99, last_grace(asked)),
            patience: patience(asked, last_grace(asked)),
            fits: fits(asked),
            shortest,
            recommended: shortest.map(|ttl| round(ttl).max(USUAL)),
        }
    }

    /// In words.
    pub(crate) fn finding(&self) -> Finding {
        let (asked, p99) = (span::setting(self.asked), span::text(self.p99));
        let patience = span::text(self.patience);
        let bad_day = span::text(self.p99 * RESERVE);
        let rule = format!(
            "After a beat that hangs, a second one has {patience} left of a ttl of {asked}; ten \
             times the p99, for bad days, is {bad_day}."
        );
        let bridged = format!(
            "An outage of up to {} costs no command of `run` its lease; with a last grace of {} it is \
             asked to end that long before.",
            span::text(self.outage),
            span::text(self.last_grace)
        );
        let Some((ttl, shortest)) = self.recommended.zip(self.shortest) else {
            return Finding::warn(
                "ttl",
                format!(
                    "no ttl fits: a beat takes {p99} at p99, and a request is given up after 5 s. \
                     Use a store that is nearer or quicker"
                ),
            )
            .note(rule);
        };
        let timing = Timing::for_ttl(ttl);
        let (ttl, margin) = (span::setting(ttl), span::setting(timing.margin));
        let finding = if self.fits {
            Finding::ok("ttl", format!("{asked} fits: a beat takes {p99} at p99"))
        } else {
            Finding::warn(
                "ttl",
                format!(
                    "{asked} is too short for this store: a beat takes {p99} at p99. Use --ttl \
                     {}s, or a store that is nearer or quicker",
                    timing.ttl.as_secs()
                ),
            )
        };
        finding
            .note(rule)
            .note(bridged)
            .note(format!(
                "Recommended: ttl {ttl}, margin {margin} (a tenth), a beat every {}. The shortest \
             that fits is {}; others wait that long for a machine that is gone.",
                span::setting(timing.beat),
                span::setting(shortest)
            ))
            .note(
                "The margin is for clocks that run apart by up to 5 % and for work to stop. It \
             doesn't grow with latency: trust counts from before a beat is sent.",
            )
    }

    /// As JSON.
    pub(crate) fn json(&self) -> Value {
        let timing = self.recommended.map(Timing::for_ttl);
        json!({
            "asked_ms": millis(self.asked),
            "fits": self.fits,
            "beat_p99_ms": self.p99.as_secs_f64() * 1e3,
            "patience_ms": millis(self.patience),
            "last_grace_ms": millis(self.last_grace),
            "outage_ms": millis(self.outage),
            "shortest_ms": self.shortest.map(millis),
            "recommended_ms": self.recommended.map(millis),
            "recommended_margin_ms": timing.map(|timing| millis(timing.margin)),
        })
    }
}

/// How long a second beat may take, if the first one hangs until it is given up.
fn patience(ttl: Duration, last_grace: Duration) -> Duration {
    let timing = Timing::for_ttl(ttl);
    left(&timing, last_grace).saturating_sub(timing.request + ttl / 60)
}

/// How long an outage may last that begins just before a beat.
fn outage(ttl: Duration, p99: Duration, last_grace: Duration) -> Duration {
    left(&Timing::for_ttl(ttl), last_grace).saturating_sub(ttl / 30 + p99)
}

/// From the latest moment at which a beat is due until its command is asked to end.
fn left(timing: &Timing, last_grace: Duration) -> Duration {
    timing.trust().saturating_sub(timing.beat * 11 / 10 + last_grace)
}

fn fits(ttl: Duration, p99: Duration, last_grace: Duration) -> bool {
    p99 * RESERVE <= patience(ttl, last_grace) && p99 * HASTE <= Timing::for_ttl(ttl).request
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn the_patience_is_what_a_hanging_beat_leaves() {
        assert_eq!(patience(ms(15_000), ms(750)), ms(13_500 - 750 - 5_500 - 5_000 - 250));
        assert_eq!(patience(ms(3_000), ms(150)), ms(2_700 - 150 - 1_100 - 1_000 - 50));
    }

    #[test]
    fn an_outage_of_two_fifths_of_the_ttl_is_bridged_unless_a_long_last_grace_is_chosen() {
        for ttl in [3_000, 15_000, 60_000] {
            let advice = Advice::new(ms(ttl), ms(ttl) / 50, None);
            assert!(advice.outage >= ms(ttl) * 2 / 5, "{advice:?}");
            let advice = Advice::new(ms(ttl), ms(ttl) / 50, Some(ms(ttl) / 3));
            assert!(advice.outage < ms(ttl) / 5, "{advice:?}");
        }
        assert!(Advice::new(ms(15_000), ms(100), None).fits);
        assert!(!Advice::new(ms(15_000), ms(100), Some(ms(5_000))).fits, "it is reckoned with");
    }

    #[test]
    fn a_quick_store_keeps_the_usual_ttl() {
        let advice = Advice::new(ms(15_000), ms(2), None);
        assert!(advice.fits);
        assert_eq!(advice.shortest, Some(ms(3_000)));
        assert_eq!(advice.recommended, Some(ms(15_000)));
    }

    #[test]
    fn a_slow_store_needs_a_longer_ttl_that_fits_it() {
        let advice = Advice::new(ms(15_000), ms(305), None);
        assert!(!advice.fits);
        assert_eq!(advice.recommended, Some(ms(20_000)));
        for p99 in [10, 100, 300, 500, 1_000, 2_000, 2_500] {
            let advice = Advice::new(ms(15_000), ms(p99), None);
            let recommended = advice.recommended.unwrap();
            assert!(Advice::new(recommended, ms(p99), None).fits, "{p99} ms: {recommended:?}");
            assert!(advice.shortest.unwrap() <= recommended);
        }
        assert!(!Advice::new(ms(3_000), ms(100), None).fits);
    }

    #[test]
    fn a_store_that_is_slower_than_requests_may_be_fits_no_ttl() {
        let advice = Advice::new(ms(15_000), ms(2_600), None);
        assert_eq!((advice.fits, advice.recommended), (false, None));
        assert!(advice.finding().said.contains("no ttl fits"));
    }
}
