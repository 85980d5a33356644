//! The README's first example is the program `scheduler`, word for word, and it does what the
//! README says: two side by side, one works, and the other goes on when that one is stopped.
#![allow(clippy::unwrap_used, reason = "this is test code, although not all of it is a test")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn the_readme_shows_this_very_program() {
    let readme = include_str!("../../README.md");
    let program = include_str!("../src/bin/scheduler.rs");
    let shown = readme.split("```rust\n").nth(1).unwrap().split("```").next().unwrap();
    let body: Vec<&str> = program.lines().skip_while(|line| line.starts_with("//!")).collect();
    assert_eq!(shown.trim(), body.join("\n").trim());
}

#[test]
fn two_side_by_side_hand_over() {
    let directory = tempfile::tempdir().unwrap();
    let first = Program::start(directory.path(), "billing-1");
    let fence = first.fence();
    let second = Program::start(directory.path(), "billing-2");
    let stopped = first.stop();
    assert!(stopped, "it left in order");
    let next = second.fence();
    assert!(next > fence, "{next} is not above {fence}");
    assert!(second.stop());
}

struct Program {
    child: Child,
    lines: Receiver<String>,
}

impl Program {
    fn start(directory: &Path, node: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_scheduler"))
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

    /// Waits until it works, and says under which fence.
    fn fence(&self) -> u64 {
        let line = self.lines.recv_timeout(PATIENCE).unwrap();
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }

    /// Stops it as Ctrl-C does; says whether it ended well.
    fn stop(mut self) -> bool {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, Signal::INT).unwrap();
        self.child.wait().unwrap().success()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
