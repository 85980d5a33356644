//! The README's first example is the program `scheduler`, word for word, and it does what the
//! README says: two side by side, one works, and the other goes on when that one is stopped.
#![allow(clippy::unwrap_used, reason = "this is test code, although not all of it is a test")]

mod common;

use common::Program;

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
    let (directory, path) = (tempfile::tempdir().unwrap(), env!("CARGO_BIN_EXE_scheduler"));
    let first = Program::start(path, directory.path(), "billing-1");
    let last = fence(&first);
    let second = Program::start(path, directory.path(), "billing-2");
    let (stopped, _) = first.stop();
    assert!(stopped, "it left in order");
    let next = fence(&second);
    assert!(next > last, "{next} is not above {last}");
    assert!(second.stop().0);
}

/// Waits until it works, and says under which fence.
fn fence(program: &Program) -> u64 {
    program.line().rsplit(' ').next().unwrap().parse().unwrap()
}
