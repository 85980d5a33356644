//! Steps that run the simulator and the program itself, as a reader of the README would.

use std::time::Duration;

use anyhow::Result;
use incumbent_proving::server::moto;

use super::cargo::plain;
use crate::step::{Context, Step, Verdict};
use crate::{counts, process};

/// The simulator runs some 65 seeds a second on two idle cores; slow machines get more time.
const PATIENCE: Duration = Duration::from_secs(60 * 60);

const SIM: &str = "incumbent-sim";
const DRILL: &str = "incumbent-drill";

/// Building is hard work, and would disturb the tests.
pub(super) const BUILD: Step = Step {
    name: "build",
    about: "the simulator, the drill and the hot paths build",
    run: |context| {
        let built = plain(&mut context.cargo(&["build", "--release", "--package", SIM]))?;
        match built {
            // One after the other: built together they would share features, and be others.
            Verdict::Passed => {
                match plain(&mut context.cargo(&["build", "--release", "--package", DRILL]))? {
                    Verdict::Passed => counts::build(context),
                    other => Ok(other),
                }
            }
            other => Ok(other),
        }
    },
};

pub(super) fn sim(context: &mut Context) -> Result<Verdict> {
    let seeds = if context.full { "100000" } else { "20000" };
    play(context, SIM, &["--seeds", seeds])
}

pub(super) fn mutants(context: &mut Context) -> Result<Verdict> {
    play(context, SIM, &["--mutants", "--seeds", "300"])
}

pub(super) fn drill(context: &mut Context) -> Result<Verdict> {
    let seeds = if context.full { "20000" } else { "2000" };
    match play(context, DRILL, &["--seeds", seeds])? {
        Verdict::Passed => play(context, DRILL, &["--mutants"]),
        other => Ok(other),
    }
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

fn play(context: &Context, program: &str, arguments: &[&str]) -> Result<Verdict> {
    let mut command = context.cargo(&["run", "--release", "--package", program, "--"]);
    // It may run beside the tests: what it prints stays together.
    let ran = process::collect(command.args(arguments), PATIENCE, process::Errors::Collected)?;
    println!("\n-- {program} {}\n{}", arguments.join(" "), ran.output.trim_end());
    Ok(if ran.success { Verdict::Passed } else { Verdict::Failed(ran.story) })
}
