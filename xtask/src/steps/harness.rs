//! What the test harness prints.

use crate::step::Counts;

/// Counts what a line says.
pub(super) fn count(line: &str, counts: &mut Counts) {
    if let Some(name) = line.strip_prefix("test ").and_then(|rest| rest.split_once(" ... ")) {
        // These are no tests: other tests run them as processes of their own.
        if name.1.starts_with("ignored") && !name.0.ends_with("child_process") {
            counts.skipped += 1;
        }
        return;
    }
    let Some(result) = line.strip_prefix("test result: ") else { return };
    let number = |word: &str| -> u64 {
        let parts = result.split([';', '.']).map(str::trim);
        let found = parts.filter_map(|part| part.strip_suffix(word)).next();
        found.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
    };
    counts.passed += number(" passed");
    counts.failed += number(" failed");
}

/// The test that failed, if a line says so.
pub(super) fn failure(line: &str) -> Option<&str> {
    line.strip_prefix("test ")?.strip_suffix(" ... FAILED")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_harness_prints_is_counted() {
        let mut counts = Counts::default();
        for line in [
            "running 5 tests",
            "test one ... ok",
            "test two ... FAILED",
            "test three ... ignored, too slow",
            "test child_process ... ignored, the other tests run it",
            "test result: FAILED. 3 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out",
            "test result: ok. 40 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out",
        ] {
            count(line, &mut counts);
        }
        assert_eq!(counts, Counts { passed: 43, failed: 1, skipped: 1, unsteady: 0 });
        assert_eq!(failure("test two ... FAILED"), Some("two"));
        assert_eq!(failure("test one ... ok"), None);
    }
}
