//! Keeps passwords of the command line to ourselves.
//!
//! Everybody on a machine can read the arguments of every process, but only its owner its
//! environment. So a URL with a secret moves there: the program starts itself anew, as the same
//! process, with the URL in `INCUMBENT_STORE` and without it among its arguments. Overwriting the
//! arguments in place instead would need unsafe code, and differs from system to system.

use std::ffi::{OsStr, OsString};

use clap::ArgMatches;
use clap::parser::ValueSource;
use incumbent_store_common::{has_secret, shown};

use crate::arguments::{Arguments, Command};
use crate::out::note;

const VARIABLE: &str = "INCUMBENT_STORE";

/// Starts this program anew if a URL among its arguments has a secret in it, and else returns.
pub(crate) fn hide(arguments: &Arguments, matches: &ArgMatches) {
    let is_flag = matches.value_source("store") == Some(ValueSource::CommandLine);
    let flag = arguments.store.as_deref().filter(|_| is_flag);
    let word = match &arguments.command {
        Command::Store(store) => store.url(),
        _ => None,
    };
    if arguments.store_hidden || ![flag, word].into_iter().flatten().any(has_secret) {
        return;
    }
    // As the command takes them: what is named last counts.
    let Some(url) = word.or(flag) else { return };
    let mut rest = without(std::env::args_os().skip(1), flag, word);
    rest.insert(0, "--store-hidden".into());
    let error = restarted(url, &rest);
    if !arguments.quiet {
        note!(
            "incumbent: others can see the password in the list of processes ({error}): name the \
             store with {VARIABLE}, or the password's file with passwordfile="
        );
    }
}

/// What is said about arguments, without the secrets in those that are repeated.
pub(crate) fn scrubbed(mut text: String) -> String {
    for argument in std::env::args_os().skip(1) {
        let argument = argument.to_string_lossy();
        let value = argument.split_once('=').map_or("", |(_, value)| value);
        for part in [argument.as_ref(), value] {
            let is_suspect = ["://", "@", "?", "password"].iter().any(|sign| part.contains(sign));
            if is_suspect && has_secret(part) {
                text = text.replace(part, &shown(part));
            }
        }
    }
    text
}

/// The arguments without these two. What follows `--` isn't ours.
fn without(
    words: impl Iterator<Item = OsString>,
    flag: Option<&str>,
    word: Option<&str>,
) -> Vec<OsString> {
    let mut rest: Vec<OsString> = Vec::new();
    let mut ours = true;
    for given in words {
        ours &= given != "--";
        let joined = flag.is_some_and(|url| given == OsStr::new(&format!("--store={url}")));
        let apart =
            flag.is_some_and(|url| given == url) && rest.last().is_some_and(|it| it == "--store");
        if ours && apart {
            rest.pop();
        } else if !(ours && (joined || word.is_some_and(|url| given == url))) {
            rest.push(given);
        }
    }
    rest
}

/// Returns only if it fails.
#[cfg(unix)]
fn restarted(url: &str, arguments: &[OsString]) -> std::io::Error {
    use std::os::unix::process::CommandExt as _;
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => return error,
    };
    let mut command = std::process::Command::new(program);
    if let Some(name) = std::env::args_os().next() {
        command.arg0(name);
    }
    command.args(arguments).env(VARIABLE, url).exec()
}

#[cfg(not(unix))]
fn restarted(_: &str, _: &[OsString]) -> std::io::Error {
    std::io::ErrorKind::Unsupported.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_argument_is_taken_away() {
        let words = ["--store", "U", "run", "--lease", "a", "--", "x", "--store", "U", "U"];
        let rest = without(words.map(OsString::from).into_iter(), Some("U"), None);
        assert_eq!(rest, ["run", "--lease", "a", "--", "x", "--store", "U", "U"]);
        let words = ["status", "--store=U", "-v"];
        let rest = without(words.map(OsString::from).into_iter(), Some("U"), None);
        assert_eq!(rest, ["status", "-v"]);
        let words = ["store", "check", "U"];
        let rest = without(words.map(OsString::from).into_iter(), None, Some("U"));
        assert_eq!(rest, ["store", "check"]);
    }
}
