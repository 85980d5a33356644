//! What a beat costs, counted on the wire.

#![allow(clippy::unwrap_used)] // A test fails by panicking, its helpers too.

mod common;

use std::time::Duration;

use common::proxy::{Proxy, Traffic};
use common::{Server, beat, create, fresh, open, pause, read, send};
use incumbent::Node;
use incumbent_core::store::{Lane, Outcome};

#[tokio::test]
async fn a_beat_is_one_message_for_each_thing_written_or_read() {
    let Some(server) = Server::start() else { return };
    let proxy = Proxy::to(server.port).await;
    let store = open(&proxy.url(&fresh())).await;
    let value = "{\"format\":1,\"beat\":1,\"ttl_ms\":15000,\"due_ms\":5000,\"state\":\"alive\"}";
    let reads = || vec![read("roster/a"), read("board")];
    let reply = send(&store, Lane::Beat, vec![create("member/a")], reads()).await.unwrap();
    let Some(Outcome::Applied(mut last)) = reply.writes.into_iter().next() else { panic!() };
    let before = proxy.traffic();
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
        each(before.messages, after.messages),
        each(before.bytes_up, after.bytes_up),
        each(before.bytes_down, after.bytes_down),
    );
    assert_eq!(each(before.messages, after.messages), 3);
    assert_eq!(each(before.writes, after.writes), 1);
}

#[tokio::test]
async fn nodes_cost_the_same_however_many_leases_they_hold() {
    let Some(server) = Server::start() else { return };
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
        let before = (holder.proxy.traffic(), candidate.proxy.traffic());
        pause(5_000).await;
        let holder = print(&format!("holder of {leases}"), before.0, holder.proxy.traffic());
        let candidate = print("candidate", before.1, candidate.proxy.traffic());
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
        let proxy = Proxy::to(server.port).await;
        let store = open(&proxy.url(bucket)).await;
        let ttl = Duration::from_millis(1500);
        let node = Node::builder().cluster("c").name(name).allow_short_ttl().ttl(ttl);
        Self { node: node.join(store).await.unwrap(), proxy }
    }
}

fn print(who: &str, before: Traffic, after: Traffic) -> f64 {
    let beats = after.writes - before.writes;
    let each = |before: u64, after: u64| (after - before) as f64 / beats as f64;
    println!(
        "{who}: {beats} beats; each {:.1} messages, {:.0} bytes up, {:.0} bytes down",
        each(before.messages, after.messages),
        each(before.bytes_up, after.bytes_up),
        each(before.bytes_down, after.bytes_down),
    );
    each(before.messages, after.messages)
}
