//! What a leader and one who waits ask of the store in a steady cluster, a beat: for one lease and for a
//! thousand.
//!
//! ```sh
//! cargo test -p incumbent-core --test traffic -- --nocapture    # prints the figures
//! ```

#![allow(clippy::unwrap_used, missing_docs, reason = "a test may")]

mod house;

use house::{Asked, BEAT, House, TTL};

const BEATS: u32 = 60;

/// What the leader and who waits ask in a beat, once all is steady.
struct Traffic {
    leader: Rates,
    waiter: Rates,
}

#[derive(Clone, Copy, Debug)]
struct Rates {
    requests: f64,
    writes: f64,
    reads: f64,
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

#[test]
fn print() {
    for (leases, push) in [(1, true), (1000, true), (1, false), (1000, false)] {
        traffic(leases, push);
    }
}
