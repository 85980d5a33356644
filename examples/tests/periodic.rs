//! The program `periodic` does what it says: of two side by side one reports each tick, and when it
//! is stopped the other goes on, without a gap and without a tick twice.
#![allow(clippy::unwrap_used, reason = "this is test code, although not all of it is a test")]

mod common;

use std::time::Duration;

use common::Program;

#[test]
fn each_tick_is_reported_once_whoever_is_stopped() {
    let directory = tempfile::tempdir().unwrap();
    let start = |node| Program::start(env!("CARGO_BIN_EXE_periodic"), directory.path(), node);
    let mut first = start("a");
    let mut ticks = vec![tick(&first.line())];
    let mut second = start("b");
    for _ in 0..3 {
        ticks.push(tick(&first.line()));
        assert_eq!(second.line_within(Duration::from_millis(50)), None, "it stands by");
        let (ended_well, rest) = first.stop();
        assert!(ended_well, "it left in order");
        ticks.extend(rest.iter().map(|line| tick(line)));
        ticks.push(tick(&second.line()));
        (first, second) = (second, start("c"));
    }
    let gaps: Vec<u64> = ticks.iter().zip(ticks.iter().skip(1)).map(|(a, b)| b - a).collect();
    assert!(gaps.iter().all(|gap| *gap == 2), "{ticks:?}");
}

/// The tick of a report, in seconds.
fn tick(line: &str) -> u64 {
    line.split(' ').nth(3).unwrap().parse().unwrap()
}
