//! Spans of time as people write and read them.

use std::time::Duration;

use incumbent::Timing;

use crate::setting::LEAST_TTL;

/// Reads `3s`, `500ms`, `1m 30s`.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let span = incumbent::parse_span(text)
        .map_err(|why| format!("{why}; write a number and its unit, such as 3s or 500ms"))?;
    if span.is_zero() {
        return Err("it must be longer than nothing, such as 3s".to_owned());
    }
    Ok(span)
}

/// Reads a span that can be a ttl.
pub(crate) fn ttl(text: &str) -> Result<Duration, String> {
    let ttl = parse(text)?;
    Timing::for_ttl(ttl).check(LEAST_TTL).map_err(|error| error.to_string())?;
    Ok(ttl)
}

/// A span with about three digits: `180 µs`, `4.2 ms`, `3.1 s`, `2 min`, `5 h`, `3 d`.
pub(crate) fn text(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0 if span < Duration::from_millis(1) => format!("{} µs", span.as_micros()),
        0 if span < Duration::from_millis(10) => format!("{:.1} ms", span.as_secs_f64() * 1e3),
        0 => format!("{} ms", span.as_millis()),
        1..10 => format!("{:.1} s", span.as_secs_f64()),
        10..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// A span that changes while one looks at it: `0.4 s`, so that its unit doesn't jump.
pub(crate) fn steady(span: Duration) -> String {
    if span < Duration::from_secs(10) { format!("{:.1} s", span.as_secs_f64()) } else { text(span) }
}

/// A setting: `3 s`, not `3.0 s`.
pub(crate) fn setting(span: Duration) -> String {
    if span.subsec_nanos() == 0 && span.as_secs() < 120 {
        format!("{} s", span.as_secs())
    } else {
        text(span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_with_their_unit() {
        assert_eq!(parse("3s"), Ok(Duration::from_secs(3)));
        assert_eq!(parse("500ms"), Ok(Duration::from_millis(500)));
        for senseless in ["3", "", "soon", "0s", "-1s"] {
            assert!(parse(senseless).is_err(), "{senseless}");
        }
    }

    #[test]
    fn spans_are_short_to_read() {
        let ms = Duration::from_millis;
        for (span, said) in [
            (Duration::from_micros(180), "180 µs"),
            (Duration::from_micros(4200), "4.2 ms"),
            (ms(420), "420 ms"),
            (ms(3140), "3.1 s"),
            (ms(45_300), "45 s"),
            (ms(150_000), "2 min"),
            (ms(7_200_000), "2 h"),
            (ms(400_000_000), "4 d"),
        ] {
            assert_eq!(text(span), said);
        }
        assert_eq!((steady(ms(420)), steady(ms(45_300))), ("0.4 s".to_owned(), "45 s".to_owned()));
        assert_eq!(setting(ms(3000)), "3 s");
        assert_eq!(setting(ms(500)), "500 ms");
    }
}
