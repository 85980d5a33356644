//! An example that runs beside the test, as a person would run it in a terminal.
#![allow(clippy::unwrap_used, dead_code, unreachable_pub, reason = "test code, used in parts")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

const PATIENCE: Duration = Duration::from_secs(60);

pub struct Program {
    child: Child,
    lines: Receiver<String>,
}

impl Program {
    pub fn start(path: &str, directory: &Path, node: &str) -> Self {
        let mut child = Command::new(path)
            .current_dir(directory)
            .env("INCUMBENT_NODE", node)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Self { child, lines }
    }

    /// The next line that it prints.
    pub fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).unwrap()
    }

    /// A line that it prints within this time.
    pub fn line_within(&self, span: Duration) -> Option<String> {
        self.lines.recv_timeout(span).ok()
    }

    /// Stops it as Ctrl-C does. Says whether it ended well, and what else it printed.
    pub fn stop(mut self) -> (bool, Vec<String>) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, Signal::INT).unwrap();
        let ended_well = self.child.wait().unwrap().success();
        // Its output is closed, so that this comes to an end.
        (ended_well, self.lines.iter().collect())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
