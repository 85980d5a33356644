//! What an exchange costs, counted on the way to the server.
#![allow(clippy::panic, clippy::expect_used, clippy::indexing_slicing)] // A test fails by panicking, its helpers too.

mod common;

use common::proxy::{Proxy, Traffic, quiet};
use common::{Server, applied, block_on, change, connect, create, fresh, read, send};
use incumbent_core::store::{Key, Lane, Read, Write};

fn between(before: Traffic, after: Traffic) -> Traffic {
    Traffic {
        trips: after.trips - before.trips,
        bytes_up: after.bytes_up - before.bytes_up,
        bytes_down: after.bytes_down - before.bytes_down,
        connections: after.connections - before.connections,
    }
}

#[test]
fn a_beat_is_one_round_trip_from_the_first_on() {
    let server = Server::start(&["--innodb-flush-log-at-trx-commit=0"]);
    block_on(async {
        let proxy = Proxy::to(server.port()).await;
        let store = connect(&proxy.url(&fresh())).await;
        let reads = || vec![read("roster/m"), read("board")];
        let before = quiet(&proxy).await;
        let reply = send(&store, Lane::Beat, vec![create("member/m", 0)], reads()).await;
        assert_eq!(reply.expect("a beat").writes, [applied(0)]);
        for attempt in 1..=100 {
            let beats = vec![change("member/m", attempt - 1, attempt)];
            let reply = send(&store, Lane::Beat, beats, reads()).await.expect("a beat");
            assert_eq!(reply.writes, [applied(attempt)]);
        }
        let cost = between(before, quiet(&proxy).await);
        println!("101 beats with two reads: {cost:?}");
        assert_eq!((cost.trips, cost.connections), (101, 0));
        assert!(cost.bytes_up < 101 * 1000, "{cost:?}");
    });
}

#[test]
fn every_shape_of_exchange_is_one_round_trip() {
    let server = Server::start(&["--innodb-flush-log-at-trx-commit=0"]);
    block_on(async {
        let proxy = Proxy::to(server.port()).await;
        let store = connect(&proxy.url(&fresh())).await;
        let batch = |round: u64| -> Vec<Write> {
            (0..500)
                .map(|number| match round.checked_sub(1) {
                    None => create(&format!("lease/{number:03}"), number),
                    Some(before) => {
                        let (from, to) = (before * 1000 + number, round * 1000 + number);
                        change(&format!("lease/{number:03}"), from, to)
                    }
                })
                .collect()
        };
        send(&store, Lane::Change, batch(0), vec![]).await.expect("creations");
        send(&store, Lane::Watch, vec![], vec![read("x")]).await.expect("a read");
        for round in 1..=3 {
            let before = quiet(&proxy).await;
            let reply = send(&store, Lane::Change, batch(round), vec![read("view")]).await;
            let reply = reply.expect("an exchange");
            let expected = (0..500).map(|number| applied(round * 1000 + number));
            assert!(reply.writes.into_iter().eq(expected));
            let cost = between(before, quiet(&proxy).await);
            assert_eq!((cost.trips, cost.connections), (1, 0), "{cost:?}");
            let reads = vec![Read::Prefix(Key::new("lease/")), read("board")];
            let before = proxy.traffic();
            send(&store, Lane::Watch, vec![], reads).await.expect("reads");
            let cost = between(before, quiet(&proxy).await);
            assert_eq!((cost.trips, cost.connections), (1, 0), "{cost:?}");
        }
    });
}

#[test]
fn what_fails_is_not_sent_again() {
    let server = Server::start(&["--innodb-flush-log-at-trx-commit=0"]);
    block_on(async {
        let proxy = Proxy::to(server.port()).await;
        let url = format!("{}&timeout=500&connect_timeout=500", proxy.url(&fresh()));
        let store = connect(&url).await;
        send(&store, Lane::Beat, vec![create("member/m", 0)], vec![]).await.expect("a beat");
        let before = quiet(&proxy).await;
        proxy.freeze(true);
        let beat = vec![change("member/m", 0, 1)];
        let error = send(&store, Lane::Beat, beat, vec![]).await.expect_err("it hangs");
        assert_eq!(error.kind, incumbent_core::store::ErrorKind::Unknown, "{error}");
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        let cost = between(before, proxy.traffic());
        assert_eq!((cost.trips, cost.connections), (0, 0), "nothing came of a retry: {cost:?}");
    });
}
