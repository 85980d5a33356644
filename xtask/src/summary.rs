//! The table at the end.

use std::time::Duration;

use crate::clock;
use crate::step::{Counts, Verdict};

/// What is to be said about one step.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) verdict: Verdict,
    pub(crate) took: Duration,
}

/// Prints the table and the count; says whether nothing failed.
///
/// Tests are counted one by one, and every other step as one.
pub(crate) fn print(rows: &[Row], took: Duration) -> bool {
    println!("\n== summary ==\n");
    let mut sum = Counts::default();
    for row in rows {
        let counts = counts(&row.verdict);
        sum.passed += counts.passed;
        sum.failed += counts.failed;
        sum.skipped += counts.skipped;
        let (word, detail) = words(&row.verdict);
        println!("{:<10} {word:<8} {:>12}  {detail}", row.name, clock::show(row.took));
    }
    println!("\ntests are counted one by one, every other step as one; {}", clock::show(took));
    println!("{} passed, {} failed, {} skipped", sum.passed, sum.failed, sum.skipped);
    sum.failed == 0
}

fn counts(verdict: &Verdict) -> Counts {
    match verdict {
        Verdict::Passed => Counts { passed: 1, ..Counts::default() },
        Verdict::Tests(counts) => *counts,
        Verdict::Failed(_) => Counts { failed: 1, ..Counts::default() },
        Verdict::Skipped(_) => Counts { skipped: 1, ..Counts::default() },
    }
}

fn words(verdict: &Verdict) -> (&'static str, String) {
    match verdict {
        Verdict::Passed => ("passed", String::new()),
        Verdict::Tests(counts) => {
            let Counts { passed, failed, skipped, unsteady } = counts;
            let word = if *failed == 0 { "passed" } else { "FAILED" };
            let mut story = format!("{passed} passed, {failed} failed, {skipped} ignored");
            if *unsteady > 0 {
                story.push_str(&format!("; {unsteady} UNSTEADY, held only when run again alone"));
            }
            (word, story)
        }
        Verdict::Failed(story) => ("FAILED", story.clone()),
        Verdict::Skipped(why) => ("skipped", why.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(verdict: Verdict) -> Row {
        Row { name: "step", verdict, took: Duration::ZERO }
    }

    #[test]
    fn one_failure_anywhere_fails_all() {
        assert!(print(
            &[row(Verdict::Passed), row(Verdict::Skipped("no tool".to_owned()))],
            Duration::ZERO
        ));
        assert!(!print(
            &[row(Verdict::Passed), row(Verdict::Failed("no".to_owned()))],
            Duration::ZERO
        ));
        let tests = Counts { passed: 9, failed: 1, ..Counts::default() };
        assert!(!print(&[row(Verdict::Tests(tests))], Duration::ZERO));
    }
}
