//! Processes of `incumbent run`, seen from outside.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]
#![allow(clippy::expect_used, clippy::panic, reason = "this is test code, although no test")]

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::{PATIENCE, Ran, Trial};

/// A trial, and the log to which its commands write.
pub struct Stage {
    pub trial: Trial,
    pub log: Log,
}

impl Stage {
    pub fn new() -> Self {
        Self::on(Trial::new())
    }

    /// One whose store is there already.
    pub fn with_store() -> Self {
        Self::on(Trial::with_store())
    }

    pub fn on(trial: Trial) -> Self {
        let log = Log::new(trial.path());
        Self { trial, log }
    }

    /// One on SQLite, and one on PostgreSQL.
    pub fn on_each_store() -> impl Iterator<Item = Self> {
        Trial::on_each_store().map(Self::on)
    }

    /// A run of this command under the lease `job`.
    pub fn command(&self, flags: &[&str], command: &[&str]) -> Command {
        let arguments = [&["run", "--lease", "job"], flags, &["--"], command].concat();
        let mut command = self.trial.command(&arguments);
        command.env("LOG", &self.log.0).env_remove("NOTIFY_SOCKET");
        command
    }

    /// A run of this script.
    pub fn shell(&self, flags: &[&str], script: &str) -> Command {
        self.command(flags, &["sh", "-c", script])
    }

    pub fn run(&self, flags: &[&str], command: &[&str]) -> Ran {
        Ran::of(self.command(flags, command))
    }

    pub fn start(&self, flags: &[&str], script: &str) -> Run {
        Run::start(self.shell(flags, script))
    }

    /// The database.
    pub fn file(&self) -> PathBuf {
        self.trial.path().join("trial.db")
    }

    /// Keeps all others from writing, until it is dropped.
    pub fn outage(&self) -> rusqlite::Connection {
        let connection = rusqlite::Connection::open(self.file()).expect("a database");
        connection.busy_timeout(PATIENCE).expect("a time-out");
        connection.execute_batch("BEGIN IMMEDIATE").expect("a transaction");
        connection
    }
}

/// Waits until something is there.
#[track_caller]
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = incumbent::clock::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(incumbent::clock::now() < deadline, "never came true: {what}");
        pause(Duration::from_millis(2));
    }
}

#[allow(clippy::disallowed_methods, reason = "a test may wait like this")]
pub fn pause(span: Duration) {
    std::thread::sleep(span);
}

/// A started program. Dropping it ends it, whatever was done to it.
#[derive(Debug)]
pub struct Run(pub Child);

impl Run {
    pub fn start(mut command: Command) -> Self {
        // A group of its own, so that what a test does to it reaches nobody else.
        command.process_group(0).stdin(Stdio::null());
        Self(command.spawn().expect("it can be started"))
    }

    pub fn pid(&self) -> i32 {
        i32::try_from(self.0.id()).expect("a process id")
    }

    pub fn signal(&self, signal: Signal) {
        send(self.pid(), signal);
    }

    /// Waits for its end.
    #[track_caller]
    pub fn end(&mut self) -> ExitStatus {
        until("the end of a run", || self.0.try_wait().expect("a child"))
    }

    #[track_caller]
    pub fn code(&mut self) -> i32 {
        let status = self.end();
        status.code().unwrap_or_else(|| panic!("{status}"))
    }

    /// Its guardian, once there is one.
    pub fn guardian(&self) -> i32 {
        until("a guardian", || children(self.pid()).first().copied())
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            for pid in [self.pid()].into_iter().chain(children(self.pid())) {
                let _ = Pid::from_raw(pid).map(|pid| kill_process(pid, Signal::CONT));
            }
            let _ = self.0.kill();
        }
        let _ = self.0.wait();
    }
}

pub fn send(pid: i32, signal: Signal) {
    let pid = Pid::from_raw(pid).expect("a process id");
    kill_process(pid, signal).expect("it is there");
}

/// The children of a process.
pub fn children(pid: i32) -> Vec<i32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .filter_map(|pid| pid.parse().ok())
        .collect()
}

/// A file to which commands append lines.
#[derive(Clone, Debug)]
pub struct Log(pub PathBuf);

impl Log {
    pub fn new(directory: &Path) -> Self {
        Self(directory.join("log"))
    }

    pub fn lines(&self) -> Vec<String> {
        let text = std::fs::read_to_string(&self.0).unwrap_or_default();
        // A line that isn't whole yet doesn't count.
        let whole = text.rfind('\n').map_or("", |end| text.get(..end).unwrap_or_default());
        whole.lines().map(str::to_owned).collect()
    }

    /// Waits for a line that begins like this.
    #[track_caller]
    pub fn until(&self, start: &str) -> String {
        until(&format!("{start:?} in the log"), || {
            self.lines().into_iter().find(|line| line.starts_with(start))
        })
    }

    pub fn count(&self, start: &str) -> usize {
        self.lines().iter().filter(|line| line.starts_with(start)).count()
    }
}
