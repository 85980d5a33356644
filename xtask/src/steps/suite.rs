//! All unit and integration tests. They mostly wait, for processes, servers and expiry, so several
//! programs of them can run at a time.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::cargo::{FEATURES, PATIENCE as BUILD_PATIENCE};
use super::harness;
use crate::step::{Context, Counts, Verdict};
use crate::{clock, process};

/// How many programs run at a time. Each runs as many tests at once as there are processors.
const AT_ONCE: usize = 3;

/// A program that runs for longer hangs.
const PATIENCE: Duration = Duration::from_secs(20 * 60);

/// More failures than these are no accident.
const ACCIDENTS: usize = 5;

/// Those that take longest begin first, so that none of them is left over at the end: first these files,
/// each of which waits for a minute or more, then these packages.
const LONG_FILES: &[&str] = &["distance.rs", "compete.rs", "run_faults.rs"];
const LONG: &[&str] = &[
    "incumbent-example-outbox",
    "incumbent-cli",
    "incumbent-faults",
    "incumbent",
    "incumbent-postgres",
];

/// A program of tests.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Program {
    package: String,
    /// The file that it was made from, for people.
    source: String,
    path: PathBuf,
    /// Tests expect to be run there, as cargo does.
    directory: PathBuf,
}

/// How the tests of a program went.
struct Outcome {
    counts: Counts,
    failed: Vec<String>,
    /// Why it counts as failed although no test does.
    broken: Option<String>,
}

pub(super) fn run(context: &mut Context) -> Result<Verdict> {
    let build = ["test", "--workspace", "--features", FEATURES, "--lib", "--bins", "--tests"];
    let mut command = context.cargo(&build);
    command.args(["--no-run", "--message-format", "json-render-diagnostics"]);
    let built = process::collect(&mut command, BUILD_PATIENCE, process::Errors::Shown)?;
    if !built.success {
        return Ok(Verdict::Failed(format!("{}: not all of it was built", built.story)));
    }
    let mut programs = programs(&built.output, &context.root);
    programs.sort_by_key(|program| {
        let waits = LONG_FILES.iter().any(|file| program.source.ends_with(file));
        let package = LONG.iter().position(|package| *package == program.package);
        (!waits, package.unwrap_or(LONG.len()))
    });
    println!("{} programs of tests, {AT_ONCE} at a time", programs.len());
    let outcomes = side_by_side(context, &programs)?;
    let mut counts = Counts::default();
    let mut failed = Vec::new();
    let mut broken = Vec::new();
    for (program, outcome) in programs.iter().zip(outcomes) {
        counts.passed += outcome.counts.passed;
        counts.failed += outcome.counts.failed;
        counts.skipped += outcome.counts.skipped;
        failed.extend(outcome.failed.into_iter().map(|name| (program, name)));
        broken.extend(outcome.broken.map(|story| format!("{}: {story}", program.source)));
    }
    if !broken.is_empty() {
        return Ok(Verdict::Failed(broken.join("; ")));
    }
    again(context, &mut counts, &failed)?;
    Ok(Verdict::Tests(counts))
}

/// Runs all programs, some at a time. What each printed is shown when it has ended.
fn side_by_side(context: &Context, programs: &[Program]) -> Result<Vec<Outcome>> {
    let left = Mutex::new(programs.iter().enumerate());
    let next = || locked(&left).next();
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some((number, program)) = next() {
                    let outcome = play(context, program, &[]);
                    locked(&done).push((number, outcome));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, outcome)| outcome).collect()
}

/// Runs a program to its end and shows what it printed.
fn play(context: &Context, program: &Program, arguments: &[&str]) -> Result<Outcome> {
    let mut command = Command::new(&program.path);
    command.args(arguments).current_dir(&program.directory);
    context.prepare(&mut command);
    let started = clock::now();
    let ran = process::collect(&mut command, PATIENCE, process::Errors::Collected)?;
    let took = clock::show(started.elapsed());
    let mut outcome = Outcome { counts: Counts::default(), failed: Vec::new(), broken: None };
    for line in ran.output.lines() {
        harness::count(line, &mut outcome.counts);
        outcome.failed.extend(harness::failure(line).map(str::to_owned));
    }
    if !ran.success && outcome.counts.failed == 0 {
        outcome.broken = Some(ran.story);
    }
    println!("\n-- {}, {took}\n{}", program.source, ran.output.trim_end());
    Ok(outcome)
}

/// Runs what failed once more, alone: many tests wait for real processes and servers, and a machine
/// that stands still for seconds fails them. One that holds then is named in the summary, because
/// it is still a bug.
fn again(context: &Context, counts: &mut Counts, failed: &[(&Program, String)]) -> Result<()> {
    if failed.len() > ACCIDENTS {
        return Ok(());
    }
    for (program, name) in failed {
        println!("\n-- {name} failed: once more, alone");
        let outcome = play(context, program, &["--exact", name])?;
        if matches!(outcome.counts, Counts { passed: 1.., failed: 0, .. }) {
            println!("UNSTEADY: {name} failed, and held when it was run alone: a bug to mend");
            counts.failed = counts.failed.saturating_sub(1);
            counts.passed += 1;
            counts.unsteady += 1;
        }
    }
    Ok(())
}

/// What cargo says that it has built.
fn programs(messages: &str, root: &Path) -> Vec<Program> {
    messages.lines().filter_map(|line| program(line, root).ok()).collect()
}

fn program(line: &str, root: &Path) -> Result<Program> {
    let message: Value = serde_json::from_str(line)?;
    let text = |pointer: &str| {
        let found = message.pointer(pointer).and_then(Value::as_str);
        found.map(str::to_owned).with_context(|| format!("there is no {pointer}"))
    };
    let tests = message.pointer("/profile/test").and_then(Value::as_bool);
    tests.filter(|tests| *tests).context("it is no program of tests")?;
    let manifest = PathBuf::from(text("/manifest_path")?);
    let directory = manifest.parent().context("there is no directory")?.to_owned();
    let source = PathBuf::from(text("/target/src_path")?);
    let id = text("/package_id")?;
    let named = id.rsplit(['/', '#']).next().unwrap_or_default();
    let package = named.split('@').next().unwrap_or_default().to_owned();
    Ok(Program {
        package,
        source: source.strip_prefix(root).unwrap_or(&source).display().to_string(),
        path: text("/executable")?.into(),
        directory,
    })
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cargo_built_is_found_and_nothing_else() {
        let artifact = |test: bool, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","package_id":"path+file:///w/stores/x#incumbent-x@0.1.0","manifest_path":"/w/stores/x/Cargo.toml","target":{{"src_path":"/w/stores/x/tests/a.rs"}},"profile":{{"test":{test}}},"executable":{executable}}}"#
            )
        };
        let messages = [
            artifact(true, r#""/w/target/a-1""#),
            artifact(false, r#""/w/target/a""#),
            artifact(true, "null"),
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
            "no message".to_owned(),
        ];
        let wanted = Program {
            package: "incumbent-x".to_owned(),
            source: "stores/x/tests/a.rs".to_owned(),
            path: "/w/target/a-1".into(),
            directory: "/w/stores/x".into(),
        };
        assert_eq!(programs(&messages.join("\n"), Path::new("/w")), [wanted]);
    }
}
