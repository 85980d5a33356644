//! The command line of incumbent: see who leads, steer it, and watch a cluster take over.

mod arguments;
mod change;
mod command;
mod config;
mod demo;
mod doctor;
mod exit;
mod help;
mod interrupt;
mod json;
mod measure;
mod out;
mod place;
mod screen;
mod session;
mod setting;
mod span;
mod standing;
mod steer;
mod style;
mod sweep;
mod table;
mod tone;
mod top;
mod when;
mod whom;

use std::process::ExitCode;

use clap::{ArgMatches, CommandFactory, FromArgMatches};

use crate::arguments::{Arguments, Command};
use crate::command::wish::Asked;
use crate::exit::{Code, Outcome};
use crate::out::note;
use crate::session::Session;
use crate::style::BAD;

fn main() -> ExitCode {
    // This program is also the guardian of the command that `run` runs.
    #[cfg(target_os = "linux")]
    if let Some(code) = incumbent_supervise::role() {
        return code;
    }
    let parsed = help::readable(Arguments::command()).try_get_matches().and_then(|matches| {
        let arguments = Arguments::from_arg_matches(&matches)?;
        Ok((arguments, matches))
    });
    let (arguments, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => {
            let _ = error.print();
            let asked_for = error.exit_code() == 0;
            return ExitCode::from(if asked_for { 0 } else { Code::Usage.number() });
        }
    };
    match run(&arguments, &matches) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !failure.message.is_empty() {
                note!("{BAD}incumbent:{BAD:#} {}", failure.message);
            }
            ExitCode::from(failure.code.number())
        }
    }
}

fn run(arguments: &Arguments, matches: &ArgMatches) -> Outcome {
    let session = Session::new(arguments, matches)?;
    let wish = |asked| session.block_on(command::wish::run(&session, asked));
    match &arguments.command {
        Command::Demo(demo) => demo::run(&session.place, demo),
        Command::DemoNode(node) => demo::node::run(&session.place, node),
        #[cfg(target_os = "linux")]
        Command::Run(run) => command::run::run(&session, run),
        Command::Status => session.block_on(command::status::run(&session)),
        Command::Leader(leader) => session.block_on(command::leader::run(&session, leader)),
        Command::Top => session.block_on(command::top::run(&session)),
        Command::Watch(watch) => session.block_on(command::watch::run(&session, watch)),
        Command::History(history) => session.block_on(command::history::run(&session, history)),
        Command::Resign(resign) => session.block_on(command::resign::run(&session, resign)),
        Command::Transfer(transfer) => session.block_on(command::transfer::run(&session, transfer)),
        Command::Evict(evict) => session.block_on(command::evict::run(&session, evict)),
        Command::Doctor(doctor) => session.block_on(command::doctor::run(&session, doctor)),
        #[cfg(target_os = "linux")]
        Command::DoctorPart { part } => doctor::part::run(part),
        Command::Duties(duties) => session.block_on(command::duties::run(&session, duties)),
        Command::Explain(duty) => session.block_on(command::duties::explain(&session, duty)),
        Command::Plan(plan) => session.block_on(command::duties::plan(&session, plan)),
        Command::Pin(pin) => wish(Asked::Pin(pin)),
        Command::Unpin(duty) => wish(Asked::Unpin(duty)),
        Command::Pause(duty) => wish(Asked::Pause(duty)),
        Command::Resume(duty) => wish(Asked::Resume(duty)),
        Command::Move(step) => wish(Asked::Move(step)),
        Command::Cordon(node) => wish(Asked::Cordon(node)),
        Command::Uncordon(node) => wish(Asked::Uncordon(node)),
        Command::Drain(node) => wish(Asked::Drain(node)),
        Command::Undrain(node) => wish(Asked::Undrain(node)),
        Command::Freeze => wish(Asked::Freeze),
        Command::Thaw => wish(Asked::Thaw),
        Command::Store(store) => command::store::run(&session, store),
        Command::Completions(completions) => command::completions::run(completions),
        Command::Man(man) => command::man::run(man),
    }
}
