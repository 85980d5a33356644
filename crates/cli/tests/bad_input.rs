//! Input that isn't right: no panic, no hang, no secret, the right exit code, and a next step.
//!
//! Most of it is in tables, one for each subject, of cases that are all judged alike (`case.rs`).
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "this is test code, helpers too")]

#[path = "bad_input/case.rs"]
mod case;
mod common;
#[path = "bad_input/environment.rs"]
mod environment;
#[path = "bad_input/files.rs"]
mod files;
#[path = "bad_input/flags.rs"]
mod flags;
#[path = "bad_input/names.rs"]
mod names;
#[path = "bad_input/numbers.rs"]
mod numbers;
#[path = "bad_input/output.rs"]
mod output;
#[path = "bad_input/terminals.rs"]
mod terminals;
#[path = "bad_input/urls.rs"]
mod urls;
#[path = "bad_input/work.rs"]
mod work;

use std::collections::BTreeSet;
use std::process::Command;

use case::{Case, judge};
use common::{Ran, Trial, program};

/// The program by way of a shell that limits it or sends its output somewhere.
fn by_shell(script: &str, arguments: &[&str]) -> Command {
    let inner = program(arguments);
    let mut command = Command::new("sh");
    command.arg("-c").arg(script).arg(inner.get_program()).args(inner.get_args());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

#[test]
fn o40_there_are_more_than_300_cases_and_no_two_are_alike() {
    let subjects: [Vec<Case>; 8] = [
        flags::cases(),
        urls::cases(),
        names::cases(),
        numbers::cases(),
        files::cases(),
        environment::cases(),
        work::cases(),
        output::cases(),
    ];
    let inputs: Vec<String> = subjects.iter().flatten().map(Case::input).collect();
    let mut different = BTreeSet::new();
    for input in &inputs {
        assert!(different.insert(input), "{input} is there twice");
    }
    let count = different.len() + terminals::SCENES.len();
    println!("{count} cases");
    assert!(count >= 300, "there are only {count} cases");
}

#[test]
fn o40_commands_and_flags_that_are_not_understood() {
    judge(&flags::cases());
}

#[test]
fn o31_urls_that_are_not_understood_exit_with_64() {
    judge(&urls::cases());
}

#[test]
fn o40_names_that_are_none() {
    judge(&names::cases());
}

#[test]
fn o40_spans_and_counts_that_are_none() {
    judge(&numbers::cases());
}

#[test]
fn o40_configuration_files_that_are_wrong() {
    judge(&files::cases());
}

#[test]
fn o31_a_bad_variable_is_named() {
    judge(&environment::cases());
}

#[test]
fn o40_work_that_is_not_there() {
    judge(&work::cases());
}

#[test]
fn o31_output_that_can_not_be_written_ends_with_74() {
    judge(&output::cases());
}

#[test]
fn o40_terminals_obey_nobody_and_nothing_is_done_without_an_answer() {
    for scene in terminals::SCENES {
        terminals::play(scene);
    }
}

#[test]
fn o31_too_few_files_are_no_bug_of_ours() {
    let trial = Trial::with_store();
    for limit in 4..48 {
        for words in
            [&["status", "--json"][..], &["run", "--lease", "a", "--no-wait", "--", "true"]]
        {
            let script = format!("ulimit -n {limit}; exec \"$0\" \"$@\"");
            let mut command = by_shell(&script, words);
            command.env("INCUMBENT_STORE", trial.url()).env("INCUMBENT_CLUSTER", "trial");
            let ran = Ran::of(command);
            let what = format!("ulimit -n {limit}: {words:?}: {ran:#?}");
            assert!([0, 69, 71, 127].contains(&ran.code), "{what}");
            assert!(!ran.stderr.contains("panicked"), "{what}");
            if ran.code == 71 {
                assert!(ran.stderr.contains("ulimit -n"), "{what}");
            }
        }
    }
}

#[test]
fn o31_what_can_not_be_seen_in_a_name_is_shown() {
    let trial = Trial::with_store();
    let node = trial.node("a\u{202e}b\u{200b}");
    let mut campaign = node.campaign("le\u{2066}ase").unwrap();
    let _leads = trial.elected(&mut campaign);
    trial.until_named(&node);
    for words in [&["status"][..], &["leader", "le\u{2066}ase"], &["history"]] {
        let ran = trial.run(words).succeeds();
        assert!(ran.stdout.contains("a<U+202E>b<U+200B>"), "{words:?}: {ran:#?}");
        assert!(!ran.stdout.contains(['\u{202e}', '\u{200b}', '\u{2066}']), "{words:?}: {ran:#?}");
    }
    let unknown = trial.run(&["leader", "x\u{202e}y"]);
    assert!(!format!("{}{}", unknown.stdout, unknown.stderr).contains('\u{202e}'), "{unknown:#?}");
}

#[test]
fn o31_watch_ends_when_nobody_reads_any_more() {
    let trial = Trial::with_store();
    let node = trial.node("a");
    let mut campaign = node.campaign("scheduler").unwrap();
    let _leads = trial.elected(&mut campaign);
    trial.until_named(&node);
    // Killed after a while, which would be 124 with a word about it.
    let script = "(timeout 30 \"$0\" \"$@\"; echo \"ended with $?\" >&2) | head -n 1";
    let mut command = by_shell(script, &["watch"]);
    command.env("INCUMBENT_STORE", trial.url()).env("INCUMBENT_CLUSTER", "trial");
    Ran::of(command).succeeds().complains(&["ended with 0"]);
}
