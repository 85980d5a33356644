//! Servers that die, hang, are emptied or lose connections, and what the store says then.

#![allow(clippy::panic)] // A test fails by panicking, its helpers too.

mod common;

use std::time::Duration;

use common::{
    Server, apply, beat, create, eventually, find, fresh, open, pause, read, send, through, write,
};
use incumbent_core::store::{ErrorKind, Expect, Found, Lane, Outcome, Reply, StoreError, Version};
use incumbent_nats::{NatsOptions, NatsStore};
use incumbent_proving::{Mood, Proxy, Wire};

fn version(reply: Result<Reply, StoreError>) -> Version {
    match reply.map(|reply| reply.writes.into_iter().next()) {
        Ok(Some(Outcome::Applied(version))) => version,
        other => panic!("it was not applied: {other:?}"),
    }
}

#[tokio::test]
async fn what_was_acknowledged_survives_a_killed_server() {
    let server = Server::start();
    let store = open(&server.fresh_url()).await;
    let mut last = apply(&store, create("a")).await;
    for round in 0..3 {
        for _ in 0..50 {
            last = apply(&store, beat("a", &last, "{}")).await;
        }
        server.kill();
        let error = write(&store, beat("a", &last, "{\"lost\":1}")).await.unwrap_err();
        let told = [ErrorKind::Unavailable, ErrorKind::Unknown];
        assert!(told.contains(&error.kind), "{error}");
        let error = write(&store, beat("a", &last, "{\"lost\":2}")).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unavailable, "round {round}: {error}");
        server.resume();
        let found = find_again(&store, "a").await.expect("it is there");
        assert_eq!(found, last, "round {round}");
    }
}

/// The first answers after a restart may still be those of a connection that didn't come up.
async fn find_again(store: &NatsStore, key: &str) -> Option<Version> {
    for _ in 0..100 {
        if let Ok(reply) = send(store, Lane::Watch, vec![], vec![read(key)]).await {
            return match reply.reads.into_iter().next() {
                Some(Found::Record(record)) => Some(record.version),
                _ => None,
            };
        }
        pause(50).await;
    }
    panic!("the store doesn't come back");
}

#[tokio::test]
async fn an_emptied_server_has_no_old_versions() {
    let server = Server::start();
    let store = open(&server.fresh_url()).await;
    let old = apply(&store, create("lease/a")).await;
    find(&store, "lease/a").await.unwrap();
    server.wipe();
    server.resume();
    assert_eq!(find_again(&store, "lease/a").await, None);
    // The stream counts from 1 again, and the same number must not be the same version (F8).
    let new = loop {
        match write(&store, create("lease/a")).await {
            Ok(Outcome::Applied(version)) => break version,
            Ok(other) => panic!("{other:?}"),
            Err(_) => pause(50).await,
        }
    };
    let number = |version: &Version| version.as_str().split('-').next().unwrap().to_owned();
    assert_eq!(number(&old), number(&new));
    assert_ne!(old, new);
    assert_eq!(write(&store, beat("lease/a", &old, "{}")).await, Ok(Outcome::Refused));
    assert_eq!(find(&store, "lease/a").await.unwrap().version, new);
}

#[tokio::test]
async fn a_hung_server_makes_outcomes_unknown_and_is_used_again() {
    let server = Server::start();
    let options = NatsOptions::new(format!("127.0.0.1:{}", server.port()))
        .bucket(fresh())
        .timeout(Duration::from_millis(300))
        .connect_timeout(Duration::from_millis(300));
    let store = NatsStore::connect_with(options).await.unwrap();
    let first = apply(&store, create("a")).await;
    find(&store, "a").await.unwrap();
    server.pause(true);
    let error = write(&store, beat("a", &first, "{\"n\":2}")).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unknown, "{error}");
    assert!(error.message.contains("300ms"), "{error}");
    // A read changes nothing, so it can't be in doubt.
    let error = send(&store, Lane::Watch, vec![], vec![read("a")]).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable, "{error}");
    // Now it connects anew and isn't greeted, before anything was sent.
    let error = write(&store, beat("a", &first, "{\"n\":3}")).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable, "{error}");
    server.pause(false);
    find_again(&store, "a").await.unwrap();
    pause(100).await;
    let found = find(&store, "a").await.unwrap();
    assert_ne!(found.value, b"{\"n\":3}", "what was unavailable never lands");
    for _ in 0..100 {
        if write(&store, beat("a", &found.version, "{\"n\":4}")).await.is_ok() {
            assert_eq!(find(&store, "a").await.unwrap().value, b"{\"n\":4}");
            return;
        }
        pause(50).await;
    }
    panic!("the store doesn't come back");
}

#[tokio::test]
async fn a_half_open_connection_is_left_after_one_missing_answer() {
    let server = Server::start();
    let proxy = Proxy::over(Wire::NATS, server.port()).await;
    let store = open(&through(&proxy, &fresh())).await;
    let first = version(send(&store, Lane::Beat, vec![create("a")], vec![]).await);
    let before = proxy.traffic().connections;
    proxy.forget_connections();
    // The caller gives up long before the store does, as a node does after a third of its ttl.
    let sending = send(&store, Lane::Beat, vec![beat("a", &first, "{}")], vec![]);
    assert!(tokio::time::timeout(Duration::from_millis(100), sending).await.is_err());
    // The connection for reads is forgotten too, so that it takes a moment.
    let mut tries = 0;
    while let Err(error) = send(&store, Lane::Beat, vec![], vec![read("a")]).await {
        assert_ne!(error.kind, ErrorKind::Rejected, "{error}");
        tries += 1;
        assert!(tries < 60, "no other connection is used: {error}");
        pause(50).await;
    }
    assert!(proxy.traffic().connections > before, "another connection");
}

#[tokio::test]
async fn a_lost_answer_is_unknown_and_the_write_is_sent_only_once() {
    let server = Server::start();
    let proxy = Proxy::over(Wire::NATS, server.port()).await;
    let store = open(&through(&proxy, &fresh())).await;
    for lane in [Lane::Beat, Lane::Change] {
        let key = format!("lease/{lane:?}");
        let mut last = version(send(&store, lane, vec![create(&key)], vec![]).await);
        for attempt in 2..8 {
            let before = proxy.sent("HPUB $KV.");
            proxy.set(Mood::LoseAnswers);
            let value = format!("{{\"n\":{attempt}}}");
            let error = send(&store, lane, vec![beat(&key, &last, &value)], vec![]).await;
            let error = error.unwrap_err();
            assert_eq!(error.kind, ErrorKind::Unknown, "{error}");
            proxy.set(Mood::Fine);
            // Longer than the driver waits before it connects again by itself.
            pause(if attempt < 4 { 1300 } else { 20 }).await;
            assert_eq!(proxy.sent("HPUB $KV."), before + 1, "it was sent again by itself");
            let found = find(&store, &key).await.unwrap();
            assert_eq!(found.value, value.as_bytes(), "it was applied");
            last = found.version;
        }
    }
}

#[tokio::test]
async fn a_broken_idle_connection_costs_nothing() {
    let server = Server::start();
    let proxy = Proxy::over(Wire::NATS, server.port()).await;
    let store = open(&through(&proxy, &fresh())).await;
    let mut last = apply(&store, create("a")).await;
    for _ in 0..5 {
        proxy.cut();
        pause(50).await;
        last = apply(&store, beat("a", &last, "{}")).await;
    }
    assert_eq!(find(&store, "a").await.expect("a record").version, last);
    assert!(proxy.traffic().connections > 5, "each time a new connection was made");
}

#[tokio::test]
async fn connections_close_with_the_store() {
    let server = Server::start();
    let open_now = || {
        let table = std::fs::read_to_string("/proc/self/net/tcp").unwrap();
        let port = format!(":{:04X} 01 ", server.port());
        table.lines().filter(|line| line.contains(&port)).count()
    };
    for _ in 0..3 {
        let store = open(&server.fresh_url()).await;
        apply(&store, create("a")).await;
        find(&store, "a").await.unwrap();
        let hints = common::Hints::of(&store, "c").ready().await;
        assert!(open_now() >= 4);
        drop((hints, store));
        eventually("the connections close", || open_now() == 0).await;
    }
}

#[tokio::test]
async fn nothing_is_created_twice_by_racing_writers() {
    let server = Server::start();
    let url = server.fresh_url();
    let stores = [open(&url).await, open(&url).await];
    for round in 0..50 {
        let key = format!("lease/{round}");
        let race = |store: &NatsStore| {
            let (store, key) = (store.clone(), key.clone());
            async move { write(&store, common::put(&key, Expect::Absent, "{}", false)).await }
        };
        let (one, other) = tokio::join!(race(&stores[0]), race(&stores[1]));
        let won = [one, other].into_iter().filter(|end| matches!(end, Ok(Outcome::Applied(_))));
        assert_eq!(won.count(), 1);
    }
}
