//! What `incumbent run` doesn't end, and doesn't give up: real processes, and a store, a terminal or a
//! service manager that misbehaves.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "this is test code, helpers too")]

mod common;

use std::fs::File;
use std::io::{PipeWriter, Write};
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use common::runs::{Run, Stage, pause, until};
use common::{Ran, Trial};
use incumbent::clock;
use incumbent_proving::Proxy;
use rustix::process::Signal;

/// A command that logs its start, and how it was asked to end.
const LOGS: &str = r#"
    exec 2>/dev/null
    trap 'echo term >> "$LOG"; exit 9' TERM
    trap '' WINCH
    echo "start $INCUMBENT_TERM" >> "$LOG"
    while :; do sleep 0.02; done"#;

/// It leads still, in its first term, and ends in order.
#[track_caller]
fn is_well(stage: &Stage, run: &mut Run) {
    assert_eq!(stage.log.lines(), ["start 1"], "the command was ended");
    assert!(run.0.try_wait().unwrap().is_none(), "it has ended");
    run.signal(Signal::TERM);
    assert_eq!(run.code(), 9, "its own way to end");
}

#[test]
fn o19_signals_without_end_keep_no_deadline_from_being_told() {
    for isolate in ["--isolate=never", "--isolate=auto"] {
        let stage = Stage::with_store();
        let mut run = stage.start(&["--ttl", "3s", isolate], LOGS);
        stage.log.until("start 1");
        let end = clock::now() + Duration::from_secs(6);
        while clock::now() < end && run.0.try_wait().unwrap().is_none() {
            run.signal(Signal::WINCH);
            pause(Duration::from_millis(50));
        }
        is_well(&stage, &mut run);
    }
}

#[test]
fn o19_a_holder_that_is_busy_answers_before_its_command_is_warned() {
    let stage = Stage::with_store();
    let path = stage.trial.path().join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    // Its queue is full, so that whoever wants to tell it something waits.
    let sender = UnixDatagram::unbound().unwrap();
    sender.set_nonblocking(true).unwrap();
    while sender.send_to(b"x", &path).is_ok() {}
    let mut command = stage.shell(&["--ttl", "3s"], LOGS);
    command.env("NOTIFY_SOCKET", &path);
    let mut run = Run::start(command);
    stage.log.until("start 1");
    pause(Duration::from_secs(6));
    manager.set_nonblocking(true).unwrap();
    while manager.recv(&mut [0; 256]).is_ok() {}
    is_well(&stage, &mut run);
}

#[test]
fn o19_a_slow_store_costs_nobody_his_lease() {
    let trial = Trial::on_postgres();
    // 0.6 s there and back: that a beat got through is known after 0.5 to 0.57 of the ttl.
    let proxy = Proxy::blocking_before(&trial.url());
    proxy.set_round_trip(Duration::from_millis(600));
    let stage = Stage::on(trial);
    let mut command = stage.shell(&["--ttl", "3s"], LOGS);
    command.env("INCUMBENT_STORE", proxy.url());
    let mut run = Run::start(command);
    stage.log.until("start 1");
    pause(Duration::from_secs(12));
    is_well(&stage, &mut run);
}

#[test]
fn o20_an_outage_of_two_fifths_of_the_ttl_costs_nobody_his_lease() {
    let stage = Stage::with_store();
    let ttl = Duration::from_secs(6);
    let mut run = stage.start(&["--ttl", "6s"], LOGS);
    stage.log.until("start 1");
    let file = rusqlite::Connection::open(stage.file()).unwrap();
    let beat = || {
        let written = "SELECT hex(value) FROM incumbent_records WHERE key LIKE 'member/%'";
        file.query_row(written, [], |row| row.get::<_, String>(0)).unwrap()
    };
    for _ in 0..2 {
        let known = beat();
        until("a beat", || (beat() != known).then_some(()));
        // The next one is due after 0.3 of the ttl at the earliest: the worst moment, or nearly so.
        pause(ttl.mul_f64(0.29));
        let outage = stage.outage();
        pause(ttl.mul_f64(0.4));
        drop(outage);
        pause(ttl / 10);
    }
    is_well(&stage, &mut run);
}

#[test]
fn o20_what_a_command_gets_at_the_end_is_a_choice() {
    let stage = Stage::with_store();
    let mut run = stage.start(&["--ttl", "6s", "--last-grace", "2s"], LOGS);
    stage.log.until("start 1");
    let outage = stage.outage();
    stage.log.until("term");
    assert_eq!(run.code(), 76, "it had the time to end in order");
    drop(outage);
    let long = stage.trial.run(&["run", "--lease", "a", "--last-grace", "6s", "--", "true"]);
    long.ends_with(64).complains(&["6s", "--last-grace", "third", "5s"]);
}

#[test]
fn o6_restart_knows_the_terms_of_a_store_that_forgot_them() {
    let stage = Stage::with_store();
    let mut run = stage.start(&["--ttl", "3s", "--restart"], LOGS);
    stage.log.until("start 1");
    let mut last = 1;
    for starts in 2..4 {
        // Each round is a node of its own, which has seen nothing of this store by itself.
        let connection = rusqlite::Connection::open(stage.file()).unwrap();
        connection.busy_timeout(common::PATIENCE).unwrap();
        connection.execute("DELETE FROM incumbent_records", []).unwrap();
        let term: u64 = until("the next term", || {
            let lines = stage.log.lines();
            let mut terms = lines.iter().filter_map(|line| line.strip_prefix("start "));
            terms.nth(starts - 1)?.parse().ok()
        });
        assert!(term > last + 1, "term {term} after {last}, which the store forgot");
        last = term;
    }
    run.signal(Signal::TERM);
    run.code();
}

#[test]
fn o21_restart_waits_for_the_store() {
    let stage = Stage::with_store();
    let said = stage.trial.path().join("said");
    let mut command = stage.shell(&["--ttl", "3s", "--restart"], LOGS);
    command.stderr(File::create(&said).unwrap());
    let mut run = Run::start(command);
    stage.log.until("start 1");
    // No beat gets through, and who opens the store anew finds none.
    let outage = stage.outage();
    let away = stage.trial.path().join("away.db");
    std::fs::rename(stage.file(), &away).unwrap();
    std::fs::create_dir(stage.file()).unwrap();
    until("a word about the store", || {
        let text = std::fs::read_to_string(&said).unwrap_or_default();
        text.contains("waiting for the store sqlite:").then_some(())
    });
    pause(Duration::from_secs(2));
    assert!(run.0.try_wait().unwrap().is_none(), "it waits");
    std::fs::remove_dir(stage.file()).unwrap();
    std::fs::rename(&away, stage.file()).unwrap();
    drop(outage);
    stage.log.until("start 2");
    run.signal(Signal::TERM);
    assert_eq!(run.code(), 9);
    let text = std::fs::read_to_string(&said).unwrap();
    assert!(text.contains("the store answers"), "{text}");
}

#[test]
fn o21_a_signal_ends_the_waiting_for_a_store() {
    let stage = Stage::with_store();
    let outage = stage.outage();
    let said = stage.trial.path().join("said");
    let mut command = stage.shell(&[], LOGS);
    command.stderr(File::create(&said).unwrap());
    let mut run = Run::start(command);
    until("a word about the store", || {
        let text = std::fs::read_to_string(&said).unwrap_or_default();
        text.contains("waiting for the store").then_some(())
    });
    run.signal(Signal::INT);
    assert_eq!(run.code(), 130);
    drop(outage);
}

#[test]
fn o22_a_store_that_takes_no_writes_is_waited_for_as_the_flags_say() {
    let stage = Stage::with_store();
    let outage = stage.outage();
    let began = clock::now();
    for (flags, parts) in [
        (&["--no-wait"][..], ["waiting for the store", "--no-wait"]),
        (&["--wait", "2s"], ["waiting for the store", "--wait"]),
    ] {
        let ran = Ran::of(stage.shell(flags, LOGS)).ends_with(69);
        ran.complains(&parts).complains(&["trial.db", "incumbent doctor"]);
    }
    let took = clock::now().since(began);
    assert!(took < Duration::from_secs(25), "each of them alone used to take 30 s: {took:?}");
    assert!(stage.log.lines().is_empty(), "nothing was run");
    drop(outage);
    let mut run = stage.start(&["--wait", "30s"], LOGS);
    stage.log.until("start 1");
    is_well(&stage, &mut run);
}

#[test]
fn o23_nobody_who_reads_what_goes_on_inside_is_needed() {
    let verbose = |stage: &Stage, stderr: PipeWriter| {
        let mut command = stage.shell(&["-vv", "--ttl", "3s"], LOGS);
        command.stderr(stderr);
        let run = Run::start(command);
        stage.log.until("start 1");
        pause(Duration::from_secs(9));
        run
    };
    let stage = Stage::with_store();
    let (reader, broken) = std::io::pipe().unwrap();
    drop(reader);
    is_well(&stage, &mut verbose(&stage, broken));

    // One that nobody empties, and that takes no more than a few lines.
    let stage = Stage::with_store();
    let (reader, mut full) = std::io::pipe().unwrap();
    rustix::pipe::fcntl_setpipe_size(&full, 4096).unwrap();
    full.write_all(&[b'x'; 3072]).unwrap();
    let mut run = verbose(&stage, full);
    let reading = std::thread::spawn(move || std::io::read_to_string(reader).unwrap());
    is_well(&stage, &mut run);
    assert!(reading.join().unwrap().contains("joined"), "what fits is told in the end");
}
