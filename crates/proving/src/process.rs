//! Processes that tell what they do, line by line.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

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
