//! Work takes no step past its trust: neither after its process was paused, nor while the thread
//! that beats and tells it to end is stuck (O1, O2, O3).
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "this is test code")]

use std::time::Duration;

use incumbent_proving::{Entry, Fleet, History};
use rustix::process::Signal;

const ROUNDS: usize = 5;

#[test]
fn o2_no_step_of_work_after_a_pause() {
    watch_steps(|fleet, leader| {
        fleet.stop_until_replaced(leader);
        fleet.signal(leader, Signal::CONT);
    });
}

#[test]
fn o1_no_step_of_work_while_the_thread_that_beats_is_stuck() {
    watch_steps(|fleet, leader| {
        fleet.tell(leader, "stall 2500");
        fleet.await_election();
        // Others lead; this one is still stuck, and would go on for as long.
        fleet.pause(Duration::from_millis(500));
    });
}

/// Has one leader after the other disturbed, then looks at what they wrote down.
fn watch_steps(disturb: impl Fn(&mut Fleet, usize)) {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", directory.path().join("cluster.db").display());
    let mut fleet = Fleet::start(env!("CARGO_BIN_EXE_stepper"), directory.path(), &url, 3);
    for _ in 0..ROUNDS {
        let leader = fleet.next_leader();
        fleet.pause(Duration::from_millis(100));
        disturb(&mut fleet, leader);
        fleet.pause(Duration::from_millis(300));
    }
    let histories = fleet.stop();
    let late: Vec<String> = histories.iter().flat_map(late).collect();
    assert!(late.is_empty(), "{} steps past their trust: {:#?}", late.len(), late.first());
    let account = incumbent_proving::check(&histories).unwrap_or_else(|violation| {
        panic!("{violation}");
    });
    println!("{account:?}");
    assert!(account.terms > ROUNDS, "no change of hands in some rounds: {account:?}");
    assert!(account.yes > 100, "hardly any steps: {account:?}");
}

/// The steps that began when trust had ended.
fn late(history: &History) -> Vec<String> {
    let late = |entry: &Entry| match *entry {
        Entry::Asked { before, until, .. } => (before >= until).then_some(before.abs_diff(until)),
        Entry::Elected { .. } | Entry::Lost { .. } => None,
    };
    let told = |by: u64| format!("{}: {} µs", history.process, by / 1000);
    history.entries.iter().filter_map(late).map(told).collect()
}
