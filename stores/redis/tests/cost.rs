//! What an exchange costs: round trips, commands and bytes.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // A test fails by panicking, its helpers too.

mod common;

use std::time::Duration;

use common::{Server, applied, beat, create, open, read, send, through};
use incumbent::Node;
use incumbent_core::store::{Lane, Store};
use incumbent_proving::{Proxy, Wire};

#[tokio::test]
async fn a_beat_is_one_command_and_one_round_trip() {
    let server = Server::start(&[]);
    let proxy = Proxy::over(Wire::REDIS, server.port()).await;
    let store = open(&through(&proxy)).await;
    let reads = || vec![read("roster/a"), read("board")];
    send(&store, Lane::Beat, vec![create("member/a", 0)], reads()).await.unwrap();
    let (before, scripts) = (proxy.quiet().await, proxy.sent("EVAL"));
    let calls = || server.statistic("commandstats", "cmdstat_evalsha");
    let called = calls();
    for attempt in 1..=100 {
        let writes = vec![beat("member/a", attempt - 1, attempt)];
        let reply = send(&store, Lane::Beat, writes, reads()).await.unwrap();
        assert_eq!(reply.writes, [applied(attempt)]);
    }
    let after = proxy.traffic();
    assert_eq!(after.requests - before.requests, 100);
    assert_eq!(proxy.sent("EVAL") - scripts, 100);
    assert_eq!(after.connections, before.connections);
    assert_eq!(calls() - called, 100);
    assert_eq!(server.statistic("commandstats", "cmdstat_eval"), 1, "only when it was opened");
    let (up, down) = (after.bytes_up - before.bytes_up, after.bytes_down - before.bytes_down);
    println!("a beat with two reads: {} bytes up, {} down", up / 100, down / 100);
    assert!(up < 60_000 && down < 10_000, "{up} bytes up, {down} down");
}

#[tokio::test]
async fn many_leases_cost_the_same_beat() {
    let server = Server::start(&[]);
    let mut costs = Vec::new();
    for count in [0, 300] {
        let proxy = Proxy::over(Wire::REDIS, server.port()).await;
        let store = open(&through(&proxy)).await;
        assert!(store.capabilities().push);
        let node = Node::builder()
            .cluster(format!("cost-{count}"))
            .name("holder")
            .ttl(Duration::from_secs(3))
            .without_membership()
            .join(store)
            .await
            .unwrap();
        let mut held = Vec::new();
        for number in 0..count {
            let mut campaign = node.campaign(format!("lease-{number}")).unwrap();
            let leadership = tokio::time::timeout(Duration::from_secs(20), campaign.elected());
            held.push((leadership.await.unwrap().unwrap(), campaign));
        }
        proxy.quiet().await;
        let before = proxy.traffic();
        common::pause(6000).await;
        let after = proxy.traffic();
        let (trips, up) = (after.requests - before.requests, after.bytes_up - before.bytes_up);
        println!("{count} leases: {trips} round trips, {up} bytes up in two ttls");
        costs.push((trips, up));
        drop(held);
    }
    let (none, many) = (costs[0], costs[1]);
    assert!(many.0 <= none.0 + 4 && many.1 <= none.1 + 2_500, "{none:?} became {many:?}");
}
