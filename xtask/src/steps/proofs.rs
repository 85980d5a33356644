//! Steps that run the simulator and the program itself, as a reader of the README would.

use std::time::Duration;

use anyhow::Result;

use super::cargo::plain;
use crate::process;
use crate::step::{Context, Verdict};

/// The simulator is told to be done with 100,000 seeds in ten minutes; slow machines get more.
const PATIENCE: Duration = Duration::from_secs(45 * 60);

pub(super) fn sim(context: &mut Context) -> Result<Verdict> {
    let seeds = if context.full { "100000" } else { "20000" };
    simulate(context, &["--seeds", seeds])
}

pub(super) fn mutants(context: &mut Context) -> Result<Verdict> {
    simulate(context, &["--mutants", "--seeds", "300"])
}

pub(super) fn demo(context: &mut Context) -> Result<Verdict> {
    plain(&mut context.cargo(&["run", "--release", "--", "demo", "--tour"]))
}

pub(super) fn fleet(context: &mut Context) -> Result<Verdict> {
    let arguments = ["--package", "incumbent-bench", "--features", "all-stores", "--", "fleet"];
    plain(context.cargo(&["run", "--release"]).args(arguments))
}

fn simulate(context: &Context, arguments: &[&str]) -> Result<Verdict> {
    let mut command = context.cargo(&["run", "--release", "--package", "incumbent-sim", "--"]);
    let ran = process::run(command.args(arguments), PATIENCE, |_| {})?;
    Ok(if ran.success { Verdict::Passed } else { Verdict::Failed(ran.story) })
}
