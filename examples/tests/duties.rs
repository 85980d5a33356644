//! The program `duties` does what it says: two side by side share the work, and when one is
//! stopped the other runs all of it.
#![allow(clippy::unwrap_used, reason = "this is test code, although not all of it is a test")]

mod common;

use std::collections::BTreeSet;
use std::path::Path;

use common::Program;

#[test]
fn two_side_by_side_share_the_work() {
    let directory = tempfile::tempdir().unwrap();
    let mut first = Serving::start(directory.path(), "a");
    first.until(|running| running.len() == 6);
    let mut second = Serving::start(directory.path(), "b");
    second.until(|running| !running.is_empty());
    assert!(first.program.stop().0, "it left in order");
    second.until(|running| running.len() == 6);
    assert!(second.program.stop().0);
}

/// A program, and which duties it runs.
struct Serving {
    program: Program,
    running: BTreeSet<String>,
}

impl Serving {
    fn start(directory: &Path, node: &str) -> Self {
        let program = Program::start(env!("CARGO_BIN_EXE_duties"), directory, node);
        Self { program, running: BTreeSet::new() }
    }

    /// Follows what it runs until that is as wanted.
    fn until(&mut self, wanted: impl Fn(&BTreeSet<String>) -> bool) {
        while !wanted(&self.running) {
            let line = self.program.line();
            let mut words = line.split(' ').skip(1);
            let (duty, verb) = (words.next().unwrap(), words.next().unwrap());
            match verb {
                "starts" => self.running.insert(duty.to_owned()),
                "stops" => self.running.remove(duty),
                _ => false,
            };
        }
    }
}
