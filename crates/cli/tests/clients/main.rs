//! The clients for other languages, through the same scenarios: real processes that are told to resign, killed and
//! paused, at sidecars that are killed, paused and started again. What they wrote down about their own trust is laid
//! side by side: never do two trust at one instant, and terms grow (F6, F9, F10, F11, F61, F66, F72).
//!
//! `INCUMBENT_TEST_FULL=1` plays eight rounds instead of one, and of the faults 500 instead of nine;
//! `INCUMBENT_TEST_ROUNDS` any number.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "this is test code, although not all of it is a test"
)]
#![cfg(target_os = "linux")]

mod duties;
mod encrypted;
mod faults;
mod stage;
mod watchdog;

use std::time::Duration;

use incumbent_proving::{Fleet, check};
use rustix::process::Signal;

use stage::{Sidecar, ask, languages, rounds};

const TTL: Duration = Duration::from_secs(3);

#[test]
fn never_two_that_trust_at_one_instant_in_any_language() {
    let directory = tempfile::tempdir().unwrap();
    let languages = languages(directory.path(), "candidate");
    assert!(!languages.is_empty(), "not one of python3, node with npm, and go is here");
    // Clients of one sidecar are known by their Unix socket, those of the other by what they ask over TCP.
    let store = format!("sqlite:{}", directory.path().join("cluster.db").display());
    let unix = directory.path().join("socket");
    let address = format!("127.0.0.1:{}", incumbent_proving::server::free_port());
    let mut sidecars = [
        Sidecar::start(&store, "near", vec!["--unix".into(), unix.clone().into()]),
        Sidecar::start(&store, "far", vec!["--listen".into(), address.clone().into()]),
    ];
    let urls = [format!("unix:{}", unix.display()), format!("http://{address}")];
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
