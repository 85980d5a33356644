//! What the command line says, and what is said about one that isn't understood.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, CommandFactory, FromArgMatches};

use crate::arguments::Arguments;
use crate::exit::{Failure, Outcome};
use crate::out::plain;
use crate::{help, hidden};

/// Reads the command line.
pub(crate) fn parse() -> Result<(Arguments, ArgMatches), clap::Error> {
    let matches = help::readable(Arguments::command()).try_get_matches()?;
    Ok((Arguments::from_arg_matches(&matches)?, matches))
}

/// Refuses arguments that are empty: most are variables in scripts that aren't set. What says where
/// the cluster is has a default of its own, and is looked at where that is chosen.
pub(crate) fn refuse_blanks(matches: &ArgMatches) -> Outcome {
    let mut command = Arguments::command();
    // Only then does it know how its arguments are written.
    command.build();
    refuse_blanks_of(&command, matches)
}

fn refuse_blanks_of(command: &Command, matches: &ArgMatches) -> Outcome {
    for argument in command.get_arguments().filter(|it| !it.is_global_set()) {
        if is_blank(argument, matches) {
            let or = if argument.is_required_set() { "" } else { ", or leave it out" };
            return Err(Failure::usage(format!(
                "{argument} is empty; probably a variable is not set: say what is \
                 meant{or}"
            )));
        }
    }
    let inner = matches.subcommand();
    let inner = inner.and_then(|(name, inner)| Some((command.find_subcommand(name)?, inner)));
    inner.map_or(Ok(()), |(command, matches)| refuse_blanks_of(command, matches))
}

fn is_blank(argument: &Arg, matches: &ArgMatches) -> bool {
    let id = argument.get_id().as_str();
    let given = matches.value_source(id) == Some(ValueSource::CommandLine);
    if !given || !argument.get_action().takes_values() {
        return false;
    }
    let values = matches.try_get_raw(id).ok().flatten().into_iter().flatten();
    // The words after the name of a command to run are its own business.
    let ours = if argument.is_last_set() { 1 } else { usize::MAX };
    values.take(ours).any(|value| value.to_string_lossy().trim().is_empty())
}

/// What is said about a command line that isn't understood: neither secrets nor what a terminal
/// would obey, and a tip where clap has none.
pub(crate) fn refusal(mut error: clap::Error) -> String {
    name_no_hidden_commands(&mut error);
    let tip = tip(&error);
    let mut text = hidden::scrubbed(error.render().ansi().to_string());
    for argument in std::env::args_os().skip(1) {
        let argument = argument.to_string_lossy();
        let value = argument.split_once('=').map_or("", |(_, value)| value);
        for part in [argument.as_ref(), value, argument.trim_end_matches(value)] {
            let shown = plain(part);
            if shown != part {
                text = text.replace(part, &shown);
            }
        }
    }
    match tip {
        Some(tip) => format!("{}\n\n  tip: {tip}", text.trim_end()),
        None => text.trim_end().to_owned(),
    }
}

/// Commands that are for this program alone aren't offered.
fn name_no_hidden_commands(error: &mut clap::Error) {
    if let Some(ContextValue::Strings(names)) = error.get(ContextKind::ValidSubcommand) {
        let command = Arguments::command();
        let is_hidden =
            |name: &str| command.find_subcommand(name).is_some_and(Command::is_hide_set);
        let names = names.iter().filter(|name| !is_hidden(name)).cloned().collect();
        error.insert(ContextKind::ValidSubcommand, ContextValue::Strings(names));
    }
}

fn tip(error: &clap::Error) -> Option<String> {
    let mut words = std::env::args_os().skip(1);
    match error.kind() {
        ErrorKind::InvalidUtf8 => {
            let wrong = words.find(|word| word.to_str().is_none())?;
            Some(format!("{:?} is not UTF-8: write it as text", wrong.to_string_lossy()))
        }
        ErrorKind::InvalidSubcommand => {
            let blank = matches!(
                error.get(ContextKind::InvalidSubcommand),
                Some(ContextValue::String(name)) if name.trim().is_empty()
            );
            let said = "it is empty; probably a variable is not set";
            blank.then(|| said.to_owned())
        }
        ErrorKind::UnknownArgument | ErrorKind::MissingRequiredArgument => {
            let words: Vec<_> = words.collect();
            let runs = words.iter().any(|word| word == "run");
            let ends = words.iter().any(|word| word == "--");
            let said = "the command and its arguments go after --, as in `incumbent run --lease \
                        scheduler -- ./scheduler`";
            (runs && !ends).then(|| said.to_owned())
        }
        _ => None,
    }
}
