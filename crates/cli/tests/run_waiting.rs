//! How `incumbent run` waits for its turn, with real processes.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "this is test code, helpers too")]

mod common;

use common::Ran;
use common::runs::{Log, Run, Stage, until};
use rustix::process::Signal;

/// A command that logs its start and waits for the end.
const WAITS: &str = r#"
    echo "start $INCUMBENT_TERM $INCUMBENT_NODE ${INCUMBENT_SLOT-none} $INCUMBENT_LEASE" >> "$LOG"
    exec sleep 600"#;

#[test]
fn who_does_not_want_to_wait_is_told_who_has_it() {
    for stage in Stage::on_each_store() {
        let mut holder = stage.start(&["--node", "billing-1"], WAITS);
        stage.log.until("start 1");
        stage.run(&["--no-wait"], &["true"]).ends_with(75).complains(&[
            "billing-1",
            "job",
            "term 1",
        ]);
        let waited = stage.run(&["--wait", "300ms"], &["true"]).ends_with(75);
        waited.complains(&["billing-1 has it in term 1"]);
        holder.signal(Signal::TERM);
        assert_eq!(holder.code(), 143);
        stage.run(&["--no-wait"], &["true"]).ends_with(0);
    }
}

#[test]
fn f52_signals_end_the_waiting_and_the_holder_is_named() {
    for stage in Stage::on_each_store() {
        let _holder = stage.start(&["--node", "billing-1"], WAITS);
        stage.log.until("start 1");
        for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
            let said = stage.trial.path().join("said");
            let mut command = stage.command(&[], &["true"]);
            command.stderr(std::fs::File::create(&said).unwrap());
            let mut waiting = Run::start(command);
            until("a word about the holder", || {
                let text = std::fs::read_to_string(&said).unwrap_or_default();
                text.contains("waiting for job: billing-1 has it in term 1").then_some(())
            });
            waiting.signal(signal);
            assert_eq!(waiting.code(), code);
        }
        assert_eq!(stage.log.count("start"), 1);
    }
}

#[test]
fn the_next_one_starts_when_the_command_ends() {
    for stage in Stage::on_each_store() {
        let mut first = stage.start(&["--node", "one"], WAITS);
        stage.log.until("start 1 one");
        let _second = stage.start(&["--node", "two"], WAITS);
        first.signal(Signal::TERM);
        assert_eq!(first.code(), 143);
        stage.log.until("start 2 two");
    }
}

#[test]
fn the_guardian_closes_a_killed_holder_for_those_who_cannot_see_it() {
    for stage in Stage::on_each_store() {
        for isolate in ["--isolate=never", "--isolate=auto"] {
            let starts = stage.log.count("start");
            let mut first = stage.start(&["--node", "one", "--ttl", "90s", isolate], WAITS);
            until("a start", || (stage.log.count("start") > starts).then_some(()));
            let mut second = stage.start(&["--node", "two", "--no-witness", isolate], WAITS);
            first.signal(Signal::KILL);
            first.end();
            // Far earlier than its ttl, or this would give up.
            until("the next start", || (stage.log.count("start") > starts + 1).then_some(()));
            second.signal(Signal::TERM);
            assert_eq!(second.code(), 143);
        }
    }
}

#[test]
fn so_many_run_at_once_as_there_are_slots() {
    let stage = Stage::new();
    let mut runs: Vec<Run> = (0..3).map(|_| stage.start(&["--slots", "2"], WAITS)).collect();
    until("two starts", || (stage.log.count("start") == 2).then_some(()));
    let slots = |line: &str| line.rsplit_once(' ').map(|(_, lease)| lease.to_owned());
    let taken = |log: &Log| -> Vec<String> {
        let mut slots: Vec<String> = log.lines().iter().filter_map(|line| slots(line)).collect();
        slots.sort();
        slots
    };
    assert_eq!(taken(&stage.log), ["incumbent/slot/job/0", "incumbent/slot/job/1"]);
    assert!(
        stage.log.lines().iter().any(|line| line.ends_with(" 1 incumbent/slot/job/1")),
        "its slot is told"
    );
    let full = stage.run(&["--slots", "2", "--no-wait"], &["true"]).ends_with(75);
    full.complains(&["all 2 slots are taken"]);

    let lines = stage.log.lines();
    let first = lines[0].split(' ').nth(2).unwrap();
    let pid: i32 = first.rsplit_once(':').unwrap().1.parse().unwrap();
    let ended = runs.iter_mut().find(|run| run.pid() == pid).unwrap();
    ended.signal(Signal::TERM);
    assert_eq!(ended.code(), 143);
    until("a third start", || (stage.log.count("start") == 3).then_some(()));
    assert_eq!(taken(&stage.log).len(), 3);
}

#[test]
fn a_job_runs_once_an_interval_wherever_it_is_started() {
    let stage = Stage::new();
    let job = "echo run >> \"$LOG\"";
    let once = ["--once-per", "1h"];
    stage.run(&once, &["sh", "-c", "exit 3"]).ends_with(3);
    stage.run(&once, &["sh", "-c", job]).ends_with(0);
    assert_eq!(stage.log.count("run"), 1, "one that failed doesn't count");
    for node in ["one", "two"] {
        let flags = ["--once-per", "1h", "--node", node];
        stage.run(&flags, &["sh", "-c", job]).ends_with(0).complains(&["not due"]);
    }
    assert_eq!(stage.log.count("run"), 1);
    stage.run(&["--once-per", "1ms"], &["sh", "-c", job]).ends_with(0);
    assert_eq!(stage.log.count("run"), 2, "the interval is that of whoever asks");
    let other = stage.trial.command(&["run", "--lease", "other", "--once-per", "1h", "--", "true"]);
    let other = Ran::of(other).ends_with(0);
    assert!(!other.stderr.contains("not due"), "{other:?}");

    let file = rusqlite::Connection::open(stage.trial.path().join("trial.db")).unwrap();
    let damage = "UPDATE incumbent_records SET value = '{}' WHERE key = 'once/job'";
    assert_eq!(file.execute(damage, []).unwrap(), 1);
    stage.run(&once, &["sh", "-c", job]).ends_with(1).complains(&["once/job"]);
}

#[test]
fn crons_that_fire_together_run_the_job_once() {
    for stage in Stage::on_each_store() {
        let job = "echo run >> \"$LOG\"; sleep 0.3";
        let mut runs: Vec<Run> =
            (0..4).map(|_| Run::start(stage.shell(&["--once-per", "1h"], job))).collect();
        for run in &mut runs {
            assert_eq!(run.code(), 0);
        }
        assert_eq!(stage.log.count("run"), 1);
    }
}
