//! What an exchange costs, counted on the way to the server.
#![allow(clippy::panic, clippy::expect_used, clippy::indexing_slicing)] // A test fails by panicking, its helpers too.

mod common;

use std::time::Duration;

use common::{Server, applied, block_on, change, connect, create, fresh, send, through};
use incumbent::Node;
use incumbent_core::store::{ErrorKind, Lane, Outcome};
use incumbent_proving::store::cost::{every_shape, hundred_beats, reads};
use incumbent_proving::{Mood, Proxy};

#[test]
fn a_beat_is_one_round_trip() {
    let server = Server::start(&["--innodb-flush-log-at-trx-commit=0"]);
    block_on(async {
        let proxy = Proxy::to(server.port()).await;
        let store = connect(&through(&proxy, &fresh())).await;
        let reply = send(&store, Lane::Beat, vec![create("member/m", 0)], reads()).await;
        assert_eq!(reply.expect("a beat").writes, [applied(0)]);
        // By now the connection in reserve is there as well.
        let cost = hundred_beats(&store, &proxy, 1).await;
        assert_eq!((cost.requests, cost.connections), (100, 0));
        assert!(cost.bytes_up < 100 * 1000, "{cost:?}");
    });
}

#[test]
fn o14_a_beat_that_is_refused_is_one_round_trip_too() {
    let server = Server::start(&["--innodb-flush-log-at-trx-commit=0"]);
    block_on(async {
        let proxy = Proxy::to(server.port()).await;
        let store = connect(&through(&proxy, &fresh())).await;
        let create = send(&store, Lane::Beat, vec![create("member/m", 0)], vec![]).await;
        create.expect("a member");
        let before = proxy.quiet().await;
        let late = send(&store, Lane::Beat, vec![change("member/m", 7, 8)], vec![]).await;
        assert_eq!(late.expect("an answer").writes, [Outcome::Refused]);
        let cost = proxy.quiet().await.since(before);
        assert_eq!((cost.requests, cost.connections), (1, 0), "{cost:?}");
    });
}

#[test]
fn every_shape_of_exchange_is_one_round_trip() {
    let server = Server::start(&["--innodb-flush-log-at-trx-commit=0"]);
    block_on(async {
        let proxy = Proxy::to(server.port()).await;
        let store = connect(&through(&proxy, &fresh())).await;
        for cost in every_shape(&store, &proxy).await.as_flattened() {
            assert_eq!((cost.requests, cost.connections), (1, 0), "{cost:?}");
        }
    });
}

#[test]
fn what_fails_is_not_sent_again() {
    let server = Server::start(&["--innodb-flush-log-at-trx-commit=0"]);
    block_on(async {
        let proxy = Proxy::to(server.port()).await;
        let url = format!("{}&timeout=500&connect_timeout=500", through(&proxy, &fresh()));
        let store = connect(&url).await;
        send(&store, Lane::Beat, vec![create("member/m", 0)], vec![]).await.expect("a beat");
        let before = proxy.quiet().await;
        proxy.set(Mood::Silent);
        let beat = vec![change("member/m", 0, 1)];
        let error = send(&store, Lane::Beat, beat, vec![]).await.expect_err("it hangs");
        assert_eq!(error.kind, ErrorKind::Unknown, "{error}");
        tokio::time::sleep(Duration::from_secs(1)).await;
        let cost = proxy.traffic().since(before);
        assert_eq!(cost.requests, 0, "it was sent again: {cost:?}");
    });
}

/// What nodes of the default ttl cost while nothing happens.
#[test]
fn an_idle_leader_and_an_idle_follower_cost_little() {
    const WINDOW: Duration = Duration::from_secs(20);
    let server = Server::start(&[]);
    block_on(async {
        let prefix = fresh();
        let mut scene = Vec::new();
        for name in ["leader", "follower"] {
            let proxy = Proxy::to(server.port()).await;
            let store = connect(&through(&proxy, &prefix)).await;
            let node = Node::builder().cluster("idle").name(name).join(store).await;
            let node = node.expect("it joins");
            let campaign = node.campaign("prize").expect("a campaign");
            scene.push((name, proxy, node, campaign));
            // The first to come leads.
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let leadership = scene[0].3.elected().await.expect("it leads");
        tokio::time::sleep(Duration::from_secs(6)).await;
        let before: Vec<_> = scene.iter().map(|(_, proxy, ..)| proxy.traffic()).collect();
        tokio::time::sleep(WINDOW).await;
        for ((name, proxy, ..), before) in scene.iter().zip(before) {
            let cost = proxy.traffic().since(before);
            println!("{name} at a ttl of 15 s, for {WINDOW:?}: {cost:?}");
            // A beat every five seconds, and without push a look every second.
            assert!(cost.requests <= 50 && cost.connections == 0, "{name}: {cost:?}");
        }
        assert!(leadership.is_held());
    });
}
