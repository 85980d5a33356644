//! A program with a witness that is killed or paused, with real processes.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "this is test code, although not all of it is a test")]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use incumbent::blocking::Wait;
use incumbent::{Cluster, MemberState, Node};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// The ttl of the program is three times as long.
const EARLY: Duration = Duration::from_secs(30);
/// So long nothing happens that must not happen.
const QUIET: Duration = Duration::from_millis(700);

struct Stage {
    _directory: TempDir,
    url: String,
    program: Child,
}

impl Stage {
    /// The program leads.
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", directory.path().join("cluster.db").display());
        Self::start(directory, &[&url])
    }

    /// The same, by a program that names the file as seen from a directory that it went to.
    fn with_relative_url() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().display().to_string();
        Self::start(directory, &["sqlite:cluster.db", &place])
    }

    fn start(directory: TempDir, arguments: &[&str]) -> Self {
        let url = format!("sqlite:{}", directory.path().join("cluster.db").display());
        let mut program = Command::new(env!("CARGO_BIN_EXE_witnessed"))
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(program.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "1\n");
        Self { _directory: directory, url, program }
    }

    /// Stands for the lease too, and tells when it leads.
    fn candidate(&self, witness: bool) -> Receiver<u64> {
        let builder = Node::builder().cluster("witness").name("candidate");
        let builder = if witness { builder } else { builder.without_witness() };
        let node = builder.join(incumbent::open(&self.url).wait().unwrap()).wait().unwrap();
        let (elected, won) = channel();
        std::thread::spawn(move || {
            let mut campaign = node.campaign("lease").unwrap();
            let leadership = campaign.elected().wait().unwrap();
            let _ = elected.send(leadership.number());
        });
        won
    }

    fn state(&self) -> MemberState {
        let cluster = Cluster::new(incumbent::open(&self.url).wait().unwrap(), "witness").unwrap();
        let deadline = incumbent::clock::now() + EARLY;
        loop {
            // Its name comes a moment after it joined.
            let members = cluster.members().wait().unwrap();
            if let Some(member) = members.iter().find(|member| member.node == "witnessed") {
                return member.state;
            }
            assert!(incumbent::clock::now() < deadline, "{members:?}");
        }
    }

    fn pid(&self) -> i32 {
        i32::try_from(self.program.id()).unwrap()
    }

    fn kill_helper(&self) {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.pid())).unwrap().flatten();
        let lists = tasks.map(|task| std::fs::read_to_string(task.path().join("children")));
        let helpers: Vec<i32> = lists
            .flat_map(|list| {
                let pids = list.unwrap();
                pids.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<_>>()
            })
            .collect();
        assert_eq!(helpers.len(), 1, "one helper");
        for helper in helpers {
            send(helper, Signal::KILL);
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

fn send(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

#[test]
fn the_witness_closes_a_killed_program_for_those_who_cannot_see_it() {
    let mut stage = Stage::new();
    let won = stage.candidate(false);
    assert_eq!(won.recv_timeout(QUIET), Err(RecvTimeoutError::Timeout));
    stage.program.kill().unwrap();
    assert_eq!(won.recv_timeout(EARLY), Ok(2));
}

#[test]
fn a_paused_program_is_not_closed() {
    let stage = Stage::new();
    let won = stage.candidate(true);
    send(stage.pid(), Signal::STOP);
    assert_eq!(won.recv_timeout(QUIET), Err(RecvTimeoutError::Timeout));
    assert_eq!(stage.state(), MemberState::Alive);
    send(stage.pid(), Signal::CONT);
}

#[test]
fn a_witness_that_dies_closes_nobody_and_others_still_see_the_end() {
    let mut stage = Stage::new();
    stage.kill_helper();
    let blind = stage.candidate(false);
    assert_eq!(blind.recv_timeout(QUIET), Err(RecvTimeoutError::Timeout));
    assert_eq!(stage.state(), MemberState::Alive);
    stage.program.kill().unwrap();
    assert_eq!(blind.recv_timeout(QUIET), Err(RecvTimeoutError::Timeout), "nothing is proven");
    // Whoever can see it closes it, for both.
    let _seeing = stage.candidate(true);
    let deadline = incumbent::clock::now() + EARLY;
    while stage.state() != MemberState::Expired {
        assert!(incumbent::clock::now() < deadline, "the evidence is on this machine");
        if let Ok(term) = blind.recv_timeout(Duration::from_millis(10)) {
            assert!(term >= 2, "the other may have led in between, the dead one not");
        }
    }
}

#[test]
fn o38_a_witness_finds_a_file_that_was_named_from_another_directory() {
    let mut stage = Stage::with_relative_url();
    assert_eq!(stage.state(), MemberState::Alive);
    stage.program.kill().unwrap();
    stage.program.wait().unwrap();
    let deadline = incumbent::clock::now() + EARLY;
    while stage.state() == MemberState::Alive {
        assert!(incumbent::clock::now() < deadline, "the witness did not close the member");
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

/// What a program says about its witness.
fn status(mode: &[&str], variables: &[(&str, &str)], wrapper: &[&str]) -> String {
    let program = env!("CARGO_BIN_EXE_witness_status");
    let mut words = wrapper.iter().copied().chain([program]).chain(mode.iter().copied());
    let mut command = Command::new(words.next().unwrap());
    command.args(words).envs(variables.iter().copied()).stdin(Stdio::null());
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let _ = child.kill();
    child.wait().unwrap();
    line
}

#[test]
fn o38_a_witness_says_whether_it_is_ready() {
    let ready = status(&["init"], &[("WITNESS_FIRST", "1")], &[]);
    assert_eq!(ready, "Ready\n");
    let never = status(&[], &[], &[]);
    assert!(never.starts_with("NotInitialised") && never.contains("None"), "{never}");
}

#[test]
fn o38_a_call_behind_a_flag_is_told_and_nothing_runs_twice() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", directory.path().join("cluster.db").display());
    let told = status(&["init"], &[("WITNESS_JOINS", &url)], &[]);
    assert!(told.starts_with("Unwatched") && told.contains("first in `main`"), "{told}");
    // Started as a witness, the program may not join, so that it ends at once.
    let cluster = Cluster::new(incumbent::open(&url).wait().unwrap(), "twice").unwrap();
    assert!(cluster.members().wait().unwrap().len() < 2);
}

#[test]
fn o38_the_first_process_of_a_container_has_no_witness_and_says_so() {
    let first = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"];
    let told = status(&["init"], &[("WITNESS_FIRST", "1")], &first);
    assert!(told.starts_with("Unwatched") && told.contains("PID 1"), "{told}");
    let told = status(&[], &[], &first);
    assert!(told.starts_with("NotInitialised") && told.contains("PID 1"), "{told}");
}
