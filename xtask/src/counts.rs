//! Instructions of the hot paths, counted by callgrind and compared with those that are checked in. They
//! don't depend on what else the machine does, so a path that grew is told from a machine that was busy.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::process;
use crate::servers::install;
use crate::step::{Context, Verdict};

const PATIENCE: Duration = Duration::from_secs(10 * 60);

/// What is checked in.
const FILE: &str = "crates/bench/counts.txt";

/// By so much a path may grow before that is a failure.
const TOLERANCE: f64 = 0.1;

/// What may differ between a beat with one lease and one with ten thousand.
const EQUAL: f64 = 0.02;

/// Paths, and how often each is gone, so that the first time counts little.
const PATHS: &[(&str, u64)] =
    &[("held", 10_000), ("beat-1", 500), ("beat-10000", 500), ("plan", 20), ("record", 1_000)];

/// Instructions of one round of each path.
type Counts = Vec<(String, f64)>;

/// Builds what is counted.
pub(crate) fn build(context: &Context) -> Result<Verdict> {
    let arguments = ["build", "--release", "--package", "incumbent-bench"];
    let mut command = context.cargo(&arguments);
    command.args(["--features", "valgrind", "--bin", "incumbent-counts"]);
    let ran = process::run(&mut command, PATIENCE, |_| {})?;
    Ok(if ran.success { Verdict::Passed } else { Verdict::Failed(ran.story) })
}

/// The step: fails if a path grew.
pub(crate) fn check(context: &mut Context) -> Result<Verdict> {
    let counts = match counted(context)? {
        Ok(counts) => counts,
        Err(failed) => return Ok(failed),
    };
    let accepted = std::fs::read_to_string(context.root.join(FILE)).context(FILE)?;
    let mut complaints = complaints(&counts, &parse(&accepted));
    print!("{}", shown(&counts, &parse(&accepted)));
    if complaints.is_empty() {
        return Ok(Verdict::Passed);
    }
    let compiler = compiler();
    if !accepted.contains(&compiler) {
        complaints.push(format!(
            "the numbers in {FILE} are another compiler's than {compiler}: count the commit before \
             with this one"
        ));
    }
    complaints.push("if it is meant: cargo xtask counts --accept".to_owned());
    Ok(Verdict::Failed(complaints.join("; ")))
}

/// Counts, and keeps the numbers as those to compare with.
pub(crate) fn accept(context: &mut Context) -> Result<bool> {
    let counts = match counted(context)? {
        Ok(counts) => counts,
        Err(failed) => bail!("{failed:?}"),
    };
    let mut text = format!(
        "# Instructions of one round, by `cargo xtask counts --accept` with {}.\n",
        compiler()
    );
    for (path, count) in &counts {
        let _ = writeln!(text, "{path} {count:.0}");
    }
    print!("{text}");
    std::fs::write(context.root.join(FILE), text)?;
    Ok(true)
}

fn counted(context: &Context) -> Result<Result<Counts, Verdict>> {
    install::ensure("valgrind", "valgrind")?;
    let built = build(context)?;
    if built != Verdict::Passed {
        return Ok(Err(built));
    }
    // This program was built into the same directory.
    let own = std::env::current_exe()?;
    let target = own.ancestors().find(|place| place.join("CACHEDIR.TAG").is_file());
    let target = target.context("cargo marks its build directory, and none was found")?;
    let (program, outputs) = (target.join("release/incumbent-counts"), target.join("counts"));
    std::fs::create_dir_all(&outputs)?;
    std::thread::scope(|scope| {
        let count = |(path, rounds): &'static (&'static str, u64)| {
            let (program, output) = (&program, outputs.join(path));
            scope.spawn(move || Ok(((*path).to_owned(), count(program, path, *rounds, &output)?)))
        };
        let running: Vec<_> = PATHS.iter().map(count).collect();
        let done = running.into_iter().map(|thread| match thread.join() {
            Ok(counted) => counted,
            Err(_) => bail!("counting panicked"),
        });
        done.collect::<Result<Counts>>().map(Ok)
    })
}

/// Instructions of one round of a path.
fn count(program: &Path, path: &str, rounds: u64, output: &Path) -> Result<f64> {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--toggle-collect=*incumbent_counts*counted*"]);
    command.arg(format!("--callgrind-out-file={}", output.display()));
    command.arg(program).args([path, &rounds.to_string()]);
    let ran = process::collect(&mut command, PATIENCE, process::Errors::Collected)?;
    if !ran.success {
        bail!("{path}: {}\n{}", ran.story, ran.output);
    }
    let text = std::fs::read_to_string(output)?;
    let total = total(&text).with_context(|| format!("{path}: nothing was counted"))?;
    Ok(total / rounds as f64)
}

/// All instructions that callgrind collected, if there are any.
fn total(text: &str) -> Option<f64> {
    let line = text.lines().rev().find_map(|line| line.strip_prefix("totals:"))?;
    line.trim().parse().ok().filter(|total| *total > 0.0)
}

fn parse(text: &str) -> Counts {
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.filter_map(|(path, count)| Some((path.to_owned(), count.parse().ok()?))).collect()
}

fn find(counts: &Counts, path: &str) -> Option<f64> {
    counts.iter().find(|(it, _)| it == path).map(|(_, count)| *count)
}

/// What is wrong with these numbers.
fn complaints(counts: &Counts, accepted: &Counts) -> Vec<String> {
    let mut complaints = Vec::new();
    for (path, count) in counts {
        match find(accepted, path) {
            None => complaints.push(format!("{FILE} has no number for {path}")),
            Some(before) if *count > before * (1.0 + TOLERANCE) => complaints
                .push(format!("{path} takes {count:.0} instructions, {before:.0} were accepted")),
            Some(_) => {}
        }
    }
    if let (Some(one), Some(many)) = (find(counts, "beat-1"), find(counts, "beat-10000"))
        && (many / one - 1.0).abs() > EQUAL
    {
        complaints.push(format!(
            "a beat takes {one:.0} instructions with 1 lease and {many:.0} with 10,000: they must be equal"
        ));
    }
    complaints
}

fn shown(counts: &Counts, accepted: &Counts) -> String {
    let mut text = String::new();
    for (path, count) in counts {
        let change = find(accepted, path).map(|before| 100.0 * (count / before - 1.0));
        let change = change.map(|change| format!("{change:+.1} %")).unwrap_or_default();
        let _ = writeln!(text, "{path:<12} {count:>12.0} instructions {change}");
    }
    text
}

fn compiler() -> String {
    let output = Command::new("rustc").arg("--version").output();
    let output = output.map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&output).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(all: &[(&str, f64)]) -> Counts {
        all.iter().map(|(path, count)| ((*path).to_owned(), *count)).collect()
    }

    #[test]
    fn a_path_that_grew_fails_and_one_that_shrank_does_not() {
        let accepted = parse("# of 1999 by hand\nheld 100\nbeat-1 1000\nbeat-10000 1000\n");
        let found = |held, one, many| {
            let counts = counts(&[("held", held), ("beat-1", one), ("beat-10000", many)]);
            complaints(&counts, &accepted).len()
        };
        assert_eq!(found(109.0, 1000.0, 1000.0), 0);
        assert_eq!(found(20.0, 900.0, 910.0), 0);
        assert_eq!(found(111.0, 1000.0, 1000.0), 1);
        assert_eq!(found(100.0, 900.0, 1000.0), 1, "ten thousand leases cost more than one");
        assert_eq!(complaints(&counts(&[("plan", 1.0)]), &accepted).len(), 1);
    }

    #[test]
    fn what_counted_nothing_is_no_number() {
        assert_eq!(total("summary: 7\ntotals: 12345\n"), Some(12345.0));
        assert_eq!(total("totals: 0\n"), None);
        assert_eq!(total("events: Ir\n"), None);
    }
}
