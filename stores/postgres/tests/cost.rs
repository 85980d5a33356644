//! What an exchange costs, counted on the way to the server.

#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // A test fails by panicking, its helpers too.

mod common;

use std::time::Duration;

use common::{Server, applied, beat, block_on, connect, create, fresh, read, send, through};
use incumbent::Node;
use incumbent_core::store::Lane;
use incumbent_proving::store::cost::{every_shape, hundred_beats, reads};
use incumbent_proving::{Proxy, Traffic};

#[test]
fn a_beat_is_one_round_trip_from_the_first_on() {
    let server = Server::start(&["fsync=off"]);
    block_on(async {
        let proxy = Proxy::to(server.port()).await;
        let store = connect(&through(&proxy, &fresh())).await;
        send(&store, Lane::Beat, vec![], vec![read("board")]).await.expect("a read");
        let before = proxy.quiet().await;
        let reply = send(&store, Lane::Beat, vec![create("member/m", 0)], reads()).await;
        assert_eq!(reply.expect("a beat").writes, [applied(0)]);
        // What is prepared behind the scenes comes after the answer and delays nobody.
        let first = proxy.quiet().await.since(before);
        assert!(first.requests <= 2, "{first:?}");
        for attempt in 1..=3 {
            let beats = vec![beat("member/m", attempt - 1, attempt)];
            send(&store, Lane::Beat, beats, reads()).await.expect("a beat");
            proxy.quiet().await;
        }
        let cost = hundred_beats(&store, &proxy, 4).await;
        assert_eq!(cost.requests, 100);
        assert_eq!(cost.connections, 0);
        assert!(cost.bytes_up < 100 * 500, "{cost:?}");
    });
}

#[test]
fn every_shape_of_exchange_is_one_round_trip() {
    let server = Server::start(&["fsync=off"]);
    block_on(async {
        let proxy = Proxy::to(server.port()).await;
        let store = connect(&through(&proxy, &fresh())).await;
        for (round, costs) in every_shape(&store, &proxy).await.into_iter().enumerate() {
            for cost in costs {
                assert_eq!(cost.connections, 0);
                // In the first round statements are prepared after their answers.
                let most = if round == 0 { 2 } else { 1 };
                assert!(cost.requests <= most, "{cost:?}");
            }
        }
    });
}

#[test]
fn nodes_cost_the_same_however_many_leases_they_hold() {
    let server = Server::start(&["fsync=off"]);
    block_on(async {
        let mut costs = Vec::new();
        for leases in [1, 500] {
            let schema = fresh();
            let holder = Seat::new(&server, &schema, "holder").await;
            let mut held = Vec::new();
            for number in 0..leases {
                let name = format!("lease-{number}");
                let mut campaign = holder.node.campaign(name.as_str()).expect("a campaign");
                held.push((campaign.elected().await.expect("elected"), campaign));
            }
            let candidate = Seat::new(&server, &schema, "candidate").await;
            let _waiting = candidate.node.campaign("lease-0").expect("a campaign");
            tokio::time::sleep(Duration::from_secs(2)).await;
            let before = (holder.proxy.traffic(), candidate.proxy.traffic());
            tokio::time::sleep(Duration::from_secs(10)).await;
            costs.push(print(&format!("holder of {leases}"), before.0, &holder.proxy));
            print("candidate", before.1, &candidate.proxy);
        }
        // Five hundred times as much would be far more than the noise.
        assert!(costs[1] < costs[0] * 2 + 20, "{costs:?} round trips in ten seconds");
    });
}

/// A node with a path of its own.
struct Seat {
    proxy: Proxy,
    node: Node,
}

impl Seat {
    async fn new(server: &Server, schema: &str, name: &str) -> Self {
        let proxy = Proxy::to(server.port()).await;
        let store = connect(&through(&proxy, schema)).await;
        let ttl = Duration::from_millis(1500);
        let node = Node::builder().cluster("c").name(name).allow_short_ttl().ttl(ttl);
        Self { node: node.join(store).await.expect("joins"), proxy }
    }
}

/// In ten seconds at a ttl of 1.5 s are twenty beats.
fn print(who: &str, before: Traffic, proxy: &Proxy) -> u64 {
    let cost = proxy.traffic().since(before);
    let each = |count: u64| count as f64 / 20.0;
    println!(
        "{who}, a beat: {:.1} round trips, {:.0} bytes up, {:.0} bytes down",
        each(cost.requests),
        each(cost.bytes_up),
        each(cost.bytes_down)
    );
    cost.requests
}
