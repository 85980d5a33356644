//! The same numbers in OpenMetrics, for those who ask for it.

use axum::http::{HeaderMap, header};

/// What such an answer is.
pub(super) const OPEN_FORMAT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Whether OpenMetrics is accepted. Whoever names it can read it, and Prometheus names it first.
pub(super) fn is_asked_for(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|kind| {
        let kind = kind.trim();
        let (kind, parameters) = kind.split_once(';').unwrap_or((kind, ""));
        let refused = parameters.split(';').any(|it| matches!(it.trim(), "q=0" | "q=0.0"));
        kind.trim().eq_ignore_ascii_case("application/openmetrics-text") && !refused
    })
}

/// Writes Prometheus' text as OpenMetrics: a counter is named without its `_total` where it is described, and
/// the end is marked, so that a page that was cut off is noticed.
pub(super) fn written(text: &str) -> String {
    let mut open = String::with_capacity(text.len() + 8);
    for line in text.lines() {
        match described(line) {
            Some((word, name, rest)) => {
                let name = name.strip_suffix("_total").unwrap_or(name);
                open.extend(["# ", word, " ", name, " ", rest]);
            }
            None => open.push_str(line),
        }
        open.push('\n');
    }
    open.push_str("# EOF\n");
    open
}

/// The parts of a line that describes numbers: which word, of what, and the rest.
fn described(line: &str) -> Option<(&str, &str, &str)> {
    let (word, rest) = line.strip_prefix("# ")?.split_once(' ')?;
    let (name, rest) = rest.split_once(' ')?;
    matches!(word, "HELP" | "TYPE").then_some((word, name, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn who_names_it_gets_it() {
        let asks = |accept: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
            is_asked_for(&headers)
        };
        assert!(asks("application/openmetrics-text; version=1.0.0; q=0.8, text/plain; q=0.5"));
        assert!(asks("text/plain, Application/OpenMetrics-Text"));
        assert!(!asks("text/plain") && !asks("*/*") && !asks("application/openmetrics-text;q=0"));
        assert!(!is_asked_for(&HeaderMap::new()));
    }

    #[test]
    fn counters_are_described_without_their_ending_and_the_end_is_marked() {
        let text = "# HELP a_total How # TYPE often.\n# TYPE a_total counter\na_total{b=\"# TYPE a_total\"} 1\n";
        let open = "# HELP a How # TYPE often.\n# TYPE a counter\na_total{b=\"# TYPE a_total\"} 1\n# EOF\n";
        assert_eq!(written(text), open);
    }
}
