//! What is left of a command when holder, guardian or command are killed or stopped: nothing,
//! wherever the layout promises that. `INCUMBENT_TEST_FULL=1` plays 50 rounds of each.
//!
//! Each command looks, as its first act, whether anything of the one before still lives: by a lock
//! that the old command holds, and another that its daemon holds, a process in a session of its
//! own. The test looks for that daemon among all processes as well.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "this is test code, helpers too")]

mod common;

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::time::Duration;

use common::Trial;
use common::runs::{Log, Run, children, send, until};
use incumbent::clock;
use rustix::process::Signal;

const COMMAND: &str = r#"
    exec 8>>command.lock 9>>daemon.lock
    flock -n 8 || echo "overlap command $INCUMBENT_TERM" >> "$LOG"
    flock -n 9 || echo "overlap daemon $INCUMBENT_TERM" >> "$LOG"
    storm() { while :; do sh -c :; done; }
    (setsid sh -c 'sleep 600; :' "$PWD/daemon-$INCUMBENT_TERM" 8>&- >/dev/null 2>&1 &)
    number=0
    while [ $number -lt $STORM ]; do storm 8>&- >/dev/null 2>&1 & number=$((number + 1)); done
    exec 9>&-
    echo "start $INCUMBENT_TERM $INCUMBENT_NODE" >> "$LOG"
    exec sleep 600"#;

/// A ttl that nobody waits for in these tests.
const LONG: &str = "60s";
/// One that is waited for, and outlasts the pauses of a busy machine.
const SHORT: &str = "6s";
/// The death is noticed without it.
const EARLY: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// As an ordinary user.
    Plain,
    /// As root, if the test is, and in a user namespace otherwise.
    Isolated,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    KillHolder,
    KillGuardian,
    KillBoth,
    KillCommand,
    KillHolderInStorm,
    StopHolder,
    StopBoth,
}

impl Fault {
    /// Whether the next one starts before the ttl has passed.
    fn is_proven(self, layout: Layout) -> bool {
        match self {
            Self::KillHolder | Self::KillGuardian | Self::KillCommand => true,
            Self::KillHolderInStorm => true,
            Self::KillBoth => layout == Layout::Isolated,
            Self::StopHolder | Self::StopBoth => false,
        }
    }

    /// Whether what the command has started may live on: the one limit of the plain layout.
    fn spares_daemons(self, layout: Layout) -> bool {
        layout == Layout::Plain && matches!(self, Self::KillBoth | Self::StopBoth)
    }
}

struct Stage {
    trial: Trial,
    log: Log,
    program: PathBuf,
    /// Root that plays an ordinary user.
    demoted: bool,
    layout: Layout,
    fault: Fault,
    runs: Vec<Run>,
}

impl Stage {
    fn new(trial: Trial, layout: Layout, fault: Fault) -> Self {
        let mut program = PathBuf::from(env!("CARGO_BIN_EXE_incumbent"));
        let demoted = rustix::process::geteuid().is_root() && layout == Layout::Plain;
        if demoted {
            // A copy that an ordinary user can reach, made by another process: one that this test
            // had open for writing could not be run.
            let copied = std::process::Command::new("cp").arg(&program).arg(trial.path()).status();
            assert!(copied.unwrap().success());
            program = trial.path().join("incumbent");
            std::os::unix::fs::chown(trial.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let log = Log::new(trial.path());
        Self { trial, log, program, demoted, layout, fault, runs: Vec::new() }
    }

    fn command(&self, flags: &[&str]) -> std::process::Command {
        let mut command = std::process::Command::new(&self.program);
        command.env("INCUMBENT_CONFIG", "/dev/null").env_remove("INCUMBENT_TTL");
        command.args(["run", "-q", "--lease", "job"]).args(flags);
        command.env("INCUMBENT_STORE", self.trial.url()).env("LOG", &self.log.0);
        let storm = if self.fault == Fault::KillHolderInStorm { storm() } else { 0 };
        command.env("STORM", storm.to_string()).env_remove("INCUMBENT_NODE");
        command.env_remove("XDG_RUNTIME_DIR").env_remove("INCUMBENT_CLUSTER");
        command.current_dir(self.trial.path());
        if self.demoted {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    fn start(&mut self) {
        let ttl = if self.fault.is_proven(self.layout) { LONG } else { SHORT };
        let isolate = match self.layout {
            Layout::Plain => "--isolate=never",
            Layout::Isolated => "--isolate=always",
        };
        let mut command = self.command(&["--ttl", ttl, isolate]);
        command.args(["--", "sh", "-c", COMMAND]);
        self.runs.push(Run::start(command));
    }

    /// Waits for this many starts; gives the term of the last and takes its run out.
    fn leader(&mut self, starts: usize) -> (String, Run) {
        let start = |line: &String| line.starts_with("start ").then(|| line.clone());
        let line =
            until("the next start", || self.log.lines().iter().filter_map(start).nth(starts - 1));
        let mut words = line.split(' ').skip(1);
        let (term, node) = (words.next().unwrap().to_owned(), words.next().unwrap());
        let pid: i32 = node.rsplit_once(':').unwrap().1.parse().unwrap();
        let at = self.runs.iter().position(|run| run.pid() == pid).unwrap();
        (term, self.runs.swap_remove(at))
    }

    /// Does it, and gives what is stopped by it.
    fn strike(&self, holder: &Run) -> Vec<i32> {
        let guardian = holder.guardian();
        match self.fault {
            Fault::KillHolder | Fault::KillHolderInStorm => holder.signal(Signal::KILL),
            Fault::KillGuardian => send(guardian, Signal::KILL),
            Fault::KillBoth => {
                // The first to die can't do anything about the other.
                send(guardian, Signal::STOP);
                holder.signal(Signal::KILL);
                send(guardian, Signal::KILL);
            }
            Fault::KillCommand => send(command(guardian, self.layout), Signal::KILL),
            Fault::StopHolder => {
                self.between_writes(|| holder.signal(Signal::STOP));
                return vec![holder.pid()];
            }
            Fault::StopBoth => {
                self.between_writes(|| holder.signal(Signal::STOP));
                send(guardian, Signal::STOP);
                return vec![holder.pid(), guardian];
            }
        }
        Vec::new()
    }

    /// Does something while nobody else writes. Who is stopped in the middle of a write keeps the
    /// lock of a SQLite file, and with it everybody else from writing.
    fn between_writes(&self, act: impl FnOnce()) {
        if self.trial.postgres.is_some() {
            return act();
        }
        let file = rusqlite::Connection::open(self.trial.path().join("trial.db")).unwrap();
        file.busy_timeout(common::PATIENCE).unwrap();
        file.execute_batch("BEGIN IMMEDIATE").unwrap();
        act();
        file.execute_batch("ROLLBACK").unwrap();
    }

    /// The term in which the lease is held.
    fn leads(&self) -> Option<String> {
        let mut command = common::program(&["leader", "job", "--json"]);
        command.env("INCUMBENT_STORE", self.trial.url());
        let leader = common::Ran::of(command).json();
        leader["leader"]["term"].as_u64().map(|term| term.to_string())
    }

    fn check(&self, term: &str) {
        let spared = self.fault.spares_daemons(self.layout);
        let overlaps = self.log.count("overlap command");
        assert_eq!(overlaps, 0, "the command lives on: {:?}", self.log.lines());
        let daemon = format!("{}/daemon-{term}", self.trial.path().display());
        if !spared {
            assert_eq!(self.log.count("overlap daemon"), 0, "{:?}", self.log.lines());
            assert!(!is_running(&daemon), "{daemon} lives on");
        }
        kill_all(&daemon);
    }
}

/// The user that owns nothing.
const NOBODY: u32 = 65_534;

fn full() -> bool {
    std::env::var_os("INCUMBENT_TEST_FULL").is_some()
}

fn storm() -> u32 {
    if full() { 50 } else { 20 }
}

fn command(guardian: i32, layout: Layout) -> i32 {
    let child = |pid: i32| until("a child", || children(pid).first().copied());
    match layout {
        Layout::Plain => child(guardian),
        Layout::Isolated => child(child(guardian)),
    }
}

/// All processes with this word in their command line.
fn running(word: &str) -> Vec<i32> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter(|process| {
            let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).split('\0').any(|part| part == word)
        })
        .filter_map(|process| process.file_name().to_str().and_then(|pid| pid.parse().ok()))
        .collect()
}

fn is_running(word: &str) -> bool {
    !running(word).is_empty()
}

/// Ends what the plain layout has left, so that the next round begins clean.
fn kill_all(daemon: &str) {
    for pid in running(daemon) {
        for pid in children(pid).into_iter().chain([pid]) {
            let pid = rustix::process::Pid::from_raw(pid).unwrap();
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    }
}

/// On SQLite.
fn survive(layout: Layout, fault: Fault) {
    survive_on(Trial::new(), layout, fault);
}

fn survive_on(trial: Trial, layout: Layout, fault: Fault) {
    let mut stage = Stage::new(trial, layout, fault);
    if layout == Layout::Isolated {
        let mut trial = stage.command(&["--isolate=always"]);
        if trial.args(["--", "true"]).status().unwrap().code() == Some(71) {
            println!("no PID namespace can be had here, so nothing is shown about it");
            return;
        }
    }
    stage.start();
    let (mut term, mut holder) = stage.leader(1);
    for round in 0..if full() { 50 } else { 1 } {
        stage.start();
        let since = clock::now();
        let stopped = stage.strike(&holder);
        let (next_term, next) = stage.leader(round + 2);
        let took = clock::now().since(since);
        if fault.is_proven(layout) {
            assert!(took < EARLY, "it took {took:?}, although nobody had to wait");
        }
        stage.check(&term);
        for pid in &stopped {
            // It may be gone: its fuse has blown.
            let _ = rustix::process::Pid::from_raw(*pid)
                .map(|pid| rustix::process::kill_process(pid, Signal::CONT));
        }
        if !stopped.is_empty() {
            assert_eq!(holder.code(), 76, "it notices that it lost the lease");
            let leader = stage.leads();
            assert_eq!(leader.as_deref(), Some(next_term.as_str()), "the lease is untouched");
        }
        drop(holder);
        (term, holder) = (next_term, next);
    }
    holder.signal(Signal::TERM);
    assert_eq!(holder.code(), 143);
    assert!(!is_running(&format!("{}/daemon-{term}", stage.trial.path().display())));
}

#[test]
fn plain_when_the_holder_is_killed() {
    survive(Layout::Plain, Fault::KillHolder);
}

#[test]
fn plain_when_the_guardian_is_killed() {
    survive(Layout::Plain, Fault::KillGuardian);
}

#[test]
fn plain_when_both_are_killed() {
    survive(Layout::Plain, Fault::KillBoth);
}

#[test]
fn plain_when_the_command_is_killed() {
    survive(Layout::Plain, Fault::KillCommand);
}

#[test]
fn plain_when_the_holder_is_killed_in_a_storm_of_forks() {
    survive(Layout::Plain, Fault::KillHolderInStorm);
}

#[test]
fn plain_when_the_holder_is_stopped() {
    survive(Layout::Plain, Fault::StopHolder);
}

#[test]
fn plain_when_both_are_stopped() {
    survive(Layout::Plain, Fault::StopBoth);
}

#[test]
fn isolated_when_the_holder_is_killed() {
    survive(Layout::Isolated, Fault::KillHolder);
}

#[test]
fn isolated_when_the_guardian_is_killed() {
    survive(Layout::Isolated, Fault::KillGuardian);
}

#[test]
fn isolated_when_both_are_killed() {
    survive(Layout::Isolated, Fault::KillBoth);
}

#[test]
fn isolated_when_the_command_is_killed() {
    survive(Layout::Isolated, Fault::KillCommand);
}

#[test]
fn isolated_when_the_holder_is_killed_in_a_storm_of_forks() {
    survive(Layout::Isolated, Fault::KillHolderInStorm);
}

#[test]
fn isolated_when_the_holder_is_stopped() {
    survive(Layout::Isolated, Fault::StopHolder);
}

#[test]
fn isolated_when_both_are_stopped() {
    survive(Layout::Isolated, Fault::StopBoth);
}

#[test]
fn plain_on_postgres() {
    for fault in [Fault::KillHolder, Fault::KillCommand, Fault::StopHolder] {
        let trial = Trial::on_postgres();
        survive_on(trial, Layout::Plain, fault);
    }
}

#[test]
fn isolated_on_postgres() {
    for fault in [Fault::KillHolder, Fault::KillCommand, Fault::StopHolder] {
        let trial = Trial::on_postgres();
        survive_on(trial, Layout::Isolated, fault);
    }
}
