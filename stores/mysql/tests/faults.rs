//! What happens when the server or the way to it fails.
#![allow(clippy::panic, clippy::expect_used, clippy::indexing_slicing)] // A test fails by panicking, its helpers too.

mod common;

use std::time::Duration;

use common::{
    Server, application, applied, assert_says, block_on, change, connect, create, find, fresh,
    opts, read, recovered, run, send, through, version, write,
};
use incumbent_core::store::{ErrorKind, Exchange, Key, Lane, Read, Store, StoreError};
use incumbent_mysql::MysqlStore;
use incumbent_proving::{Mood, Proxy};

/// A write tried until it goes through, each time as a new attempt on a new key.
async fn comes_back(store: &MysqlStore, lane: Lane, first: u64) {
    let attempts = std::cell::Cell::new(first);
    recovered("the store", || {
        let attempt = attempts.replace(attempts.get() + 1);
        send(store, lane, vec![create(&format!("back/{attempt}"), attempt)], vec![])
    })
    .await;
}

#[test]
fn a_killed_server_comes_back_with_all_that_was_acknowledged() {
    let server = Server::start(&[]);
    block_on(async {
        let store = connect(&server.fresh_url()).await;
        for attempt in 1..=50 {
            let key = format!("lease/{attempt}");
            assert_eq!(write(&store, create(&key, attempt)).await, Ok(applied(attempt)));
        }
        server.kill();
        for lane in [Lane::Beat, Lane::Change, Lane::Watch] {
            let kind = |error: StoreError| error.kind;
            let send = |attempt| send(&store, lane, vec![create("dead", attempt)], vec![]);
            // The driver notices the end of a connection when it uses it, and beats have two.
            for attempt in 100..102 {
                let answer = send(attempt).await.map_err(kind);
                assert!(
                    matches!(answer, Err(ErrorKind::Unknown | ErrorKind::Unavailable)),
                    "{lane:?}: {answer:?}"
                );
            }
            // Now there is no connection, so surely nothing is sent.
            let answer = send(102).await.map_err(kind);
            assert_eq!(answer, Err(ErrorKind::Unavailable), "{lane:?}");
        }
        server.resume();
        for lane in [Lane::Beat, Lane::Change, Lane::Watch] {
            comes_back(&store, lane, 1000 + lane as u64 * 1000).await;
        }
        for attempt in 1..=50 {
            let found = find(&store, &format!("lease/{attempt}")).await;
            assert_eq!(found.expect("it was acknowledged").version, version(attempt));
        }
        assert_eq!(find(&store, "dead").await, None);
    });
}

#[test]
fn a_stopped_server_leaves_writes_unknown_and_comes_back() {
    let server = Server::start(&[]);
    block_on(async {
        let url = format!("{}&timeout=700&connect_timeout=700", server.fresh_url());
        let store = connect(&url).await;
        assert_eq!(write(&store, create("k", 1)).await, Ok(applied(1)));
        let beat = send(&store, Lane::Beat, vec![create("member/m", 2)], vec![]).await;
        beat.expect("a beat");
        server.pause(true);
        let error = send(&store, Lane::Beat, vec![change("member/m", 2, 3)], vec![]).await;
        assert_says(&error.expect_err("stopped"), ErrorKind::Unknown, &["no answer within"]);
        let error = write(&store, change("k", 1, 4)).await;
        assert_says(&error.expect_err("stopped"), ErrorKind::Unknown, &["no answer within"]);
        // If there was a connection in reserve, it brings no answer either.
        let error = send(&store, Lane::Beat, vec![change("member/m", 2, 5)], vec![]).await;
        assert_ne!(error.expect_err("stopped").kind, ErrorKind::Rejected);
        // A new one isn't to be had, and nothing can have been sent over it.
        let error = send(&store, Lane::Beat, vec![change("member/m", 2, 6)], vec![]).await;
        assert_says(&error.expect_err("stopped"), ErrorKind::Unavailable, &["127.0.0.1", " ms"]);
        let error = send(&store, Lane::Watch, vec![], vec![read("k")]).await;
        assert_eq!(error.expect_err("stopped").kind, ErrorKind::Unavailable);
        server.pause(false);
        comes_back(&store, Lane::Beat, 1000).await;
        // What was sent may have landed; what was told to be unavailable never.
        let found = find(&store, "member/m").await.expect("a member").version;
        assert!([2, 3, 5].map(version).contains(&found), "{found:?}");
    });
}

#[test]
fn cut_and_silent_connections_are_replaced() {
    let server = Server::start(&[]);
    block_on(async {
        let proxy = Proxy::to(server.port()).await;
        let url = format!("{}&timeout=500&connect_timeout=500", through(&proxy, &fresh()));
        let store = connect(&url).await;
        write(&store, create("k", 1)).await.expect("a write");
        proxy.cut();
        tokio::time::sleep(Duration::from_millis(50)).await;
        // It may have been sent before the end was noticed.
        let error = write(&store, change("k", 1, 2)).await.expect_err("cut");
        assert_eq!(error.kind, ErrorKind::Unknown, "{error}");
        let outcome = write(&store, change("k", 1, 3)).await;
        assert_eq!(outcome, Ok(applied(3)), "the next connection works at once");
        proxy.set(Mood::Silent);
        let error = write(&store, change("k", 3, 4)).await.expect_err("silent");
        assert_eq!(error.kind, ErrorKind::Unknown, "{error}");
        let error = write(&store, change("k", 3, 5)).await.expect_err("silent");
        assert_eq!(error.kind, ErrorKind::Unavailable, "{error}");
        proxy.set(Mood::Fine);
        comes_back(&store, Lane::Change, 1000).await;
    });
}

#[test]
fn a_dropped_exchange_leaves_no_answer_for_the_next() {
    // F18.
    let server = Server::start(&[]);
    block_on(async {
        let proxy = Proxy::to(server.port()).await;
        let store = connect(&through(&proxy, &fresh())).await;
        for attempt in 1..40 {
            let key = format!("k{attempt}");
            let all = vec![Read::Prefix(Key::new(""))];
            let exchange = Exchange { writes: vec![create(&key, attempt)], reads: all };
            let wait = Duration::from_micros(attempt * 100);
            let _ = tokio::time::timeout(wait, store.exchange("c", Lane::Beat, exchange)).await;
            let key = format!("next{attempt}");
            let reply = send(&store, Lane::Beat, vec![create(&key, attempt)], vec![read(&key)]);
            let reply = reply.await.expect("the next exchange");
            assert_eq!((reply.writes.len(), reply.reads.len()), (1, 1));
            assert_eq!(reply.writes, [applied(attempt)]);
        }
    });
}

#[test]
fn a_server_that_becomes_read_only_is_left_even_by_users_it_still_obeys() {
    // F20: root may write to a read-only server, and must not.
    let server = Server::start(&[]);
    block_on(async {
        let mut root = application(&server.url("root")).await;
        run(&mut root, "CREATE USER app@'%'").await;
        run(&mut root, "GRANT ALL ON app.* TO app@'%'").await;
        let prefix = fresh();
        for (number, user) in [(100, "root"), (200, "app")] {
            let url = format!("{}?prefix={prefix}", server.url(user));
            let store = connect(&url).await;
            let key = format!("lease/{user}");
            assert_eq!(write(&store, create(&key, number)).await, Ok(applied(number)));
            send(&store, Lane::Watch, vec![], vec![read(&key)]).await.expect("a read");
            run(&mut root, "SET GLOBAL read_only = 1").await;
            let error = write(&store, change(&key, number, number + 1)).await;
            assert_says(&error.expect_err(user), ErrorKind::Unavailable, &["read-only", "primary"]);
            let batch = vec![create("a", number + 2), create("b", number + 3)];
            let error = send(&store, Lane::Change, batch, vec![]).await.expect_err(user);
            assert_says(&error, ErrorKind::Unavailable, &["primary"]);
            // Its records may be stale, so it isn't read from either.
            let error = send(&store, Lane::Watch, vec![], vec![read(&key)]).await;
            assert_says(&error.expect_err(user), ErrorKind::Unavailable, &["primary"]);
            let error = MysqlStore::connect(&url).await.expect_err(user);
            assert_says(&error, ErrorKind::Unavailable, &["primary"]);
            run(&mut root, "SET GLOBAL read_only = 0").await;
            assert_eq!(
                write(&store, change(&key, number, number + 4)).await,
                Ok(applied(number + 4))
            );
            assert_eq!(find(&store, "a").await, None);
        }
    });
}

#[test]
fn a_wiped_server_gets_its_tables_again() {
    let server = Server::start(&[]);
    block_on(async {
        let store = connect(&server.fresh_url()).await;
        write(&store, create("k", 1)).await.expect("a write");
        let mut root = application(&server.url("root")).await;
        run(&mut root, "DROP DATABASE app").await;
        let error = write(&store, create("l", 2)).await.expect_err("it is gone");
        assert_ne!(error.kind, ErrorKind::Unknown, "{error}");
        let error = write(&store, create("l", 3)).await.expect_err("it is gone");
        assert_says(&error, ErrorKind::Rejected, &["Make the database app"]);
        run(&mut root, "CREATE DATABASE app").await;
        comes_back(&store, Lane::Change, 10).await;
        assert_eq!(find(&store, "k").await, None);
    });
}

#[test]
fn no_more_connections_is_unavailable() {
    let server = Server::start(&["--max-connections=10"]);
    block_on(async {
        let store = connect(&server.fresh_url()).await;
        write(&store, create("k", 1)).await.expect("a write");
        let mut others = Vec::new();
        while let Ok(conn) = mysql_async::Conn::new(opts(&server.url("root"))).await {
            others.push(conn);
        }
        let error = MysqlStore::connect(&server.fresh_url()).await.expect_err("full");
        assert_says(&error, ErrorKind::Unavailable, &["max_connections"]);
        // The lanes that are connected go on.
        write(&store, change("k", 1, 2)).await.expect("a write");
        drop(others);
        comes_back(&store, Lane::Watch, 10).await;
    });
}

#[test]
fn a_store_outlives_the_runtime_it_was_opened_on() {
    let server = Server::start(&[]);
    let url = server.fresh_url();
    let store = block_on(connect(&url));
    assert_eq!(block_on(write(&store, create("k", 1))), Ok(applied(1)));
    assert_eq!(block_on(write(&store, change("k", 1, 2))), Ok(applied(2)));
    assert_eq!(block_on(find(&store, "k")).expect("a record").version, version(2));
}
