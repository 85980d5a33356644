//! Lengths of time as requests say them: `10s`, `1500ms`, `2m`.

use std::time::Duration;

use crate::problem::Problem;

/// Reads one that is within bounds; `field` is what it is called.
pub(crate) fn read(
    field: &str,
    text: &str,
    least: Duration,
    most: Duration,
) -> Result<Duration, Problem> {
    let span = parse(text).ok_or_else(|| {
        let text: String = text.chars().take(32).collect();
        let form = "write a whole number and its unit, such as \"10s\", \"1500ms\" or \"2m\"";
        Problem::bad(format!("{field} is {text:?}, which isn't a length of time: {form}"))
    })?;
    if (least..=most).contains(&span) {
        return Ok(span);
    }
    Err(Problem::bad(format!("{field} is {span:?}: choose one from {least:?} to {most:?}")))
}

fn parse(text: &str) -> Option<Duration> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    match unit {
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        "m" | "min" => Some(Duration::from_secs(number.checked_mul(60)?)),
        "h" => Some(Duration::from_secs(number.checked_mul(3600)?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_have_a_unit_and_bounds() {
        let second = Duration::from_secs(1);
        let read = |text| read("wait", text, Duration::ZERO, second * 60).map_err(|it| it.code());
        assert_eq!(read("1500ms"), Ok(Duration::from_millis(1500)));
        assert_eq!(read("1m"), Ok(second * 60));
        for text in ["", "5", "s", "-1s", "1.5s", "61s", "1d", "99999999999999999999s", "5 s"] {
            assert_eq!(read(text), Err("bad-request"), "{text}");
        }
    }
}
