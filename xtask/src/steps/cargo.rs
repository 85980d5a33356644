//! Steps that cargo and its friends do.
//!
//! All of them work on the whole workspace with the same features and the same profile, so that
//! nothing is built twice.

use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Result;

use super::harness;
use crate::step::{Context, Counts, Verdict};
use crate::{dependencies, process, servers};

/// Every store, in the command line and in the benchmark too, and what else isn't built by default.
pub(super) const FEATURES: &str =
    "incumbent-cli/all-stores,incumbent-bench/all-stores,incumbent/cron,incumbent/metrics";

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
    command.env("RUSTDOCFLAGS", "--deny warnings");
    // It runs beside the tests: what it prints stays together.
    let ran = process::collect(&mut command, PATIENCE, process::Errors::Collected)?;
    println!("\n-- cargo doc\n{}", ran.output.trim_end());
    Ok(if ran.success { Verdict::Passed } else { Verdict::Failed(ran.story) })
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
        println!(
            "cargo-deny is not installed here: licences, sources and bans are checked by deny.toml,"
        );
        println!(
            "advisories are NOT. To check them: cargo install cargo-deny, then cargo deny check"
        );
        let mut command =
            context.cargo(&["metadata", "--format-version", "1", "--all-features", "--locked"]);
        let metadata = process::collect(&mut command, PATIENCE, process::Errors::Shown)?;
        if !metadata.success {
            return Ok(Verdict::Failed(metadata.story));
        }
        let complaints = dependencies::complaints(&context.root, &metadata.output)?;
        return Ok(match complaints.as_slice() {
            [] => Verdict::Skipped(
                "licences, sources and bans hold; advisories need cargo-deny".to_owned(),
            ),
            complaints => Verdict::Failed(complaints.join("; ")),
        });
    }
    plain(&mut context.cargo(&["deny", "--all-features", "check"]))
}

/// These libraries are large, and ask for a newer Rust than the workspace does.
pub(super) fn orms(context: &mut Context) -> Result<Verdict> {
    servers::libpq()?;
    let place = ["--manifest-path", "examples/orms/Cargo.toml", "--target-dir", "target/orms"];
    let fmt = ["fmt", "--manifest-path", "examples/orms/Cargo.toml", "--check"];
    let formatted = plain(&mut context.cargo(&fmt))?;
    if formatted != Verdict::Passed {
        return Ok(formatted);
    }
    counted(context.cargo(&["test", "--locked"]).args(place))
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
