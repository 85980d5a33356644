use std::collections::VecDeque;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use rustix::process::Pid;
use tempfile::TempDir;

use super::program;

/// Where a server keeps its data and listens.
pub(super) struct Site {
    directory: TempDir,
    port: u16,
}

impl Site {
    /// A new directory and a free port, for a server of this name.
    pub(super) fn new(name: &str) -> Self {
        let directory = tempfile::Builder::new().prefix(&format!("incumbent-{name}-")).tempdir();
        Self { directory: directory.expect("a directory"), port: free_port() }
    }

    /// The directory. All of its processes work in it or below.
    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The port of the loopback interface.
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// What it has printed.
    pub(super) fn log(&self) -> PathBuf {
        self.path().join("log")
    }

    /// The end of what it has printed.
    pub(super) fn last_words(&self) -> String {
        let text = std::fs::read(self.log()).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines
            .iter()
            .skip(lines.len().saturating_sub(20))
            .map(|line| format!("  {line}\n"))
            .collect()
    }

    /// A command that runs a program there.
    pub(super) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.path());
        command
    }

    /// The same as another user if this is root, for servers that refuse to run as root.
    pub(super) fn command_as(&self, user: &str, program: &Path) -> Command {
        let mut command = program::command_as(user, program);
        command.current_dir(self.path());
        command
    }

    /// Runs a command of the set-up to its end.
    pub(super) fn prepare(&self, command: &mut Command) {
        let done = command.stdin(std::process::Stdio::null()).output();
        let done = done.unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{command:?} failed: {}", said.trim());
    }

    /// Whether somebody takes connections at its port.
    pub(super) fn listens(&self) -> bool {
        TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok()
    }

    /// All processes that work there.
    pub(super) fn processes(&self) -> Vec<Pid> {
        let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let own = all.filter(|entry| {
            let place = std::fs::read_link(entry.path().join("cwd"));
            place.is_ok_and(|place| place.starts_with(self.path()))
        });
        own.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)).collect()
    }
}

/// A port of the loopback interface that nobody listens on. Somebody else might get it before the
/// server does; then the server says so and the test fails.
///
/// # Panics
///
/// If there is none.
#[must_use]
pub fn free_port() -> u16 {
    /// The last ones that were given: a server that needs two must not get one twice.
    static GIVEN: Mutex<VecDeque<u16>> = Mutex::new(VecDeque::new());
    let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut taken = Vec::new();
    loop {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        if !given.contains(&port) {
            given.push_front(port);
            given.truncate(64);
            return port;
        }
        // Kept until there is another, so that the system doesn't give it again.
        taken.push(listener);
    }
}
