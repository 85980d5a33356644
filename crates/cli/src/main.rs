//! The command line of incumbent: see who leads, steer it, and watch a cluster take over.

mod arguments;
mod demo;
mod exit;
mod interrupt;
mod place;
mod span;
mod style;
mod sweep;

use std::process::ExitCode;

use clap::Parser;

use crate::arguments::{Arguments, Command};
use crate::exit::{Code, Outcome};
use crate::place::Place;
use crate::style::BAD;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let _ = error.print();
            let asked_for = error.exit_code() == 0;
            return ExitCode::from(if asked_for { 0 } else { Code::Usage.number() });
        }
    };
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !failure.message.is_empty() {
                anstream::eprintln!("{BAD}incumbent:{BAD:#} {}", failure.message);
            }
            ExitCode::from(failure.code.number())
        }
    }
}

fn run(arguments: &Arguments) -> Outcome {
    let place = Place::new(arguments.store.as_deref(), arguments.cluster.as_deref())?;
    match &arguments.command {
        Command::Demo(demo) => demo::run(&place, demo),
        Command::DemoNode(node) => demo::node::run(&place, node),
    }
}
