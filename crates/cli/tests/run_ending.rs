//! How `incumbent run` ends when signals, warnings and hooks come at a bad moment (O42).
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "this is test code, helpers too")]

mod common;

use std::time::Duration;

use common::runs::{Run, Stage, pause, until};
use rustix::process::Signal;

#[test]
fn o42_a_signal_while_the_lease_is_given_up_ends_a_run_that_restarts() {
    let stage = Stage::with_store();
    let script = r#"
        trap 'echo term >> "$LOG"; sleep 4; exit 0' TERM
        echo "start $INCUMBENT_TERM" >> "$LOG"
        while :; do sleep 0.02; done"#;
    let mut run = stage.start(&["--ttl", "6s", "--restart"], script);
    stage.log.until("start 1");
    // It gives up waiting before the command has ended.
    stage.trial.run(&["resign", "job", "--timeout", "1s"]).ends_with(75);
    stage.log.until("term");
    run.signal(Signal::TERM);
    assert_eq!(run.code(), 76, "the lease was given up before it was asked to end");
    assert_eq!(stage.log.count("start"), 1, "it was started again: {:?}", stage.log.lines());
}

#[test]
fn o42_a_command_that_outlives_a_warning_ends_in_its_own_way_and_is_warned_again() {
    let stage = Stage::with_store();
    let script = r#"
        trap 'echo term >> "$LOG"' TERM
        echo "start $INCUMBENT_TERM" >> "$LOG"
        while [ ! -e "$LOG.enough" ]; do sleep 0.02; done
        exit 0"#;
    let flags = ["--ttl", "6s", "--last-grace", "2s", "--once-per", "1h"];
    let mut run = stage.start(&flags, script);
    stage.log.until("start 1");
    for warnings in 1..=2 {
        let outage = stage.outage();
        until("a warning", || (stage.log.count("term") == warnings).then_some(()));
        drop(outage);
        // Until a beat has got through, the warning stands.
        let beaten = || {
            let connection =
                rusqlite::Connection::open(stage.trial.path().join("trial.db")).unwrap();
            connection.busy_timeout(common::PATIENCE).unwrap();
            let newest = "SELECT max(written_ms) FROM incumbent_records WHERE key LIKE 'member/%'";
            connection.query_row(newest, [], |row| row.get::<_, i64>(0)).unwrap()
        };
        let before = beaten();
        until("a beat", || (beaten() > before).then_some(()));
        pause(Duration::from_millis(200));
    }
    std::fs::write(stage.log.0.with_file_name("log.enough"), "").unwrap();
    assert_eq!(run.code(), 0, "the lease was held all the time");
    // Its success was noted, so that it isn't due.
    let again = ["run", "--lease", "job", "--no-wait", "--once-per", "1h", "--", "echo", "again"];
    let again = stage.trial.run(&again).succeeds();
    assert!(!again.stdout.contains("again"), "{again:?}");
}

#[test]
fn o42_a_hook_that_hangs_makes_nobody_deaf() {
    let stage = Stage::with_store();
    let script = r#"echo start >> "$LOG"; while :; do sleep 0.02; done"#;
    let hook = r#"echo hook >> "$LOG"; sleep 600"#;
    let flags = ["--ttl", "6s", "--restart", "--grace", "1s", "--on-lost", hook];
    let mut run = stage.start(&flags, script);
    stage.log.until("start");
    stage.trial.run(&["resign", "job", "--timeout", "1s"]);
    stage.log.until("hook");
    run.signal(Signal::TERM);
    assert_eq!(run.code(), 76);
    assert_eq!(stage.log.count("start"), 1, "it was started again: {:?}", stage.log.lines());
}

#[test]
fn o42_no_ancestor_of_a_command_shows_the_password() {
    let stage = Stage::with_store();
    let database = stage.trial.path().join("trial.db");
    // SQLite has no passwords, but what is in the variable isn't the guardian's business either.
    for isolate in ["--isolate=never", "--isolate=auto"] {
        let script = r#"
            tr '\0' '\n' < "/proc/$PPID/environ" | grep -c '^LOG=' >> "$LOG"
            tr '\0' '\n' < "/proc/$PPID/environ" | grep '^INCUMBENT_STORE=' >> "$LOG"
            env | grep -c '^INCUMBENT_STORE=' >> "$LOG""#;
        let mut command =
            stage.trial.command(&["run", isolate, "--lease", "job", "--", "sh", "-c", script]);
        command.env("LOG", &stage.log.0);
        command.env("INCUMBENT_STORE", format!("sqlite:{}", database.display()));
        assert_eq!(Run::start(command).code(), 0);
    }
    // Other variables can be seen there, and its own has it.
    assert_eq!(stage.log.lines(), ["1", "1", "1", "1"]);
}
