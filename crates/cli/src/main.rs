//! The command line of incumbent: see who leads, steer it, and watch a cluster take over.

mod arguments;
mod change;
mod command;
mod config;
mod demo;
mod doctor;
mod exit;
mod help;
mod hidden;
mod hints;
mod interrupt;
mod json;
mod log;
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
mod unknown;
mod unread;
mod usage;
mod when;
mod whom;

use std::fs::File;
use std::process::ExitCode;
use std::time::Duration;

use clap::ArgMatches;

use crate::arguments::{Arguments, Command};
use crate::command::ask::Order;
use crate::exit::{Code, Failure, Outcome};
use crate::out::{note, say};
use crate::session::Session;
use crate::style::BAD;

/// So many files every command may want to open at once.
const FILES: usize = 32;

/// How long a file may take to be closed when the command is done.
const CLOSING: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    // This program is also the guardian of the command that `run` runs.
    #[cfg(target_os = "linux")]
    if let Some(code) = incumbent_supervise::role() {
        return code;
    }
    if let Err(failure) = check_variables() {
        return ended(Err(failure));
    }
    let (arguments, matches) = match usage::parse() {
        Ok(parsed) => parsed,
        Err(error) => return unparsed(error),
    };
    if let Err(failure) = usage::refuse_blanks(&matches) {
        return ended(Err(failure));
    }
    hidden::hide(&arguments, &matches);
    let outcome = run(&arguments, &matches);
    log::finish();
    // Whether it is or not, there is nothing more to do.
    let _ = incumbent::sqlite::until_closed(CLOSING);
    ended(outcome)
}

/// Prints the help that was asked for, or what isn't understood.
fn unparsed(error: clap::Error) -> ExitCode {
    if error.use_stderr() {
        note!("{}", usage::refusal(error));
        return ExitCode::from(Code::Usage.number());
    }
    say!("{}", error.render().ansi().to_string().trim_end());
    ended(Ok(()))
}

/// Says what went wrong, if anything did.
fn ended(outcome: Outcome) -> ExitCode {
    let unwritten = out::unwritten().map(|error| {
        let next = "Make room, or send it elsewhere";
        Failure::new(Code::Unwritten, format!("the output can't be written: {error}. {next}"))
    });
    match outcome.and(unwritten.map_or(Ok(()), Err)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !failure.message.is_empty() {
                let message = hidden::scrubbed(out::plain_lines(&failure.message));
                note!("{BAD}incumbent:{BAD:#} {message}");
            }
            ExitCode::from(failure.code.number())
        }
    }
}

/// Variables that are no text, which would be taken for unset or be told of without their names.
fn check_variables() -> Outcome {
    for name in ["STORE", "CLUSTER", "NODE", "TTL"] {
        let name = format!("INCUMBENT_{name}");
        if let Some(Err(_)) = std::env::var_os(&name).map(std::ffi::OsString::into_string) {
            return Err(Failure::usage(format!(
                "{name} is not UTF-8: set it to text, or unset it"
            )));
        }
    }
    Ok(())
}

/// Whether some more files can be opened. Clients and runtimes panic where they can't.
fn check_files() -> Outcome {
    let opened: std::io::Result<Vec<File>> = (0..FILES).map(|_| File::open("/dev/null")).collect();
    opened.map(drop).map_err(Failure::from)
}

fn run(arguments: &Arguments, matches: &ArgMatches) -> Outcome {
    check_files()?;
    let session = Session::new(arguments, matches)?;
    let ask = |order| session.block_on(command::ask::run(&session, order));
    match &arguments.command {
        Command::Demo(demo) => demo::run(&session.place, demo),
        Command::DemoNode(node) => demo::node::run(&session.place, node),
        #[cfg(target_os = "linux")]
        Command::Run(run) => command::run::run(&session, run),
        #[cfg(feature = "serve")]
        Command::Serve(serve) => command::serve::run(&session, serve),
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
        Command::Pin(pin) => ask(Order::Pin(pin)),
        Command::Unpin(duty) => ask(Order::Unpin(duty)),
        Command::Pause(duty) => ask(Order::Pause(duty)),
        Command::Resume(duty) => ask(Order::Resume(duty)),
        Command::Move(step) => ask(Order::Move(step)),
        Command::Cordon(node) => ask(Order::Cordon(node)),
        Command::Uncordon(node) => ask(Order::Uncordon(node)),
        Command::Drain(node) => ask(Order::Drain(node)),
        Command::Undrain(node) => ask(Order::Undrain(node)),
        Command::Freeze => ask(Order::Freeze),
        Command::Thaw => ask(Order::Thaw),
        Command::Intents(intents) => session.block_on(command::intents::run(&session, intents)),
        Command::Rollout(rollout) => session.block_on(command::rollout::run(&session, rollout)),
        Command::Store(store) => command::store::run(&session, store),
        Command::Completions(completions) => command::completions::run(completions),
        Command::Man(man) => command::man::run(man),
    }
}
