//! What a beat costs, counted on the wire.

#![allow(clippy::unwrap_used)] // A test fails by panicking, its helpers too.

mod common;

use std::time::Duration;

use common::{Server, beat, create, fresh, open, pause, read, send, through};
use incumbent::Node;
use incumbent_core::store::{Lane, Outcome};
use incumbent_proving::{Proxy, Traffic, Wire};

#[tokio::test]
async fn a_beat_is_one_message_for_each_thing_written_or_read() {
    let server = Server::start();
    let proxy = Proxy::over(Wire::NATS, server.port()).await;
    let store = open(&through(&proxy, &fresh())).await;
    let value = "{\"format\":1,\"beat\":1,\"ttl_ms\":15000,\"due_ms\":5000,\"state\":\"alive\"}";
    let reads = || vec![read("roster/a"), read("board")];
    let reply = send(&store, Lane::Beat, vec![create("member/a")], reads()).await.unwrap();
    let Some(Outcome::Applied(mut last)) = reply.writes.into_iter().next() else { panic!() };
    let (before, written) = (proxy.traffic(), proxy.sent("HPUB $KV."));
    for _ in 0..20 {
        let writes = vec![beat("member/a", &last, value)];
        let reply = send(&store, Lane::Beat, writes, reads()).await.unwrap();
        let Some(Outcome::Applied(next)) = reply.writes.into_iter().next() else { panic!() };
        last = next;
    }
    let after = proxy.traffic();
    let each = |before: u64, after: u64| (after - before) / 20;
    println!(
        "a beat and two reads: {} messages, {} bytes up, {} bytes down",
        each(before.requests, after.requests),
        each(before.bytes_up, after.bytes_up),
        each(before.bytes_down, after.bytes_down),
    );
    assert_eq!(each(before.requests, after.requests), 3);
    assert_eq!(each(written, proxy.sent("HPUB $KV.")), 1);
}

#[tokio::test]
async fn nodes_cost_the_same_however_many_leases_they_hold() {
    let server = Server::start();
    let mut costs = Vec::new();
    for leases in [1, 100] {
        let bucket = fresh();
        let holder = Seat::new(&server, &bucket, "holder").await;
        let mut held = Vec::new();
        for number in 0..leases {
            let mut campaign = holder.node.campaign(format!("lease-{number}").as_str()).unwrap();
            held.push((campaign.elected().await.unwrap(), campaign));
        }
        let candidate = Seat::new(&server, &bucket, "candidate").await;
        let _waiting = candidate.node.campaign("lease-0").unwrap();
        pause(2_000).await;
        let before = (holder.traffic(), candidate.traffic());
        pause(5_000).await;
        let holder = print(&format!("holder of {leases}"), before.0, holder.traffic());
        let candidate = print("candidate", before.1, candidate.traffic());
        costs.push((holder, candidate));
    }
    // A hundred times as much would be far more than the noise.
    assert!(costs[1].0 < costs[0].0 * 3.0, "{costs:?} messages a beat");
    assert!(costs[1].1 < costs[0].1 * 3.0, "{costs:?} messages a beat");
}

/// A node with a path of its own.
struct Seat {
    proxy: Proxy,
    node: Node,
}

impl Seat {
    async fn new(server: &Server, bucket: &str, name: &str) -> Self {
        let proxy = Proxy::over(Wire::NATS, server.port()).await;
        let store = open(&through(&proxy, bucket)).await;
        let ttl = Duration::from_millis(1500);
        let node = Node::builder().cluster("c").name(name).allow_short_ttl().ttl(ttl);
        Self { node: node.join(store).await.unwrap(), proxy }
    }

    /// What went over its path, and how many writes.
    fn traffic(&self) -> (Traffic, u64) {
        (self.proxy.traffic(), self.proxy.sent("HPUB $KV."))
    }
}

fn print(who: &str, before: (Traffic, u64), after: (Traffic, u64)) -> f64 {
    let (cost, beats) = (after.0.since(before.0), after.1 - before.1);
    let each = |count: u64| count as f64 / beats as f64;
    println!(
        "{who}: {beats} beats; each {:.1} messages, {:.0} bytes up, {:.0} bytes down",
        each(cost.requests),
        each(cost.bytes_up),
        each(cost.bytes_down),
    );
    each(cost.requests)
}
