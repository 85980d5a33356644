//! Steps that cargo and its friends do.
//!
//! All of them work on the whole workspace with the same features and the same profile, so that
//! nothing is built twice.

use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Result;

use crate::process;
use crate::step::{Context, Counts, Verdict};

/// Every store, in the command line and in the benchmark too.
const FEATURES: &str = "incumbent-cli/all-stores,incumbent-bench/all-stores";

const PATIENCE: Duration = Duration::from_secs(40 * 60);

/// More failures than these are no accident.
const ACCIDENTS: usize = 5;

pub(super) fn fmt(context: &mut Context) -> Result<Verdict> {
    plain(&mut context.cargo(&["fmt", "--all", "--check"]))
}

pub(super) fn clippy(context: &mut Context) -> Result<Verdict> {
    plain(&mut context.cargo(&[
        "clippy",
        "--workspace",
        "--all-targets",
        "--features",
        FEATURES,
        "--",
        "--deny",
        "warnings",
    ]))
}

pub(super) fn tests(context: &mut Context) -> Result<Verdict> {
    let mut command = context.cargo(&TESTS);
    let (verdict, failed) = listed(command.arg("--no-fail-fast"))?;
    match verdict {
        Verdict::Tests(counts) if counts.failed > 0 => again(context, counts, &failed),
        other => Ok(other),
    }
}

const TESTS: [&str; 7] =
    ["test", "--workspace", "--features", FEATURES, "--lib", "--bins", "--tests"];

/// Runs what failed once more, alone: many tests wait for real processes and servers, and a machine
/// that stands still for seconds fails them. One that holds then is named in the summary, because
/// it is still a bug.
fn again(context: &mut Context, mut counts: Counts, failed: &[String]) -> Result<Verdict> {
    if failed.len() as u64 != counts.failed || failed.len() > ACCIDENTS {
        return Ok(Verdict::Tests(counts));
    }
    for name in failed {
        println!("\n-- {name} failed: once more, alone\n");
        let mut command = context.cargo(&TESTS);
        let verdict = counted(command.args(["--", "--exact", name]))?;
        if matches!(verdict, Verdict::Tests(Counts { passed: 1.., failed: 0, .. })) {
            println!("UNSTEADY: {name} failed, and held when it was run alone: a bug to mend");
            counts.failed -= 1;
            counts.passed += 1;
            counts.unsteady += 1;
        }
    }
    Ok(Verdict::Tests(counts))
}

pub(super) fn doctests(context: &mut Context) -> Result<Verdict> {
    let mut command = context.cargo(&["test", "--workspace", "--features", FEATURES]);
    counted(command.args(["--doc", "--no-fail-fast"]))
}

pub(super) fn docs(context: &mut Context) -> Result<Verdict> {
    let mut command = context.cargo(&["doc", "--workspace", "--features", FEATURES, "--no-deps"]);
    plain(command.env("RUSTDOCFLAGS", "--deny warnings"))
}

pub(super) fn readme(context: &mut Context) -> Result<Verdict> {
    let arguments = ["test", "--workspace", "--features", FEATURES, "--test", "readme"];
    let verdict = counted(&mut context.cargo(&arguments))?;
    Ok(match verdict {
        Verdict::Tests(Counts { passed: 0, failed: 0, .. }) => {
            Verdict::Failed("there is no test of the README".to_owned())
        }
        other => other,
    })
}

pub(super) fn deny(context: &mut Context) -> Result<Verdict> {
    let asked =
        context.cargo(&["deny", "--version"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !asked.is_ok_and(|status| status.success()) {
        println!("cargo-deny is not installed here, so licences and advisories are NOT checked.");
        println!("To check them: cargo install cargo-deny, then cargo deny check");
        return Ok(Verdict::Skipped("cargo-deny is not installed".to_owned()));
    }
    plain(&mut context.cargo(&["deny", "--all-features", "check"]))
}

/// A command that holds or not.
pub(super) fn plain(command: &mut Command) -> Result<Verdict> {
    let ran = process::run(command, PATIENCE, |_| {})?;
    Ok(if ran.success { Verdict::Passed } else { Verdict::Failed(ran.story) })
}

/// A run of tests, counted by what the harness prints.
fn counted(command: &mut Command) -> Result<Verdict> {
    Ok(listed(command)?.0)
}

/// The same, and the names of those that failed.
fn listed(command: &mut Command) -> Result<(Verdict, Vec<String>)> {
    let (mut counts, mut failed) = (Counts::default(), Vec::new());
    let ran = process::run(command, PATIENCE, |line| {
        count(line, &mut counts);
        failed.extend(failure(line));
    })?;
    if !ran.success && counts.failed == 0 {
        let story = format!("{}: not all of it was built or run", ran.story);
        return Ok((Verdict::Failed(story), failed));
    }
    Ok((Verdict::Tests(counts), failed))
}

fn failure(line: &str) -> Option<String> {
    let name = line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?;
    Some(name.to_owned())
}

fn count(line: &str, counts: &mut Counts) {
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
        assert_eq!(failure("test two ... FAILED").as_deref(), Some("two"));
        assert_eq!(failure("test one ... ok"), None);
    }
}
