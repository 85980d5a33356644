//! Five processes on one SQLite file. Again and again the leader is killed, paused, or told to
//! resign. Afterwards their histories are laid side by side (F6, F11).
//!
//! `INCUMBENT_TEST_FULL=1` plays 50 rounds instead of 20, and `INCUMBENT_TEST_ROUNDS` any number.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "this is test code")]

use std::time::Duration;

use incumbent::blocking::Wait;
use incumbent::store::ErrorKind;
use incumbent::{Cluster, ClusterError};
use incumbent_proving::Fleet;
use rustix::process::Signal;

const CANDIDATES: usize = 5;
/// A ttl is one second here, and trust ends a tenth of it earlier.
const TTL: Duration = Duration::from_secs(1);

#[test]
fn never_two_that_trust_at_one_instant() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", directory.path().join("cluster.db").display());
    let mut fleet =
        Fleet::start(env!("CARGO_BIN_EXE_candidate"), directory.path(), &url, CANDIDATES);
    let cluster = Cluster::new(incumbent::open(&url).wait().unwrap(), "faults").unwrap();
    let rounds = rounds();
    for round in 0..rounds {
        let leader = fleet.next_leader();
        fleet.pause(Duration::from_millis(30 + (round * 37) % 200));
        match round % 5 {
            0 => fleet.replace_killed(leader),
            1 => {
                // Past everything: another has taken over when it goes on.
                fleet.stop_until_replaced(leader);
                fleet.signal(leader, Signal::CONT);
            }
            2 => fleet.tell_to_resign(leader),
            3 => {
                // Around the end of its trust, where a mistake would show.
                fleet.signal(leader, Signal::STOP);
                fleet.pause(TTL.mul_f64(0.7) + Duration::from_millis((round * 53) % 500));
                fleet.signal(leader, Signal::CONT);
                // It may have kept the lease; then it gives it up now.
                fleet.tell_to_resign(leader);
            }
            _ => {
                // Through the store, as an operator would. If nobody leads, somebody soon will; and who was
                // stopped in the middle of a write keeps others from writing until it goes on.
                let asked = cluster.request_resign("lease").wait();
                let fine = match &asked {
                    Ok(_) | Err(ClusterError::NobodyLeads { .. }) => true,
                    Err(ClusterError::Store(error)) => error.kind == ErrorKind::Unavailable,
                    Err(_) => false,
                };
                assert!(fine, "{asked:?}");
            }
        }
    }
    fleet.next_leader();
    let histories = fleet.stop();
    let account = incumbent_proving::check(&histories).unwrap_or_else(|violation| {
        panic!("{violation}");
    });
    println!("{rounds} rounds: {account:?}");
    assert!(account.terms as u64 > rounds, "no change of hands in some rounds: {account:?}");
    assert!(account.yes > 1000, "hardly anything was asked: {account:?}");
}

fn rounds() -> u64 {
    if let Some(rounds) = std::env::var("INCUMBENT_TEST_ROUNDS").ok().and_then(|it| it.parse().ok())
    {
        return rounds;
    }
    if std::env::var("INCUMBENT_TEST_FULL").is_ok() { 50 } else { 20 }
}
