//! Steps that cargo and its friends do.
//!
//! All of them work on the whole workspace with the same features and the same profile, so that
//! nothing is built twice.

use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Result;

use super::harness;
use crate::process;
use crate::step::{Context, Counts, Verdict};

/// Every store, in the command line and in the benchmark too, and what else isn't built by default.
pub(super) const FEATURES: &str =
    "incumbent-cli/all-stores,incumbent-bench/all-stores,incumbent/cron";

pub(super) const PATIENCE: Duration = Duration::from_secs(40 * 60);

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
    let mut counts = Counts::default();
    let ran = process::run(command, PATIENCE, |line| harness::count(line, &mut counts))?;
    Ok(if !ran.success && counts.failed == 0 {
        Verdict::Failed(format!("{}: not all of it was built or run", ran.story))
    } else {
        Verdict::Tests(counts)
    })
}
