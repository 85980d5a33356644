//! Ticks by a cron expression.

use std::str::FromStr;

use croner::Cron;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::ScheduleError;
use super::ticks::LAST;
use crate::driver::clock;

/// A cron expression in a time zone.
#[derive(Clone, Debug)]
pub(super) struct Crontab {
    cron: Cron,
    zone: TimeZone,
}

impl Crontab {
    pub(super) fn new(expression: &str, zone: &str) -> Result<Self, ScheduleError> {
        let wrong = |reason: &str| ScheduleError::Expression {
            expression: expression.chars().take(100).collect(),
            reason: reason.trim_end_matches('.').to_owned(),
        };
        let cron = Cron::from_str(expression).map_err(|error| wrong(&error.to_string()))?;
        // A field such as "," is taken and matches nothing, and a search for that goes through
        // every minute of three thousand years.
        if !fields_match(&cron) {
            return Err(wrong("a field of it matches nothing"));
        }
        let zone = match zone {
            // Known without a database.
            "UTC" => TimeZone::UTC,
            _ => TimeZone::get(zone).map_err(|error| ScheduleError::TimeZone {
                zone: zone.chars().take(100).collect(),
                reason: error.to_string(),
            })?,
        };
        let crontab = Self { cron, zone };
        if crontab.next(clock::wall_ms()).is_none() {
            let expression = expression.chars().take(100).collect();
            return Err(ScheduleError::Never { expression });
        }
        Ok(crontab)
    }

    /// The first time after this one that matches, in milliseconds since 1970.
    pub(super) fn next(&self, after: u64) -> Option<u64> {
        let from = i64::try_from(after.min(LAST)).ok()?;
        let from = Timestamp::from_millisecond(from).ok()?.to_zoned(self.zone.clone());
        // An error means that the search reached its limit, far in the future.
        let next = self.cron.find_next_occurrence(&from, false).ok()?;
        // Whoever goes from tick to tick must come to an end, whatever that crate does.
        let next = u64::try_from(next.timestamp().as_millisecond()).ok()?;
        (next > after).then_some(next)
    }
}

/// Whether each field has something that it can match.
fn fields_match(cron: &Cron) -> bool {
    let pattern = &cron.pattern;
    [
        &pattern.seconds,
        &pattern.minutes,
        &pattern.hours,
        &pattern.days,
        &pattern.months,
        &pattern.days_of_week,
        &pattern.years,
    ]
    .iter()
    .all(|field| field.has_modifiers() || !field.values().is_empty())
}

#[cfg(test)]
mod tests {
    use incumbent_core::random::Random;

    use super::*;
    use crate::lead::periodic::ticks::Ticks;

    fn at(text: &str) -> u64 {
        u64::try_from(text.parse::<Timestamp>().unwrap().as_millisecond()).unwrap()
    }

    fn following(cron: &Crontab, after: &str, count: usize) -> Vec<String> {
        std::iter::successors(cron.next(at(after)), |tick| cron.next(*tick))
            .take(count)
            .map(|tick| Timestamp::from_millisecond(tick as i64).unwrap().to_string())
            .collect()
    }

    #[test]
    fn expressions_are_in_utc() {
        let cron = Crontab::new("0 3 * * *", "UTC").unwrap();
        let ticks = following(&cron, "2026-11-17T03:00:00Z", 2);
        assert_eq!(ticks, ["2026-11-18T03:00:00Z", "2026-11-19T03:00:00Z"]);
        assert_eq!(cron.next(at("2026-11-17T02:59:59.999Z")), Some(at("2026-11-17T03:00:00Z")));
        let last = Crontab::new("0 0 L * *", "UTC").unwrap();
        let ticks = following(&last, "2026-12-01T00:00:00Z", 2);
        assert_eq!(ticks, ["2026-12-31T00:00:00Z", "2027-01-31T00:00:00Z"]);
    }

    #[test]
    fn what_is_not_understood_says_so() {
        for bad in
            ["", "0 3 * *", "61 * * * *", "a b c d e", "0 3 * * * * * *", "☃ * * * *", ", * * * *"]
        {
            let said = Crontab::new(bad, "UTC").unwrap_err().to_string();
            assert!(said.contains(&format!("{bad:?}")) && said.contains("0 3 * * *"), "{said}");
        }
        for never in ["0 0 30 2 *", "0 0 0 1 1 * 2020"] {
            let error = Crontab::new(never, "UTC").unwrap_err();
            assert_eq!(error, ScheduleError::Never { expression: never.to_owned() });
        }
        let said = Crontab::new("0 3 * * *", "Europe/Nowhere").unwrap_err().to_string();
        assert!(said.contains("Europe/Nowhere"), "{said}");
    }

    #[test]
    fn no_expression_panics_hangs_or_ticks_backwards() {
        let mut random = Random::new(4711);
        let pieces = [
            "*",
            "0",
            "1",
            "5",
            "7",
            "12",
            "31",
            "59",
            "60",
            "2030",
            "/",
            "-",
            ",",
            "L",
            "W",
            "LW",
            "#",
            "?",
            "+",
            "MON",
            "jan",
            "@",
            "@daily",
            "99999999999",
            "é",
            "\u{0}",
        ];
        let mut understood = 0;
        for _ in 0..5_000 {
            let fields = 1 + random.below(7);
            let expression: Vec<String> = (0..fields)
                .map(|_| {
                    // Stars, so that some of them mean something.
                    if random.below(2) == 0 {
                        return "*".to_owned();
                    }
                    let count = if random.below(3) == 0 { 1 + random.below(4) } else { 1 };
                    let piece = |_| pieces[random.below(pieces.len() as u64) as usize];
                    (0..count).map(piece).collect()
                })
                .collect();
            let Ok(cron) = Crontab::new(&expression.join(" "), "UTC") else { continue };
            understood += 1;
            for after in [0, at("2026-12-31T23:59:59.999Z"), LAST, u64::MAX] {
                let next = cron.next(after);
                assert!(next.is_none_or(|next| next > after), "{expression:?} after {after}");
            }
        }
        assert!(understood > 100, "{understood} of them mean something");
    }

    #[test]
    fn clocks_that_are_put_on_or_back_lose_and_repeat_no_tick() {
        let cron = Crontab::new("30 2 * * *", "Europe/Berlin").unwrap();
        // On 29 March 2026 there is no half past two, and on 25 October there are two.
        let spring = following(&cron, "2026-03-28T00:00:00Z", 3);
        assert_eq!(spring[0], "2026-03-28T01:30:00Z");
        assert!(spring[1].starts_with("2026-03-29T01:"), "{spring:?}");
        assert_eq!(spring[2], "2026-03-30T00:30:00Z");
        let autumn = following(&cron, "2026-10-24T12:00:00Z", 2);
        assert_eq!(autumn, ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]);
        let hourly = Crontab::new("0 * * * *", "Europe/Berlin").unwrap();
        let hours = following(&hourly, "2026-10-24T22:00:00Z", 4);
        let expected = ["2026-10-24T23", "2026-10-25T00", "2026-10-25T01", "2026-10-25T02"];
        assert!(hours.iter().zip(expected).all(|(hour, date)| hour.starts_with(date)), "{hours:?}");
    }

    #[test]
    fn years_of_missed_ticks_cost_little() {
        let ticks = Ticks::cron("* * * * *", "UTC").unwrap();
        let until = at("2026-11-17T03:00:30Z");
        assert_eq!(ticks.recent(0, until, 1), [at("2026-11-17T03:00:00Z")]);
        let yearly = Ticks::cron("0 0 1 1 *", "UTC").unwrap();
        let two = [at("2025-01-01T00:00:00Z"), at("2026-01-01T00:00:00Z")];
        assert_eq!(yearly.recent(0, until, 2), two);
    }
}
