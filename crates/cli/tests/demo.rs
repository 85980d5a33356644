//! The demo: its tour passes, and no process outlives it.

mod common;

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::{PATIENCE, program};
use rustix::process::{Pid, Signal, kill_process};

#[test]
fn the_tour_passes_and_leaves_no_process() {
    let place = tempfile::tempdir().unwrap();
    let mut command = program(&["demo", "--tour"]);
    command.env("TMPDIR", place.path());
    let ran = common::Ran::of(command).succeeds();
    let ran = ran.says(&["killed", "paused", "resumed", "resigned", "evicted", "All is well"]);
    let ran = ran.says(&["duties spread", "given duties", "drained", "no duty ran twice at once"]);
    assert!(!ran.stdout.contains('\u{1b}'), "no colours without a terminal");
    assert!(ran.stdout.lines().all(|line| line.chars().count() <= 80), "{}", ran.stdout);
    let nodes: Vec<i32> = ran.stdout.lines().filter_map(pid).collect();
    assert!(nodes.len() >= 4, "{}", ran.stdout);
    assert!(nodes.iter().all(|pid| is_gone(*pid)), "{nodes:?}");
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0, "nothing is left behind");
}

#[test]
fn an_interrupted_demo_ends_its_nodes() {
    let (mut demo, nodes) = started(program(&["demo", "--tour"]));
    kill_process(Pid::from_child(&demo), Signal::INT).unwrap();
    assert_eq!(demo.wait().unwrap().code(), Some(130));
    assert_gone(&nodes);
}

#[test]
fn a_killed_demo_takes_its_nodes_along() {
    let place = tempfile::tempdir().unwrap();
    let mut command = program(&["demo", "--tour"]);
    command.env("TMPDIR", place.path());
    let (mut demo, nodes) = started(command);
    // One that is stopped can't notice anything by itself.
    kill_process(Pid::from_raw(nodes[0]).unwrap(), Signal::STOP).unwrap();
    demo.kill().unwrap();
    demo.wait().unwrap();
    assert_gone(&nodes);
}

#[test]
fn a_store_that_was_named_is_used_and_left_clean() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("demo.db");
    let url = format!("sqlite:{}", file.display());
    let (mut demo, nodes) = started(program(&["demo", "--tour", "--store", &url]));
    kill_process(Pid::from_child(&demo), Signal::TERM).unwrap();
    assert_eq!(demo.wait().unwrap().code(), Some(130));
    assert_gone(&nodes);
    assert_eq!(records(&file), 0);
}

/// Starts a demo and waits for its first three nodes.
#[allow(clippy::unwrap_used, reason = "this is test code, although no test")]
fn started(mut command: Command) -> (Child, Vec<i32>) {
    let mut demo = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(demo.stdout.take().unwrap());
    let mut nodes = Vec::new();
    let mut line = String::new();
    while nodes.len() < 3 && said.read_line(&mut line).unwrap() > 0 {
        nodes.extend(pid(&line));
        line.clear();
    }
    assert_eq!(nodes.len(), 3);
    // Somebody goes on reading, as a terminal would.
    std::thread::spawn(move || said.read_to_end(&mut Vec::new()));
    (demo, nodes)
}

/// The process of a node that joined.
fn pid(line: &str) -> Option<i32> {
    let (_, rest) = line.split_once("joined as member")?;
    let (_, rest) = rest.split_once("(pid ")?;
    rest.split_once(')')?.0.parse().ok()
}

fn is_gone(pid: i32) -> bool {
    // A process that nobody has waited for yet is dead all the same.
    let status = std::fs::read_to_string(PathBuf::from(format!("/proc/{pid}/status")));
    status.map_or(true, |status| status.contains("State:\tZ"))
}

#[track_caller]
#[allow(clippy::disallowed_methods, reason = "this test has nothing else to do")]
fn assert_gone(pids: &[i32]) {
    let step = Duration::from_millis(10);
    let mut waited = Duration::ZERO;
    while !pids.iter().all(|pid| is_gone(*pid)) {
        assert!(waited < PATIENCE, "some of {pids:?} are still there");
        std::thread::sleep(step);
        waited += step;
    }
}

/// How many clusters' records are in the file.
#[allow(clippy::unwrap_used, reason = "this is test code, although no test")]
fn records(file: &std::path::Path) -> i64 {
    let connection = rusqlite::Connection::open(file).unwrap();
    connection.query_row("SELECT count(*) FROM incumbent_records", [], |row| row.get(0)).unwrap()
}
