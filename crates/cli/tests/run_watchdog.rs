//! `incumbent run --watchdog`: a command that says nothing is killed, and its lease is free (F50).
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "this is test code, helpers too")]

mod common;

use common::runs::Stage;

/// Says that it comes on for so many tenths of a second, as sd_notify(3) does, and then ends.
const COMES_ON: &str = r#"
import os, socket, sys, time
assert int(os.environ["WATCHDOG_USEC"]) == 1500000 and "WATCHDOG_PID" not in os.environ
dog = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
for _ in range(int(sys.argv[1])):
    dog.sendto(b"STATUS=well\nWATCHDOG=1", os.environ["NOTIFY_SOCKET"])
    time.sleep(0.1)
if len(sys.argv) > 2:
    dog.sendto(b"WATCHDOG=trigger", os.environ["NOTIFY_SOCKET"])
    time.sleep(60)
"#;

#[test]
fn f50_a_command_that_says_nothing_is_killed_and_its_lease_is_free() {
    let stage = Stage::new();
    let silent = stage.run(&["--watchdog", "500ms"], &["sleep", "600"]);
    silent.ends_with(76).complains(&["no progress"]);
    stage.run(&["--no-wait"], &["true"]).succeeds();
}

#[test]
fn a_command_that_comes_on_is_left_alone_and_one_that_says_it_is_stuck_is_not() {
    let stage = Stage::new();
    let python = ["python3", "-c", COMES_ON];
    let watched = ["--watchdog", "1500ms"];
    // Twice as long as it may be silent.
    stage.run(&watched, &[&python[..], &["30"]].concat()).succeeds();
    stage.run(&watched, &[&python[..], &["1", "stuck"]].concat()).ends_with(76);
    let left = std::fs::read_dir(std::env::temp_dir()).unwrap().filter_map(Result::ok);
    let name = |entry: std::fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    let sockets: Vec<String> =
        left.map(name).filter(|it| it.starts_with("incumbent-dog-")).collect();
    assert!(sockets.is_empty(), "{sockets:?}");
}

#[test]
fn what_the_hook_hears_is_why() {
    let stage = Stage::new();
    let hook = "echo lost: $INCUMBENT_LOST";
    let ran = stage.run(&["--watchdog", "300ms", "--on-lost", hook], &["sleep", "600"]);
    ran.ends_with(76).says(&["lost: stuck"]);
}
