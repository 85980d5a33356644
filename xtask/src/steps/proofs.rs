//! Steps that run the simulator and the program itself, as a reader of the README would.

use std::time::Duration;

use anyhow::Result;
use incumbent_proving::server::moto;

use super::cargo::plain;
use crate::process;
use crate::step::{Context, Step, Verdict};

/// The simulator runs some 65 seeds a second on two idle cores; slow machines get more time.
const PATIENCE: Duration = Duration::from_secs(60 * 60);

/// Building is hard work, and would disturb the tests.
pub(super) const BUILD: Step = Step {
    name: "build",
    about: "the simulator builds",
    run: |context| plain(&mut context.cargo(&["build", "--release", "--package", "incumbent-sim"])),
};

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

pub(super) fn s3(context: &mut Context) -> Result<Verdict> {
    let mut variables = context.variables.iter();
    let Some((_, url)) = variables.find(|(name, _)| name == moto::VARIABLE) else {
        return Ok(Verdict::Failed(format!("{} names no server", moto::VARIABLE)));
    };
    let check = ["--features", "object-storage", "--", "store", "check", url];
    plain(context.cargo(&["run", "--release"]).args(check))
}

pub(super) fn fleet(context: &mut Context) -> Result<Verdict> {
    let arguments = ["--package", "incumbent-bench", "--features", "all-stores", "--", "fleet"];
    plain(context.cargo(&["run", "--release"]).args(arguments))
}

fn simulate(context: &Context, arguments: &[&str]) -> Result<Verdict> {
    let mut command = context.cargo(&["run", "--release", "--package", "incumbent-sim", "--"]);
    // It may run beside the tests: what it prints stays together.
    let ran = process::collect(command.args(arguments), PATIENCE, process::Errors::Collected)?;
    println!("\n-- incumbent-sim {}\n{}", arguments.join(" "), ran.output.trim_end());
    Ok(if ran.success { Verdict::Passed } else { Verdict::Failed(ran.story) })
}
