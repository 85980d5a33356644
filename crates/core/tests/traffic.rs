//! What a leader and one who waits ask of the store in a steady cluster, a beat: for one lease and for a
//! thousand.
//!
//! ```sh
//! cargo test -p incumbent-core --test traffic -- --nocapture    # prints the figures
//! ```

#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs, reason = "a test may")]

mod house;

use house::{Asked, BEAT, House, TTL};

const BEATS: u32 = 30;

/// What the leader and who waits ask in a beat, once all is steady.
struct Traffic {
    leader: Rates,
    waiter: Rates,
}

#[derive(Debug)]
struct Rates {
    requests: f64,
    writes: f64,
    reads: f64,
    /// Keys, values and versions that are sent, without what a protocol adds.
    bytes: f64,
}

impl Rates {
    fn between(before: Asked, after: Asked) -> Self {
        let rate = |before: usize, after: usize| (after - before) as f64 / f64::from(BEATS);
        Self {
            requests: rate(before.requests, after.requests),
            writes: rate(before.writes, after.writes),
            reads: rate(before.reads, after.reads),
            bytes: rate(before.bytes, after.bytes),
        }
    }
}

fn traffic(leases: usize, push: bool) -> Traffic {
    let mut house = House::new(7, leases, push);
    house.enter();
    while house.run(house.now + TTL).is_some() {}
    let held = house.nodes.iter().flatten().map(|node| node.holdings().count());
    assert_eq!(held.collect::<Vec<_>>(), [leases]);
    house.enter();
    assert_eq!(house.run(house.now + 10 * TTL), None, "it leads on");
    let before = house.asked.clone();
    assert_eq!(house.run(house.now + BEATS * BEAT), None);
    let rates = |node: usize| Rates::between(before[node], house.asked[node]);
    let traffic = Traffic { leader: rates(0), waiter: rates(1) };
    println!("{leases} leases, push {push}: leader {:.2?}", traffic.leader);
    println!("{leases} leases, push {push}: waiter {:.2?}", traffic.waiter);
    traffic
}

/// A ttl has three beats, and in each ttl all that is waited for is read once.
const FULL: f64 = 1.0 / 3.0;

#[test]
fn who_leads_writes_its_beats_and_who_waits_looks_once_for_each_where_hints_say_the_rest() {
    let (one, many) = (traffic(1, true), traffic(1_000, true));
    for Traffic { leader, waiter } in [&one, &many] {
        assert!(leader.requests < 1.05 && leader.writes < 1.05, "{leader:?}");
        assert!(leader.reads < FULL * 1.2 + 0.1, "the board, and a sweep now and then: {leader:?}");
        assert!(leader.bytes < 200.0, "{leader:?}");
        assert!(
            waiter.requests < 1.05 + 1.3,
            "its own beats, and looks for the other's: {waiter:?}"
        );
    }
    assert!(one.waiter.reads < FULL * 1.2 + 1.3 + FULL * 1.2, "{:?}", one.waiter);
    assert!(many.waiter.reads - one.waiter.reads < 1_000.0 * FULL * 1.1, "{:?}", many.waiter);
}

#[test]
fn where_nothing_is_pushed_who_waits_reads_its_holder_each_second_and_each_lease_once_a_ttl() {
    let (one, many) = (traffic(1, false).waiter, traffic(1_000, false).waiter);
    for waiter in [&one, &many] {
        assert!(waiter.requests < 1.05 + 4.3, "{waiter:?}");
    }
    assert!(many.reads - one.reads < 1_000.0 * FULL * 1.1, "{many:?}");
}
