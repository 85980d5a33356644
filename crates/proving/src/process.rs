//! Processes that tell what they do, line by line.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// Starts a program whose input is kept open, and hands on each line that it prints.
///
/// # Panics
///
/// If it can't be started.
pub fn heard(command: &mut Command, hear: impl FnMut(String) + Send + 'static) -> Child {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let output = BufReader::new(child.stdout.take().expect("its output"));
    std::thread::spawn(move || output.lines().map_while(Result::ok).for_each(hear));
    child
}

/// How long a line may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A program and what it prints. Dropped, it is killed.
pub struct Process {
    child: Child,
    lines: Receiver<String>,
}

impl Process {
    /// Starts it.
    ///
    /// # Panics
    ///
    /// If that can't be done.
    pub fn start(command: &mut Command) -> Self {
        let (sender, lines) = channel();
        let child = heard(command, move |line| {
            let _ = sender.send(line);
        });
        Self { child, lines }
    }

    /// The next line that it prints.
    ///
    /// # Panics
    ///
    /// If none comes.
    #[must_use]
    pub fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("it prints a line")
    }

    /// A line that it prints within this time.
    #[must_use]
    pub fn line_within(&self, span: Duration) -> Option<String> {
        self.lines.recv_timeout(span).ok()
    }

    /// Stops all of its threads where they are.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets it go on.
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// Ends it as `kill -9` does.
    pub fn kill(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Stops it as Ctrl-C does, and says whether it ended well and what else it printed.
    ///
    /// # Panics
    ///
    /// If it doesn't end.
    pub fn stop(mut self) -> (bool, Vec<String>) {
        self.signal(Signal::INT);
        let ended_well = self.child.wait().expect("it ends").success();
        // Its output is closed, so that this comes to an end.
        (ended_well, self.lines.iter().collect())
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
