//! `cargo xtask`: the checks of this workspace, and the servers that they need.

mod bench;
mod clock;
mod counts;
mod dependencies;
mod failures;
mod process;
mod servers;
mod step;
mod steps;
mod style;
mod summary;
mod tree;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::step::Context;

/// The checks of this workspace.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run all checks, one after the other, to the end, and sum up.
    Test {
        /// More seeds and more rounds: what a release needs.
        #[arg(long)]
        full: bool,
        /// Run only this step; may be given several times. `cargo xtask steps` lists them.
        #[arg(long, value_name = "STEP")]
        only: Vec<String>,
    },
    /// List the steps of `test`.
    Steps,
    /// Check docs/failures.md: every reference exists, and the first thirty are covered.
    Failures,
    /// Check the rules that no compiler knows: length of files, leftovers, paths of one machine.
    Style,
    /// Count the instructions of the hot paths, and compare them with those that are checked in.
    Counts {
        /// Keep them as those to compare with.
        #[arg(long)]
        accept: bool,
    },
    /// Start a private server for tests, print its variable, and stop it at the end of input or
    /// on Ctrl-C.
    Serve {
        /// Which one: postgres, redis, mariadb, etcd, nats, azurite or moto.
        server: String,
    },
    /// Start private servers and measure the stores on them.
    Bench {
        /// What to measure, as incumbent-bench takes it: `stores`, `cost`, `fleet`, `duties` or
        /// `peers`, and options.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        arguments: Vec<String>,
    },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(arguments.command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<bool> {
    process::end_all_on_signal()?;
    let root = tree::root()?;
    match command {
        Command::Test { full, only } => steps::run(&Context::new(root, full), &only),
        Command::Steps => {
            for step in steps::ALL {
                println!("{:<10} {}", step.name, step.about);
            }
            for step in steps::FULL {
                println!("{:<10} {} (with --full)", step.name, step.about);
            }
            Ok(true)
        }
        Command::Failures => failures::check(&root),
        Command::Style => style::check(&root),
        Command::Counts { accept: true } => counts::accept(&mut Context::new(root, false)),
        Command::Counts { accept: false } => {
            steps::run(&Context::new(root, false), &["counts".to_owned()])
        }
        Command::Serve { server } => servers::serve(&server),
        Command::Bench { arguments } => bench::run(Context::new(root, false), &arguments),
    }
}
