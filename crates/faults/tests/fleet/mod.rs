//! A number of candidates, as processes of their own.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use incumbent_proving::{History, heard};
use rustix::process::{Pid, Signal, kill_process};

const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Fleet {
    program: &'static str,
    directory: PathBuf,
    url: String,
    /// All that were ever started, dead ones too: their number is their place.
    candidates: Vec<Candidate>,
    /// Who was elected, and in which term.
    elections: Receiver<(usize, u64)>,
    elected: Sender<(usize, u64)>,
    /// The latest election.
    latest: (usize, u64),
    /// The highest term that was dealt with.
    dealt_with: u64,
}

struct Candidate {
    name: String,
    child: Child,
}

impl Fleet {
    pub(crate) fn start(
        program: &'static str,
        directory: &Path,
        url: &str,
        candidates: usize,
    ) -> Self {
        let (elected, elections) = channel();
        let mut fleet = Self {
            program,
            directory: directory.to_owned(),
            url: url.to_owned(),
            candidates: Vec::new(),
            elections,
            elected,
            latest: (0, 0),
            dealt_with: 0,
        };
        for _ in 0..candidates {
            fleet.add();
        }
        fleet
    }

    /// Starts another candidate.
    fn add(&mut self) {
        let number = self.candidates.len();
        let name = format!("candidate-{number}");
        let mut candidate = Command::new(self.program);
        candidate.arg(&self.url).arg(&name).arg(self.directory.join(&name));
        let elected = self.elected.clone();
        let child = heard(&mut candidate, move |term| {
            let _ = elected.send((number, term.parse().unwrap()));
        });
        self.candidates.push(Candidate { name, child });
    }

    /// Waits until somebody leads in a term that was not dealt with yet, and says who it is.
    pub(crate) fn next_leader(&mut self) -> usize {
        self.await_election();
        self.dealt_with = self.latest.1;
        self.latest.0
    }

    /// Waits until somebody leads in a later term than the one that is being dealt with.
    pub(crate) fn await_election(&mut self) {
        while self.latest.1 <= self.dealt_with {
            let election = self.elections.recv_timeout(PATIENCE).expect("nobody is elected");
            self.note(election);
        }
    }

    /// Stops a leader until another has taken over. One that is stopped in the middle of a write
    /// keeps SQLite's only lock, and nobody can take over: it goes on for a moment then.
    pub(crate) fn stop_until_replaced(&mut self, leader: usize) {
        for _ in 0..10 {
            self.signal(leader, Signal::STOP);
            self.pause_unless_elected(PATIENCE / 6);
            if self.latest.1 > self.dealt_with {
                return;
            }
            self.signal(leader, Signal::CONT);
            self.pause(Duration::from_millis(50));
        }
        assert!(self.latest.1 > self.dealt_with, "nobody is elected in place of a stopped leader");
    }

    fn pause_unless_elected(&mut self, span: Duration) {
        let end = incumbent::clock::now() + span;
        while self.latest.1 <= self.dealt_with {
            match self.elections.recv_timeout(end.since(incumbent::clock::now())) {
                Ok(election) => self.note(election),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Waits until somebody is elected, in whatever term, and says whether it is above all
    /// earlier ones.
    pub(crate) fn next_election(&mut self) -> bool {
        let election = self.elections.recv_timeout(PATIENCE).expect("nobody is elected");
        let grown = election.1 > self.latest.1;
        self.note(election);
        grown
    }

    fn note(&mut self, election: (usize, u64)) {
        if election.1 > self.latest.1 {
            self.latest = election;
        }
    }

    /// Waits, and takes in who is elected meanwhile.
    pub(crate) fn pause(&mut self, span: Duration) {
        let end = incumbent::clock::now() + span;
        loop {
            let left = end.since(incumbent::clock::now());
            match self.elections.recv_timeout(left) {
                Ok(election) => self.note(election),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Kills a candidate without warning, and starts another in its place.
    pub(crate) fn replace_killed(&mut self, number: usize) {
        let candidate = self.candidates.get_mut(number).unwrap();
        candidate.child.kill().unwrap();
        candidate.child.wait().unwrap();
        self.add();
    }

    pub(crate) fn signal(&self, number: usize, signal: Signal) {
        let pid = i32::try_from(self.candidates.get(number).unwrap().child.id()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    pub(crate) fn tell_to_resign(&mut self, number: usize) {
        // Who doesn't lead takes no notice.
        self.tell(number, "resign");
    }

    pub(crate) fn tell(&mut self, number: usize, line: &str) {
        let input = self.candidates.get_mut(number).unwrap().child.stdin.as_mut().unwrap();
        writeln!(input, "{line}").unwrap();
    }

    /// Lets all leave, and gives back what they wrote down.
    pub(crate) fn stop(mut self) -> Vec<History> {
        for candidate in &mut self.candidates {
            drop(candidate.child.stdin.take());
        }
        let wait = |mut candidate: Candidate| {
            candidate.child.wait().unwrap();
            let path = self.directory.join(&candidate.name);
            // Who was never elected has nothing to say.
            let text = std::fs::read_to_string(path).unwrap_or_default();
            History::read(&candidate.name, &text).unwrap()
        };
        std::mem::take(&mut self.candidates).into_iter().map(wait).collect()
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for candidate in &mut self.candidates {
            let _ = candidate.child.kill();
            let _ = candidate.child.wait();
        }
    }
}
