//! The program `duties` does what it says: two side by side share the work, and when one is
//! stopped the other runs all of it.
#![allow(clippy::unwrap_used, reason = "this is test code, although not all of it is a test")]

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn two_side_by_side_share_the_work() {
    let directory = tempfile::tempdir().unwrap();
    let mut first = Program::start(directory.path(), "a");
    first.until(|running| running.len() == 6);
    let mut second = Program::start(directory.path(), "b");
    second.until(|running| !running.is_empty());
    assert!(first.stop(), "it left in order");
    second.until(|running| running.len() == 6);
    assert!(second.stop());
}

struct Program {
    child: Child,
    lines: Receiver<String>,
    running: BTreeSet<String>,
}

impl Program {
    fn start(directory: &Path, node: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_duties"))
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
        Self { child, lines, running: BTreeSet::new() }
    }

    /// Follows what it runs until that is as wanted.
    fn until(&mut self, wanted: impl Fn(&BTreeSet<String>) -> bool) {
        while !wanted(&self.running) {
            let line = self.lines.recv_timeout(PATIENCE).unwrap();
            let mut words = line.split(' ').skip(1);
            let (duty, verb) = (words.next().unwrap(), words.next().unwrap());
            match verb {
                "starts" => self.running.insert(duty.to_owned()),
                "stops" => self.running.remove(duty),
                _ => false,
            };
        }
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
