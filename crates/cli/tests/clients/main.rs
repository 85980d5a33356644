//! The clients for other languages, through the same scenarios: real processes that are told to resign, killed and
//! paused, at sidecars that are killed, paused and started again. What they wrote down about their own trust is laid
//! side by side: never do two trust at one instant, and terms grow (F6, F9, F10, F11, F61, F66, F72).
//!
//! `INCUMBENT_TEST_FULL=1` plays eight rounds instead of one, and of the faults 500 instead of nine;
//! `INCUMBENT_TEST_ROUNDS` any number.
#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "this is test code")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "this is test code")]
#![cfg(target_os = "linux")]

mod duties;
mod encrypted;
mod faults;
mod stage;
mod watchdog;

use std::time::Duration;

use incumbent_proving::{Fleet, check};
use rustix::process::Signal;

use stage::{ask, languages, near_and_far, rounds};

const TTL: Duration = Duration::from_secs(3);

#[test]
fn never_two_that_trust_at_one_instant_in_any_language() {
    let directory = tempfile::tempdir().unwrap();
    let languages = languages(directory.path(), "candidate");
    assert!(!languages.is_empty(), "not one of python3, node with npm, and go is here");
    let (store, mut sidecars, urls) = near_and_far(directory.path());
    let mut fleet = Fleet::empty(directory.path());
    for program in &languages {
        urls.iter().for_each(|url| fleet.join(program, url));
    }
    for _ in 0..rounds() {
        let leader = fleet.next_leader();
        fleet.pause(Duration::from_millis(500));
        fleet.tell_to_resign(leader);

        let leader = fleet.next_leader();
        fleet.stop_until_replaced(leader);
        fleet.signal(leader, Signal::CONT);

        let leader = fleet.next_leader();
        fleet.replace_killed(leader);

        fleet.next_leader();
        ask(&store, &["resign", "lease"]);

        // The holder's own sidecar: it is trusted until what was told has run out, and no longer.
        let leader = fleet.next_leader();
        let at = usize::from(fleet.url(leader) == urls[1]);
        sidecars[at].restart();

        let leader = fleet.next_leader();
        let at = usize::from(fleet.url(leader) == urls[1]);
        sidecars[at].signal(Signal::STOP);
        fleet.await_election();
        sidecars[at].signal(Signal::CONT);
    }
    fleet.pause(TTL);
    let histories = fleet.stop();
    match check(&histories) {
        Ok(account) => {
            println!("{} terms, {} questions answered with yes", account.terms, account.yes);
            assert!(account.terms >= 6 * rounds(), "{account:?}");
        }
        Err(violation) => panic!("{violation}"),
    }
}
