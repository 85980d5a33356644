//! Servers that die, hang, fill up or are demoted, and what the store says then.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // A test fails by panicking, its helpers too.

mod common;

use std::time::Duration;

use common::{
    Server, applied, beat, create, eventually, find, open, pause, read, send, through, version,
    write,
};
use incumbent_core::store::{ErrorKind, Key, Lane, Store, StoreError, Write};
use incumbent_proving::{Mood, Proxy, Wire};
use incumbent_redis::{RedisOptions, RedisStore};
use redis::Value;

#[tokio::test]
async fn what_was_acknowledged_survives_a_killed_server() {
    let server = Server::durable();
    let store = open(&server.url()).await;
    assert!(store.capabilities().durable);
    let mut last = 0;
    for round in 0..3 {
        for _ in 0..50 {
            let next = last + 1;
            let put = if last == 0 { create("a", next) } else { beat("a", last, next) };
            assert_eq!(write(&store, put).await, Ok(applied(next)));
            last = next;
        }
        server.kill();
        let error = write(&store, beat("a", last, 999)).await.unwrap_err();
        let told = [ErrorKind::Unavailable, ErrorKind::Unknown];
        assert!(told.contains(&error.kind), "{error}");
        let error = write(&store, beat("a", last, 999)).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unavailable, "round {round}: {error}");
        server.resume();
        let found = find(&store, "a").await.expect("it is there");
        assert_eq!(found.version, version(last), "F15: round {round}");
    }
}

#[tokio::test]
async fn settings_that_lose_writes_are_no_durability() {
    for (settings, durable) in [
        (&["--appendfsync", "always"][..], true),
        (&["--appendfsync", "everysec"], false),
        (&["--appendfsync", "no"], false),
        (&["--appendonly", "no", "--save", "60 1"], false),
    ] {
        let server = Server::start(settings);
        assert_eq!(open(&server.url()).await.capabilities().durable, durable, "{settings:?}");
    }
}

#[tokio::test]
async fn a_hung_server_makes_outcomes_unknown_and_is_used_again() {
    let server = Server::start(&[]);
    let options = RedisOptions::new("127.0.0.1", server.port())
        .timeout(Duration::from_millis(300))
        .connect_timeout(Duration::from_millis(300));
    let store = RedisStore::connect_with(options).await.unwrap();
    write(&store, create("a", 1)).await.unwrap();
    find(&store, "a").await.unwrap();
    server.pause(true);
    let error = write(&store, beat("a", 1, 2)).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unknown, "{error}");
    assert!(error.message.contains("300 ms"), "{error}");
    // A read changes nothing, so it can't be in doubt.
    let error = send(&store, Lane::Watch, vec![], vec![read("a")]).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable, "{error}");
    // Now it connects anew and gets no answer to its login, before anything was sent.
    let error = write(&store, beat("a", 1, 3)).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable, "{error}");
    server.pause(false);
    let found = find(&store, "a").await.unwrap();
    let next = if found.version == version(1) { 1 } else { 2 };
    assert_eq!(found.version, version(next), "what was unavailable never lands");
    assert_eq!(write(&store, beat("a", next, 4)).await, Ok(applied(4)));
}

#[tokio::test]
async fn a_half_open_connection_is_left_after_one_missing_answer() {
    let server = Server::start(&[]);
    let proxy = Proxy::over(Wire::REDIS, server.port()).await;
    let store = open(&through(&proxy)).await;
    send(&store, Lane::Beat, vec![create("a", 1)], vec![]).await.unwrap();
    let before = proxy.quiet().await.connections;
    proxy.set(Mood::Silent);
    // The caller gives up long before the store does, as a node does after a third of its ttl.
    let sending = send(&store, Lane::Beat, vec![beat("a", 1, 2)], vec![]);
    assert!(tokio::time::timeout(Duration::from_millis(100), sending).await.is_err());
    eventually("another is made at once", || proxy.traffic().connections == before + 1).await;
    proxy.set(Mood::Fine);
    let reply = send(&store, Lane::Beat, vec![], vec![read("a")]).await.unwrap();
    assert_eq!(reply.reads.len(), 1);
}

#[tokio::test]
async fn a_lost_answer_is_unknown_and_the_write_is_sent_only_once() {
    let server = Server::start(&[]);
    let proxy = Proxy::over(Wire::REDIS, server.port()).await;
    let store = open(&through(&proxy)).await;
    for lane in [Lane::Beat, Lane::Change] {
        let key = format!("{lane:?}");
        send(&store, lane, vec![create(&key, 1)], vec![]).await.unwrap();
        for attempt in 2..12 {
            let before = proxy.sent("EVAL");
            proxy.set(Mood::LoseAnswers);
            let writes = vec![beat(&key, attempt - 1, attempt)];
            let error = send(&store, lane, writes, vec![]).await.unwrap_err();
            assert_eq!(error.kind, ErrorKind::Unknown, "{error}");
            proxy.set(Mood::Fine);
            pause(20).await;
            assert_eq!(proxy.sent("EVAL"), before + 1, "it was sent again by itself");
            let reply = send(&store, lane, vec![], vec![read(&key)]).await.unwrap();
            assert!(format!("{reply:?}").contains(version(attempt).as_str()), "it was applied");
        }
    }
}

#[tokio::test]
async fn a_broken_idle_connection_costs_nothing() {
    let server = Server::start(&[]);
    let store = open(&server.url()).await;
    write(&store, create("a", 1)).await.unwrap();
    for attempt in 2..20 {
        server.cut();
        pause(20).await;
        assert_eq!(write(&store, beat("a", attempt - 1, attempt)).await, Ok(applied(attempt)));
    }
}

#[tokio::test]
async fn a_demoted_primary_is_left_and_never_read() {
    let primary = Server::start(&["--repl-diskless-sync-delay", "0"]);
    let server = Server::start(&[]);
    let store = open(&server.url()).await;
    write(&store, create("a", 1)).await.unwrap();
    find(&store, "a").await.unwrap();
    let port = primary.port().to_string();
    server.command(&["REPLICAOF", "127.0.0.1", &port]);
    eventually("it follows", || {
        let info = server.command(&["INFO", "replication"]);
        matches!(info, Value::BulkString(text)
            if String::from_utf8_lossy(&text).contains("master_link_status:up"))
    })
    .await;
    let unavailable = |error: StoreError| {
        assert_eq!(error.kind, ErrorKind::Unavailable, "F20: {error}");
        assert!(error.message.contains("primary"), "{error}");
    };
    unavailable(write(&store, beat("a", 1, 2)).await.unwrap_err());
    // Its reads may be stale, so it isn't asked.
    unavailable(send(&store, Lane::Watch, vec![], vec![read("a")]).await.unwrap_err());
    let delete = Write::Delete(Key::new("a"));
    unavailable(write(&store, delete).await.unwrap_err());
    // Nor can it be opened.
    unavailable(RedisStore::connect(&server.url()).await.unwrap_err());
    server.command(&["REPLICAOF", "NO", "ONE"]);
    assert_eq!(write(&store, create("b", 1)).await, Ok(applied(1)));
    assert!(find(&store, "a").await.is_none(), "it has what its primary had: nothing");
}

#[tokio::test]
async fn a_full_server_takes_nothing_but_can_be_read_and_cleaned_up() {
    let server = Server::start(&["--maxmemory-policy", "noeviction"]);
    let store = open(&server.url()).await;
    write(&store, create("a", 1)).await.unwrap();
    write(&store, create("b", 1)).await.unwrap();
    server.command(&["CONFIG", "SET", "maxmemory", "1"]);
    let error = write(&store, beat("a", 1, 2)).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable, "{error}");
    assert!(error.message.contains("maxmemory"), "{error}");
    let mixed = vec![Write::Delete(Key::new("b")), beat("a", 1, 3)];
    let error = send(&store, Lane::Change, mixed, vec![]).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable, "{error}");
    assert_eq!(find(&store, "a").await.unwrap().version, version(1));
    assert!(find(&store, "b").await.is_some(), "all or nothing");
    write(&store, Write::Delete(Key::new("b"))).await.unwrap();
    server.command(&["CONFIG", "SET", "maxmemory", "0"]);
    assert_eq!(write(&store, beat("a", 1, 4)).await, Ok(applied(4)));
}

#[tokio::test]
async fn a_server_that_evicts_is_refused() {
    for policy in ["allkeys-lru", "allkeys-lfu", "allkeys-random"] {
        let server = Server::start(&["--maxmemory-policy", policy]);
        let error = RedisStore::connect(&server.url()).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Rejected, "{error}");
        for part in [policy, "CONFIG SET maxmemory-policy noeviction", "eviction=allow"] {
            assert!(error.message.contains(part), "{error}");
        }
        open(&format!("{}?eviction=allow", server.url())).await;
    }
    for policy in ["noeviction", "volatile-lru", "volatile-ttl"] {
        let server = Server::start(&["--maxmemory-policy", policy]);
        open(&server.url()).await;
    }
}

#[tokio::test]
async fn scripts_may_be_flushed_at_any_time() {
    let server = Server::start(&[]);
    let store = open(&server.url()).await;
    write(&store, create("a", 0)).await.unwrap();
    let flush = || server.command(&["SCRIPT", "FLUSH"]);
    for attempt in 1..=50 {
        if attempt % 3 == 0 {
            assert_eq!(flush(), Value::Okay);
        }
        assert_eq!(write(&store, beat("a", attempt - 1, attempt)).await, Ok(applied(attempt)));
    }
    // The same while others write.
    let url = server.url();
    let flushing = tokio::task::spawn_blocking(move || {
        for _ in 0..200 {
            common::operator(&url, &["SCRIPT", "FLUSH"]).unwrap();
        }
    });
    let mut last = 50;
    while !flushing.is_finished() {
        assert_eq!(write(&store, beat("a", last, last + 1)).await, Ok(applied(last + 1)));
        last += 1;
    }
}

#[tokio::test]
async fn replicas_that_are_waited_for_and_missing_make_outcomes_unknown() {
    let server = Server::start(&[]);
    let url = format!("{}?wait=1&timeout=600", server.url());
    let store = open(&url).await;
    let error = write(&store, create("a", 1)).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unknown, "{error}");
    assert!(error.message.contains("0 of wait=1"), "{error}");
    let port = server.port().to_string();
    let replica = Server::start(&["--replicaof", "127.0.0.1", &port]);
    eventually("the replica follows", || server.statistic("replication", "connected_slaves") > 0)
        .await;
    for attempt in 2..200 {
        if write(&store, beat("a", attempt - 1, attempt)).await == Ok(applied(attempt)) {
            let there = replica.command(&["HGET", "{incumbent:c}:records", "a"]);
            let text = format!("\"attempt\":{attempt}}}");
            assert!(matches!(there, Value::BulkString(value)
                if String::from_utf8_lossy(&value).contains(&text)));
            return;
        }
    }
    panic!("no write reached the replica");
}

#[tokio::test]
async fn nobody_there_is_unavailable_and_a_cluster_is_rejected() {
    let port = incumbent_proving::server::free_port();
    let error = RedisStore::connect(&format!("redis://127.0.0.1:{port}")).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable, "{error}");
    assert!(error.message.contains(&port.to_string()), "{error}");
    let server = Server::start(&["--cluster-enabled", "yes"]);
    let error = RedisStore::connect(&server.url()).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable, "no slots yet: {error}");
    server.command(&["CLUSTER", "ADDSLOTSRANGE", "0", "8191"]);
    server.command(&["CONFIG", "SET", "cluster-require-full-coverage", "no"]);
    let error = RedisStore::connect(&format!("{}/1", server.url())).await.unwrap_err();
    assert!(error.message.contains("Cluster isn't supported"), "{error}");
}
