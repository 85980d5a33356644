//! A number of candidates, as processes of their own, in whatever language.
//!
//! A candidate is started with `URL NODE FILE` as its last arguments. It stands for a lease, writes down in the
//! file what it is told (as [`Entry`](crate::Entry) reads it), prints each term that it is elected for, and leaves
//! when its standard input ends.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use crate::{History, heard};
use rustix::process::{Pid, Signal, kill_process};

const PATIENCE: Duration = Duration::from_secs(60);

/// Candidates, and who of them was elected.
#[derive(Debug)]
pub struct Fleet {
    directory: PathBuf,
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

#[derive(Debug)]
struct Candidate {
    program: Vec<OsString>,
    url: String,
    name: String,
    child: Child,
}

impl Fleet {
    /// Starts so many candidates of one program.
    pub fn start(program: &str, directory: &Path, url: &str, candidates: usize) -> Self {
        let mut fleet = Self::empty(directory);
        for _ in 0..candidates {
            fleet.join(&[program.into()], url);
        }
        fleet
    }

    /// A fleet of none, whose candidates will write into this directory.
    #[must_use]
    pub fn empty(directory: &Path) -> Self {
        let (elected, elections) = channel();
        Self {
            directory: directory.to_owned(),
            candidates: Vec::new(),
            elections,
            elected,
            latest: (0, 0),
            dealt_with: 0,
        }
    }

    /// Starts one candidate of this program, which takes part by this URL.
    pub fn join(&mut self, program: &[OsString], url: &str) {
        let number = self.candidates.len();
        let name = format!("candidate-{number}");
        let (first, arguments) = program.split_first().expect("a program");
        let mut candidate = Command::new(first);
        candidate.args(arguments).arg(url).arg(&name).arg(self.directory.join(&name));
        let elected = self.elected.clone();
        let child = heard(&mut candidate, move |term| {
            let _ = elected.send((number, term.parse().expect("a term")));
        });
        let (program, url) = (program.to_vec(), url.to_owned());
        self.candidates.push(Candidate { program, url, name, child });
    }

    /// Waits until somebody leads in a term that was not dealt with yet, and says who it is.
    pub fn next_leader(&mut self) -> usize {
        self.await_election();
        self.dealt_with = self.latest.1;
        self.latest.0
    }

    /// Waits until somebody leads in a later term than the one that is being dealt with.
    pub fn await_election(&mut self) {
        while self.latest.1 <= self.dealt_with {
            let election = self.elections.recv_timeout(PATIENCE).expect("nobody is elected");
            self.note(election);
        }
    }

    /// Stops a leader until another has taken over.
    pub fn stop_until_replaced(&mut self, leader: usize) {
        let process = self.process(leader);
        self.stop_until_elected(|signal| kill_process(process, signal).expect("a fleet"));
    }

    /// Stops whoever gets these signals, such as a leader's sidecar, until somebody else is elected. One that is
    /// stopped in the middle of a write keeps SQLite's only lock, and nobody can take over: it goes on for a moment
    /// then.
    pub fn stop_until_elected(&mut self, signal: impl Fn(Signal)) {
        for _ in 0..10 {
            signal(Signal::STOP);
            self.pause_unless_elected(PATIENCE / 6);
            if self.latest.1 > self.dealt_with {
                return;
            }
            signal(Signal::CONT);
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
    pub fn next_election(&mut self) -> bool {
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
    pub fn pause(&mut self, span: Duration) {
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
    pub fn replace_killed(&mut self, number: usize) {
        let candidate = self.candidates.get_mut(number).expect("a fleet");
        candidate.child.kill().expect("a fleet");
        candidate.child.wait().expect("a fleet");
        let (program, url) = (candidate.program.clone(), candidate.url.clone());
        self.join(&program, &url);
    }

    /// By which URL a candidate takes part.
    #[must_use]
    pub fn url(&self, number: usize) -> &str {
        &self.candidates.get(number).expect("a fleet").url
    }

    /// Sends it a signal.
    pub fn signal(&self, number: usize, signal: Signal) {
        kill_process(self.process(number), signal).expect("a fleet");
    }

    fn process(&self, number: usize) -> Pid {
        Pid::from_child(&self.candidates.get(number).expect("a fleet").child)
    }

    /// Has it give the lease up.
    pub fn tell_to_resign(&mut self, number: usize) {
        // Who doesn't lead takes no notice.
        self.tell(number, "resign");
    }

    /// Writes a line to its standard input.
    pub fn tell(&mut self, number: usize, line: &str) {
        let input = self
            .candidates
            .get_mut(number)
            .expect("a fleet")
            .child
            .stdin
            .as_mut()
            .expect("a fleet");
        writeln!(input, "{line}").expect("a fleet");
    }

    /// Lets all leave, and gives back what they wrote down.
    pub fn stop(mut self) -> Vec<History> {
        for candidate in &mut self.candidates {
            drop(candidate.child.stdin.take());
        }
        let wait = |mut candidate: Candidate| {
            candidate.child.wait().expect("a fleet");
            let path = self.directory.join(&candidate.name);
            // Who was never elected has nothing to say.
            let text = std::fs::read_to_string(path).unwrap_or_default();
            History::read(&candidate.name, &text).expect("a fleet")
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
