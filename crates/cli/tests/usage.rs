//! What the command line understands, and what it says about the rest.

mod common;

use common::{Ran, Trial, program};

const COMMANDS: &[&[&str]] = &[
    &["demo"],
    &["run"],
    &["status"],
    &["top"],
    &["leader"],
    &["watch"],
    &["history"],
    &["doctor"],
    &["resign"],
    &["transfer"],
    &["evict"],
    &["duties"],
    &["explain"],
    &["plan"],
    &["pin"],
    &["unpin"],
    &["pause"],
    &["resume"],
    &["move"],
    &["cordon"],
    &["uncordon"],
    &["drain"],
    &["undrain"],
    &["freeze"],
    &["thaw"],
    &["rollout", "status"],
    &["rollout", "hold"],
    &["rollout", "resume"],
    &["rollout", "promote"],
    &["rollout", "abort"],
    &["rollout", "canary"],
    &["store", "check"],
    &["store", "schema"],
    &["store", "init"],
    &["store", "reset"],
    &["completions"],
    &["man"],
];

#[test]
fn help_has_examples_for_every_command_and_the_exit_codes() {
    let help = Ran::of(program(&["--help"])).succeeds();
    help.says(&["Examples:", "Exit codes:", " 64 ", " 69 ", " 75 "]);
    for command in COMMANDS {
        let arguments: Vec<&str> = command.iter().copied().chain(["--help"]).collect();
        Ran::of(program(&arguments)).succeeds().says(&["Examples:\n  incumbent"]);
    }
}

#[test]
fn the_documented_exit_codes_are_those_of_the_help() {
    let page = include_str!("../../../docs/cli.md");
    let help = Ran::of(program(&["--help"])).succeeds().stdout;
    let (_, table) = help.split_once("Exit codes:\n").expect("a table");
    for line in table.lines() {
        let (code, meaning) = line.trim().split_once("  ").expect("a code and its meaning");
        assert!(page.contains(&format!("| {code} | {meaning} |")), "docs/cli.md lacks {line:?}");
    }
}

#[test]
fn what_is_not_understood_ends_with_64() {
    for arguments in [
        &["bogus"][..],
        &[],
        &["status", "--colour"],
        &["leader"],
        &["transfer", "scheduler"],
        &["evict"],
        &["resign", "scheduler", "--timeout", "soon"],
        &["demo", "--ttl", "3"],
        &["demo", "--nodes", "1"],
        &["completions", "cmd.exe"],
        &["status", "-v", "-q"],
        &["--store", "mongo://me:secret@db", "status"],
        &["--store", "sqlite:a.db?busy=soon", "status"],
        &["--store", "solo:", "store", "check"],
        &["--store", "memory:", "demo", "--tour"],
        &["--store", "solo:", "--cluster", "a\tb", "status"],
        &["--store", "solo:", "leader", ""],
        &["demo-node", "--name", "x", "--ttl", "3s", "--lease", "a", "--parent", "1"],
    ] {
        let ran = Ran::of(program(arguments));
        assert_eq!(ran.code, 64, "{arguments:?}: {ran:#?}");
        assert!(!ran.stderr.contains("secret"), "{ran:#?}");
        assert!(!ran.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn errors_name_the_value_and_the_next_step() {
    let missing = Ran::of(program(&["--store", "sqlite:/no/such/place.db", "status"]));
    missing.ends_with(69).complains(&["/no/such/place.db", "store init"]);
    let unmade = Ran::of(program(&["store", "init", "sqlite:/no/such/place.db"]));
    unmade.ends_with(69).complains(&["/no/such", "Make it"]);
    let unknown = Ran::of(program(&["--store", "mongo://db", "status"]));
    unknown.ends_with(64).complains(&["mongo", "sqlite:"]);
}

#[test]
fn a_file_that_is_no_database_is_refused() {
    let trial = Trial::new();
    std::fs::write(trial.path().join("trial.db"), "not a database at all, ".repeat(100)).unwrap();
    trial.run(&["status"]).ends_with(69).complains(&["trial.db"]);
}

#[test]
fn the_default_store_is_in_the_state_directory_and_is_made_when_needed() {
    let trial = Trial::new();
    let mut command = program(&["status", "--json"]);
    command.env("XDG_STATE_HOME", trial.path());
    let status = Ran::of(command).succeeds().json();
    assert_eq!(status["cluster"], "default");
    let mut command = program(&["store", "init"]);
    command.env("XDG_STATE_HOME", trial.path());
    Ran::of(command).succeeds();
    assert!(trial.path().join("incumbent/incumbent.db").exists());

    let mut command = program(&["store", "init"]);
    command.env_remove("XDG_STATE_HOME").env("HOME", trial.path());
    Ran::of(command).succeeds();
    assert!(trial.path().join(".local/state/incumbent/incumbent.db").exists());

    let mut command = program(&["status"]);
    command.env_remove("XDG_STATE_HOME").env_remove("HOME");
    Ran::of(command).ends_with(64).complains(&["--store"]);
}

#[test]
fn flags_win_over_the_environment() {
    let trial = Trial::with_store();
    let status = trial.run(&["status", "--cluster", "other", "--json"]).succeeds().json();
    assert_eq!(status["cluster"], "other");
}

#[test]
fn completions_and_the_manual_are_printed() {
    Ran::of(program(&["completions", "bash"])).succeeds().says(&["_incumbent", "transfer"]);
    Ran::of(program(&["man"])).succeeds().says(&[".TH incumbent", "Exit codes"]);
    let trial = Trial::new();
    trial.run(&["man", "--dir", "."]).succeeds();
    assert!(trial.path().join("incumbent-transfer.1").exists());
    trial.run(&["man", "--dir", "nowhere"]).ends_with(64).complains(&["nowhere"]);
}
