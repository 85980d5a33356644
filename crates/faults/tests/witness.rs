//! A program with a witness that is killed or paused, with real processes.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "this is test code, although not all of it is a test")]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use incumbent::{Cluster, MemberState, Node, blocking};
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
        let mut program = Command::new(env!("CARGO_BIN_EXE_witnessed"))
            .arg(&url)
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
        let builder = Node::builder().cluster("witness").name("candidate").witness(witness);
        let node = blocking::join(builder, blocking::open(&self.url).unwrap()).unwrap();
        let (elected, won) = channel();
        std::thread::spawn(move || {
            let mut campaign = node.campaign("lease").unwrap();
            let leadership = campaign.elected().unwrap();
            let _ = elected.send(leadership.term());
        });
        won
    }

    fn state(&self) -> MemberState {
        let cluster = Cluster::new(blocking::open(&self.url).unwrap(), "witness").unwrap();
        let deadline = incumbent::clock::now() + EARLY;
        loop {
            // Its name comes a moment after it joined.
            let members = blocking::members(&cluster).unwrap();
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
        assert_eq!(blind.recv_timeout(Duration::from_millis(10)).ok().unwrap_or(2), 2);
    }
}
