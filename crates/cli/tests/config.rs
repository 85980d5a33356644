//! Where settings come from: flags, the environment, a configuration file.
#![allow(clippy::unwrap_used, reason = "this is test code, helpers too")]

mod common;

use std::process::Command;

use common::{Ran, Trial, program};
use serde_json::Value;

/// The program with a configuration file that says this, and nothing in the environment.
fn configured(trial: &Trial, text: &str, arguments: &[&str]) -> Command {
    let path = trial.path().join("app.toml");
    std::fs::write(&path, text).unwrap();
    let mut command = program(arguments);
    command.env("INCUMBENT_CONFIG", path).current_dir(trial.path());
    command
}

/// A file that names the store and the cluster.
fn ours(trial: &Trial) -> String {
    format!("store = \"{}\"\ncluster = \"filed\"\nttl = \"200s\"\n", trial.url())
}

/// What `doctor` says about the settings, with the codes of no matter what.
fn settings(command: Command) -> Value {
    Ran::of(command).json()
}

#[test]
fn flags_win_over_the_environment_and_that_over_the_file() {
    let trial = Trial::with_store();
    let text = ours(&trial);
    let doctor = ["doctor", "--quick", "--json"];
    let filed = settings(configured(&trial, &text, &doctor));
    assert_eq!(filed["cluster"], "filed");
    assert_eq!(filed["ttl"]["asked_ms"], 200_000);
    for (name, line) in [("store", 1), ("cluster", 2), ("ttl", 3)] {
        assert_eq!(filed["settings"][name]["from"], "file", "{filed:#}");
        assert_eq!(filed["settings"][name]["line"], line, "{filed:#}");
    }

    let mut command = configured(&trial, &text, &doctor);
    command.env("INCUMBENT_CLUSTER", "lived").env("INCUMBENT_TTL", "300s");
    let lived = settings(command);
    assert_eq!((&lived["cluster"], &lived["ttl"]["asked_ms"]), (&"lived".into(), &300_000.into()));
    assert_eq!(lived["settings"]["cluster"]["name"], "INCUMBENT_CLUSTER");
    assert_eq!(lived["settings"]["ttl"]["name"], "INCUMBENT_TTL");
    assert_eq!(lived["settings"]["store"]["from"], "file");

    let flags = ["--cluster", "flagged", "doctor", "--quick", "--json", "--ttl", "400s"];
    let mut command = configured(&trial, &text, &flags);
    command.env("INCUMBENT_CLUSTER", "lived").env("INCUMBENT_TTL", "300s");
    let flagged = settings(command);
    assert_eq!(flagged["cluster"], "flagged");
    assert_eq!(flagged["ttl"]["asked_ms"], 400_000);
    assert_eq!(flagged["settings"]["cluster"]["name"], "--cluster");
    assert_eq!(flagged["settings"]["ttl"]["name"], "--ttl");
}

#[test]
fn a_flag_after_the_command_counts_too() {
    let trial = Trial::with_store();
    let text = ours(&trial);
    let command = configured(&trial, &text, &["status", "-v", "--cluster", "flagged"]);
    let ran = Ran::of(command).succeeds();
    ran.complains(&["app.toml:1", "cluster flagged (--cluster)"]);
}

#[test]
fn o24_nothing_is_not_taken_for_the_default() {
    let trial = Trial::with_store();
    let home = trial.path().join("home");
    for (what, empty) in [("store", ""), ("store", "  "), ("cluster", ""), ("config", "")] {
        let (flag, variable) = (format!("--{what}"), format!("INCUMBENT_{}", what.to_uppercase()));
        for command in [&["status"][..], &["run", "--lease", "job", "--", "true"]] {
            let plain = || {
                let mut plain = configured(&trial, &ours(&trial), &[]);
                plain.env("HOME", &home).env_remove("XDG_STATE_HOME");
                plain
            };
            let mut flagged = plain();
            flagged.args([&flag, empty]).args(command);
            let remedy = "leave the flag out";
            Ran::of(flagged).ends_with(64).complains(&[&flag, "is empty", "not set", remedy]);
            let mut lived = plain();
            lived.args(command).env(&variable, empty);
            let remedy = format!("unset {variable}");
            Ran::of(lived).ends_with(64).complains(&[&variable, "is empty", &remedy]);
        }
    }
    for line in ["store = \"\"", "cluster = \"\""] {
        let filed = configured(&trial, line, &["run", "--lease", "job", "--", "true"]);
        Ran::of(filed).ends_with(64).complains(&["app.toml:1", "leave the line out"]);
    }
    assert!(!home.exists(), "no store was made anywhere else");
    // Who needs no store isn't kept from working.
    let mut man = program(&["man"]);
    man.env("INCUMBENT_STORE", "");
    Ran::of(man).succeeds();
    trial.run(&["store", "check", ""]).ends_with(64);
}

#[test]
fn a_file_is_named_by_a_flag_a_variable_or_its_place() {
    let trial = Trial::with_store();
    std::fs::write(trial.path().join("flag.toml"), ours(&trial)).unwrap();
    let flag = ["--config", "flag.toml", "status", "--json"];
    let mut command = configured(&trial, "cluster = \"variable\"", &flag);
    command.env("INCUMBENT_STORE", trial.url());
    assert_eq!(Ran::of(command).succeeds().json()["cluster"], "filed");

    let directory = trial.path().join("incumbent");
    std::fs::create_dir(&directory).unwrap();
    std::fs::write(directory.join("incumbent.toml"), "cluster = \"placed\"").unwrap();
    let status = || {
        let mut command = program(&["status", "--json"]);
        command.env("INCUMBENT_STORE", trial.url()).env_remove("INCUMBENT_CONFIG");
        command
    };
    let mut command = status();
    command.env("XDG_CONFIG_HOME", trial.path());
    assert_eq!(Ran::of(command).succeeds().json()["cluster"], "placed");
    let home = trial.path().join("home");
    std::fs::create_dir(&home).unwrap();
    let mut command = status();
    command.env_remove("XDG_CONFIG_HOME").env("HOME", &home);
    assert_eq!(Ran::of(command).succeeds().json()["cluster"], "default", "none is there");
    std::fs::create_dir(home.join(".config")).unwrap();
    std::fs::rename(&directory, home.join(".config/incumbent")).unwrap();
    let mut command = status();
    command.env_remove("XDG_CONFIG_HOME").env("HOME", &home);
    assert_eq!(Ran::of(command).succeeds().json()["cluster"], "placed");
}

#[test]
fn what_is_wrong_in_a_file_ends_with_64_and_is_named() {
    let trial = Trial::new();
    for (text, parts) in [
        ("clutser = \"x\"\n", &["app.toml:1", "clutser", "cluster"][..]),
        ("\n\nttl = \"soon\"\n", &["app.toml:3", "ttl = \"soon\"", "3s"]),
        ("ttl = \"1s\"\n", &["app.toml:1", "1s"]),
        ("node = 7\n", &["app.toml:1", "node = 7", "quotes"]),
        ("[run]\nisolate = \"perhaps\"\n", &["app.toml:2", "perhaps", "never"]),
        ("[run\n", &["app.toml:1", "TOML"]),
        ("\u{0}", &["app.toml:1"]),
    ] {
        Ran::of(configured(&trial, text, &["status"])).ends_with(64).complains(parts);
    }
    let missing = trial.run(&["--config", "no/such.toml", "status"]);
    missing.ends_with(64).complains(&["no/such.toml", "--config"]);
    let secret = "store = [\"postgres://me:secret@db\"]";
    let ran = Ran::of(configured(&trial, secret, &["status"])).ends_with(64);
    assert!(!ran.stderr.contains("secret"), "{ran:?}");
    let mut command = configured(&trial, "", &["doctor"]);
    command.env("INCUMBENT_TTL", "soon").env("INCUMBENT_STORE", trial.url());
    Ran::of(command).ends_with(64).complains(&["INCUMBENT_TTL", "soon"]);
}

#[test]
fn what_needs_no_settings_reads_no_file() {
    let trial = Trial::new();
    Ran::of(configured(&trial, "nonsense", &["completions", "bash"])).succeeds();
    Ran::of(configured(&trial, "nonsense", &["man"])).succeeds();
}

#[cfg(target_os = "linux")]
#[test]
fn run_does_as_the_file_says_unless_a_flag_says_otherwise() {
    let trial = Trial::with_store();
    let text = format!(
        "{}node = \"billing-7\"\n[run]\ngrace = \"300ms\"\nisolate = \"never\"\n\
         on-lost = \"echo hook\"\nwitness = false\n",
        ours(&trial)
    );
    let run = |flags: &[&str], script: &str| {
        let mut arguments = vec!["run", "-v", "--lease", "job"];
        arguments.extend(flags);
        arguments.extend(["--", "sh", "-c", script]);
        let mut command = configured(&trial, &text, &arguments);
        command.env("PROGRAM", env!("CARGO_BIN_EXE_incumbent"));
        Ran::of(command)
    };
    let ran = run(&[], "echo $INCUMBENT_NODE $INCUMBENT_CLUSTER").succeeds();
    let ran = ran.says(&["billing-7 filed"]);
    ran.complains(&["by a guardian, without a namespace"]);
    run(&["--node", "other"], "echo $INCUMBENT_NODE").succeeds().says(&["other"]);
    let hook = ["--on-lost", "echo mine"];
    for (flags, said) in [(&[][..], "hook"), (&hook[..], "mine")] {
        let lost = run(flags, "\"$PROGRAM\" resign job --timeout 60s & sleep 600");
        lost.ends_with(76).says(&[said]);
    }
}
