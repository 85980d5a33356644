//! The role endpoint of processes that were stopped for longer than their ttl, asked at the moment in which they go
//! on: never does one say yes for a lease that somebody else was elected for (F56).
//!
//! Each process has all its leases by one node. `INCUMBENT_TEST_FULL=1` counts 10,000 losses of a lease instead of 400,
//! and `INCUMBENT_TEST_LOSSES` any number.
#![cfg(target_os = "linux")]
#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "this is test code")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "this is test code")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use incumbent::clock;
use incumbent_proving::{RoleAsker, heard};
use rustix::process::{Pid, Signal, kill_process};

/// So many connections ask at a time.
const CONNECTIONS: usize = 8;

/// How long somebody may take to be elected.
const PATIENCE: Duration = Duration::from_secs(120);

/// The latest election for a lease: its term, and by which process.
type Elected = (u64, usize);

#[test]
fn a_process_that_was_stopped_never_says_yes_for_what_others_hold() {
    let (leases, losses) = counted();
    let directory = tempfile::tempdir().unwrap();
    let elections = Elections(Arc::new(Mutex::new(vec![(0, 0); leases])));
    // The first of them has all leases before the second comes.
    let processes = [0, 1].map(|number| {
        let process = Process::start(directory.path(), number, leases, &elections);
        elections.wait("all are taken", |(term, _)| *term > 0);
        process
    });
    let (mut counted, mut asked) = (0, 0);
    for round in 0.. {
        if counted >= losses {
            break;
        }
        let of = round % 2;
        let held = elections.latest();
        let mut askers = processes[of].stop_until_replaced(&elections, of);
        // From here on somebody else is known to be elected. What is asked now waits in the server's sockets.
        let known = elections.latest();
        let share = |number| (number..leases).step_by(CONNECTIONS);
        for (number, asker) in askers.iter_mut().enumerate() {
            asker.send(share(number).map(name));
        }
        processes[of].signal(Signal::CONT);
        for (number, asker) in askers.iter_mut().enumerate() {
            for lease in share(number) {
                asker.read().check(known[lease].0);
                asked += 1;
                counted += usize::from(held[lease].1 == of && known[lease].1 != of);
            }
        }
        // Once more, while it takes in what has happened.
        for lease in 0..leases {
            let (term, _) = elections.latest()[lease];
            let asker = &mut askers[lease % CONNECTIONS];
            asker.send([name(lease)]);
            asker.read().check(term);
            asked += 1;
        }
        println!("round {round}: {counted} losses");
    }
    println!("{counted} losses, {asked} questions, not one wrong yes");
}

fn name(lease: usize) -> String {
    format!("lease-{lease}")
}

/// Who was elected for each lease, as the processes tell.
#[derive(Clone)]
struct Elections(Arc<Mutex<Vec<Elected>>>);

impl Elections {
    fn latest(&self) -> Vec<Elected> {
        self.0.lock().unwrap().clone()
    }

    fn note(&self, process: usize, line: &str) {
        let (lease, term) = line.split_once(' ').expect("a lease and a term");
        let (lease, term): (usize, u64) = (lease.parse().unwrap(), term.parse().unwrap());
        let latest = &mut self.0.lock().unwrap()[lease];
        *latest = (*latest).max((term, process));
    }

    fn are(&self, test: impl Fn(&Elected) -> bool) -> bool {
        self.0.lock().unwrap().iter().all(test)
    }

    fn wait(&self, what: &str, test: impl Fn(&Elected) -> bool) {
        assert!(self.is_in_time(PATIENCE, test), "not in time: {what}");
    }

    fn is_in_time(&self, patience: Duration, test: impl Fn(&Elected) -> bool) -> bool {
        let end = clock::now() + patience;
        while !self.are(&test) {
            if clock::now() >= end {
                return false;
            }
            std::thread::park_timeout(Duration::from_millis(5));
        }
        true
    }
}

/// A process, which is killed with this.
struct Process {
    child: Child,
    socket: PathBuf,
}

impl Process {
    fn start(directory: &Path, number: usize, leases: usize, elections: &Elections) -> Self {
        let socket = directory.join(format!("socket-{number}"));
        let store = format!("sqlite:{}", directory.join("cluster.db").display());
        let mut command = Command::new(env!("CARGO_BIN_EXE_roles"));
        command.args([&store, &format!("process-{number}")]).arg(&socket).arg(leases.to_string());
        let elections = elections.clone();
        let child = heard(&mut command, move |line| elections.note(number, &line));
        let end = clock::now() + PATIENCE;
        while !socket.exists() {
            assert!(clock::now() < end, "it doesn't listen");
            std::thread::park_timeout(Duration::from_millis(5));
        }
        Self { child, socket }
    }

    /// Stops it until all of its leases are held elsewhere, and gives connections that it knew before. One that is
    /// stopped in the middle of a write keeps SQLite's only lock, and nobody can take over: it goes on for a moment
    /// then.
    fn stop_until_replaced(&self, elections: &Elections, of: usize) -> Vec<RoleAsker> {
        for _ in 0..10 {
            let askers = (0..CONNECTIONS).map(|_| RoleAsker::connect(&self.socket)).collect();
            self.signal(Signal::STOP);
            if elections.is_in_time(PATIENCE / 10, |(_, by)| *by != of) {
                return askers;
            }
            self.signal(Signal::CONT);
            std::thread::park_timeout(Duration::from_millis(50));
        }
        panic!("not all leases are taken over from a process that stands still");
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How many leases, and how many losses of one.
fn counted() -> (usize, usize) {
    let full = std::env::var_os("INCUMBENT_TEST_FULL").is_some();
    let losses = std::env::var("INCUMBENT_TEST_LOSSES").ok().and_then(|it| it.parse().ok());
    let (leases, usual) = if full { (1000, 10_000) } else { (200, 400) };
    (leases, losses.unwrap_or(usual))
}
