//! How soon a leader is followed of whose death there is no proof, in shares of its ttl and in virtual time:
//! also one that has led for less than a beat, before those who wait.
//!
//! ```sh
//! cargo test -p incumbent-core --test expiry -- --nocapture    # prints the figures
//! ```

#![allow(clippy::unwrap_used, missing_docs, reason = "a test may")]

mod house;

use std::time::Duration;

use house::{BEAT, House, TTL};

/// Lets the leader vanish after it has led for so long; gives the next one, and after which share of
/// the ttl it led.
fn succeed(house: &mut House, leader: usize, age: Duration) -> (usize, f64) {
    assert_eq!(house.run(house.now + age), None, "nobody else is elected meanwhile");
    if let Some(node) = house.nodes.get_mut(leader) {
        *node = None;
    }
    let died = house.now;
    let next = house.run(died + 3 * TTL).unwrap();
    let share = house.now.since(died).as_secs_f64() / TTL.as_secs_f64();
    // Not before: everybody looks when somebody joins.
    house.enter();
    (next, share)
}

/// Shares of the ttl, in order, of reigns that last up to so many beats.
fn shares(beats: u64) -> Vec<f64> {
    let mut shares = Vec::new();
    for seed in 0..40 {
        let mut house = House::new(seed, 1, true);
        for _ in 0..3 {
            house.enter();
        }
        let mut leader = house.run(house.now + TTL).unwrap();
        for _ in 0..10 {
            let most = BEAT.as_nanos() as u64 * beats;
            let age = Duration::from_nanos(house.random.below(most));
            let (next, share) = succeed(&mut house, leader, age);
            leader = next;
            shares.push(share);
        }
    }
    shares.sort_by(f64::total_cmp);
    shares
}

#[test]
fn who_follows_a_leader_without_proof_waits_a_ttl_from_its_last_beat_and_no_more() {
    for beats in [1, 2, 4, 16] {
        let shares = shares(beats);
        let (median, most) = (shares[shares.len() / 2], shares[shares.len() - 1]);
        let above = shares.iter().filter(|share| **share > 1.01).count();
        println!(
            "led for up to {beats:>2} beats: median {median:.3} of the ttl, at most {most:.3}, \
             {above} of {} above 1.01",
            shares.len()
        );
        assert!(most <= 1.01, "{most} after up to {beats} beats");
    }
}

#[test]
fn who_has_only_just_joined_follows_nearly_as_soon() {
    let share = |seed| {
        let mut house = House::new(seed, 1, true);
        house.enter();
        let leader = house.run(house.now + TTL).unwrap();
        let most = BEAT.as_nanos() as u64 * 2;
        let (before, age) = (house.random.below(most), house.random.below(most));
        assert_eq!(house.run(house.now + Duration::from_nanos(before)), None);
        house.enter();
        succeed(&mut house, leader, Duration::from_nanos(age)).1
    };
    let mut shares: Vec<f64> = (0..400).map(share).collect();
    shares.sort_by(f64::total_cmp);
    let (median, most) = (shares[shares.len() / 2], shares[shares.len() - 1]);
    println!("joined up to two beats before: median {median:.3} of the ttl, at most {most:.3}");
    assert!(most <= 1.05, "{most}");
}
