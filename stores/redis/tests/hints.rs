//! Hints: who is woken, and what happens when the connection for them breaks (F22).

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // A test fails by panicking, its helpers too.

mod common;

use common::{
    CLUSTER, Hints, Server, applied, beat, change, create, eventually, open, pause, write,
};
use incumbent_core::store::Store;

#[tokio::test]
async fn changes_wake_other_stores_and_beats_wake_nobody() {
    let server = Server::start(&[]);
    let (one, two) = (open(&server.url()).await, open(&server.url()).await);
    let mut hints = Hints::of(&two, CLUSTER);
    write(&one, create("lease/a", 0)).await.unwrap();
    // The first comes when it begins to listen.
    eventually("the first wake", || hints.count() > 0).await;
    pause(200).await;
    let before = hints.count();
    for attempt in 1..=20 {
        assert_eq!(write(&one, beat("lease/a", attempt - 1, attempt)).await, Ok(applied(attempt)));
    }
    pause(200).await;
    assert_eq!(hints.count(), before, "beats woke somebody");
    assert_eq!(server.statistic("commandstats", "cmdstat_publish"), 2, "one for each opening");
    for attempt in 21..=25 {
        let before = hints.count();
        write(&one, change("lease/a", attempt - 1, attempt)).await.unwrap();
        eventually("a wake", || hints.count() > before).await;
    }
    let before = hints.count();
    write(&one, change("lease/a", 0, 99)).await.unwrap();
    pause(200).await;
    assert_eq!(hints.count(), before, "a refused change woke somebody");
    hints.end();
    write(&one, change("lease/a", 25, 26)).await.unwrap();
    pause(200).await;
    assert_eq!(hints.count(), before, "a dropped guard goes on");
    eventually("the end of the connection", || !listens(&server)).await;
}

#[tokio::test]
async fn a_broken_connection_is_opened_again_and_wakes_everybody_once() {
    let server = Server::start(&[]);
    let (one, two) = (open(&server.url()).await, open(&server.url()).await);
    let hints = Hints::of(&two, CLUSTER);
    eventually("a subscription", || listens(&server)).await;
    for round in 0..3 {
        let before = hints.count();
        server.cut();
        eventually("a wake after the break", || hints.count() > before).await;
        write(&one, create(&format!("lease/{round}"), 1)).await.ok();
    }
    server.kill();
    pause(500).await;
    let before = hints.count();
    server.resume();
    eventually("a wake after the restart", || hints.count() > before).await;
    pause(200).await;
    let before = hints.count();
    write(&one, create("lease/b", 1)).await.ok();
    write(&one, create("lease/b", 1)).await.ok();
    write(&one, change("lease/b", 1, 2)).await.unwrap();
    eventually("a wake by a change", || hints.count() > before).await;
}

#[tokio::test]
async fn stores_end_their_connections() {
    let server = Server::start(&[]);
    let store = open(&server.url()).await;
    let hints = Hints::of(&store, CLUSTER);
    write(&store, create("lease/a", 1)).await.unwrap();
    eventually("a subscription", || listens(&server)).await;
    drop(store);
    // The operator's own is left.
    let connected = || server.statistic("clients", "connected_clients");
    eventually("the end of all connections", || connected() <= 1).await;
    drop(hints);
}

#[tokio::test]
async fn hints_can_be_turned_off() {
    let server = Server::start(&[]);
    let store = open(&format!("{}?hints=off", server.url())).await;
    assert!(!store.capabilities().push);
    assert!(store.hints(CLUSTER, std::sync::Arc::new(|| {})).is_none());
}

fn listens(server: &Server) -> bool {
    server.statistic("clients", "pubsub_clients") > 0
        || server.statistic("stats", "pubsub_channels") > 0
}
