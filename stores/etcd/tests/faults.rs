//! What happens when the server or the path to it fails.
#![allow(clippy::panic, clippy::expect_used, clippy::indexing_slicing)] // A test fails by panicking, its helpers too.

mod common;

use std::pin::pin;
use std::time::Duration;

use common::{
    Server, applied, assert_says, beat, block_on, connect, create, find, fresh, http, pause, put,
    read, send, server, through, until_readable, write,
};
use incumbent_core::store::{ErrorKind, Exchange, Expect, Found, Key, Lane, Outcome, Store, Write};
use incumbent_etcd::EtcdStore;
use incumbent_proving::{Mood, Proxy, Wire};

#[test]
fn acknowledged_writes_survive_a_killed_server() {
    block_on(async {
        let server = Server::start(&[]);
        let store = connect(&server.fresh_url()).await;
        let mut written = Vec::new();
        for round in 0..3 {
            for n in 0..20 {
                let key = format!("k{round}-{n}");
                let version = applied(&store, create(&key, &key)).await;
                written.push((key, version));
            }
            server.kill();
            // The first may be on its way before the end of the connection is known.
            let _ = write(&store, create("gone", "1")).await.expect_err("no server");
            let error = write(&store, create("gone", "1")).await.expect_err("no server");
            assert_says(&error, ErrorKind::Unavailable, &["127.0.0.1"]);
            server.resume();
            until_readable(&store).await;
            for (key, version) in &written {
                let found = find(&store, key).await.expect("the record survives");
                assert_eq!((&found.version, &found.value[..]), (version, key.as_bytes()));
            }
        }
        assert_eq!(find(&store, "gone").await, None);
    });
}

#[test]
fn a_server_killed_in_the_middle_of_writes_leaves_no_lie() {
    block_on(async {
        let server = Server::start(&[]);
        let store = connect(&server.fresh_url()).await;
        let writer = store.clone();
        let writing = tokio::runtime::Handle::current().spawn(async move {
            let mut told = Vec::new();
            for n in 0.. {
                let outcome = write(&writer, create(&format!("k{n}"), "1")).await;
                let failed = outcome.is_err();
                told.push(outcome);
                if failed {
                    break;
                }
            }
            told
        });
        pause(400).await;
        server.kill();
        let told = writing.await.expect("the writer ends");
        server.resume();
        until_readable(&store).await;
        assert!(told.len() > 5, "{}", told.len());
        for (n, outcome) in told.iter().enumerate() {
            let there = find(&store, &format!("k{n}")).await.is_some();
            match outcome {
                Ok(Outcome::Applied(_)) => assert!(there, "k{n} was acknowledged"),
                Err(error) if error.kind == ErrorKind::Unavailable => {
                    assert!(!there, "k{n} was {error}");
                }
                Err(error) => assert_eq!(error.kind, ErrorKind::Unknown, "{error}"),
                other => panic!("{other:?}"),
            }
        }
    });
}

#[test]
fn a_stopped_server_makes_writes_unknown_and_may_apply_them_later() {
    block_on(async {
        let server = Server::start(&[]);
        let url = format!("{}?timeout=500", server.fresh_url());
        let store = connect(&url).await;
        let version = applied(&store, create("k", "1")).await;
        server.pause(true);
        let sent = beat("k", &version, "2");
        let answer = send(&store, Lane::Change, vec![sent], vec![]).await;
        assert_says(&answer.expect_err("no answer"), ErrorKind::Unknown, &["no answer within"]);
        // Reads change nothing, so it is sure that nothing was changed.
        let error = send(&store, Lane::Watch, vec![], vec![read("k")]).await.expect_err("none");
        assert_says(&error, ErrorKind::Unavailable, &["no connection within"]);
        pause(1500).await;
        server.pause(false);
        until_readable(&store).await;
        let found = find(&store, "k").await.expect("a record");
        assert!(found.value == b"2" || found.version == version, "{found:?}");
        let next = send(&store, Lane::Change, vec![beat("k", &found.version, "3")], vec![]).await;
        assert!(matches!(next.expect("a write").writes[..], [Outcome::Applied(_)]));
    });
}

#[test]
fn a_path_that_swallows_everything_costs_one_time_out_and_a_new_connection() {
    block_on(async {
        let proxy = Proxy::over(Wire::ETCD, server::shared_port()).await;
        let store = connect(&format!("{}?timeout=400", through(&proxy, &fresh()))).await;
        let version = applied(&store, create("k", "1")).await;
        proxy.set(Mood::Silent);
        let error = write(&store, beat("k", &version, "2")).await.expect_err("frozen");
        assert_eq!(error.kind, ErrorKind::Unknown, "{error}");
        let before = proxy.traffic().connections;
        proxy.set(Mood::Fine);
        until_readable(&store).await;
        let _ = write(&store, beat("k", &version, "3")).await.expect("the path works again");
        assert!(proxy.traffic().connections > before, "a new connection was opened");
    });
}

#[test]
fn whoever_gives_up_early_gets_another_connection_too() {
    block_on(async {
        // F18: the core's own deadline is shorter than the store's.
        let port = server::shared_port();
        let (one, two) = (Proxy::over(Wire::ETCD, port).await, Proxy::over(Wire::ETCD, port).await);
        let url = format!("etcd://127.0.0.1:{},127.0.0.1:{}{}", one.port(), two.port(), fresh());
        let store = connect(&url).await;
        let version = applied(&store, create("k", "1")).await;
        one.set(Mood::Silent);
        let mut version = version;
        let mut given_up = 0;
        for round in 0..4 {
            let value = round.to_string();
            let sending = send(&store, Lane::Beat, vec![beat("k", &version, &value)], vec![]);
            match tokio::time::timeout(Duration::from_secs(2), sending).await {
                Ok(reply) => {
                    let reply = reply.expect("a beat over the other path");
                    let [Outcome::Applied(now)] = &reply.writes[..] else { panic!("{reply:?}") };
                    version = now.clone();
                }
                Err(_) => given_up += 1,
            }
        }
        assert!(given_up <= 1, "{given_up} beats were given up");
    });
}

#[test]
fn lanes_do_not_wait_for_each_other() {
    block_on(async {
        let server = Server::start(&[]);
        let store = connect(&server.fresh_url()).await;
        applied(&store, create("k", "1")).await;
        let other = Server::start(&[]);
        // A change that hangs: its lane was cut off on its own.
        server.pause(true);
        let exchange = Exchange { writes: vec![create("slow", "1")], reads: vec![] };
        let mut hanging = pin!(store.exchange("c", Lane::Change, exchange));
        assert!(tokio::time::timeout(Duration::from_millis(200), &mut hanging).await.is_err());
        server.pause(false);
        for lane in [Lane::Beat, Lane::Watch] {
            let reply = send(&store, lane, vec![], vec![read("k")]).await;
            assert!(reply.is_ok(), "{reply:?}");
        }
        let _ = hanging.await;
        drop(other);
    });
}

#[test]
fn cut_connections_are_opened_anew() {
    block_on(async {
        let proxy = Proxy::over(Wire::ETCD, server::shared_port()).await;
        let store = connect(&through(&proxy, &fresh())).await;
        let mut version = applied(&store, create("k", "0")).await;
        for round in 0..10 {
            proxy.cut();
            pause(50).await;
            // An idle connection that broke costs nothing but a new one.
            let value = round.to_string();
            version = applied(&store, beat("k", &version, &value)).await;
        }
        assert!(proxy.traffic().connections >= 10);
    });
}

#[test]
fn a_full_database_is_told_with_the_next_step_and_never_lies() {
    block_on(async {
        let quota = 16 * 1024 * 1024;
        let server = Server::start(&["--quota-backend-bytes", &quota.to_string()]);
        let store = connect(&server.fresh_url()).await;
        let value = "x".repeat(900_000);
        let mut error = None;
        for n in 0..60 {
            match write(&store, create(&format!("k{n}"), &value)).await {
                Ok(outcome) => assert!(matches!(outcome, Outcome::Applied(_))),
                Err(full) => {
                    error = Some(full);
                    break;
                }
            }
        }
        // etcd may have applied the very write that it refuses: so unknown it is.
        let error = error.expect("the quota is reached");
        assert_says(&error, ErrorKind::Unknown, &["space exceeded", "alarm disarm", "ompact"]);
        // Reads and deletes go on, or are refused for sure: 3.5.1 refuses whatever is a
        // transaction.
        let deleted = send(&store, Lane::Change, vec![Write::Delete(Key::new("k0"))], vec![]).await;
        let reads = send(&store, Lane::Watch, vec![], vec![read("k1")]).await;
        match reads {
            Ok(reply) => {
                assert!(matches!(reply.reads[..], [Found::Record(_)]), "{reply:?}");
                assert_eq!(deleted.expect("a delete").writes, [Outcome::Deleted]);
            }
            Err(error) => assert_says(&error, ErrorKind::Unavailable, &["space exceeded"]),
        }
    });
}

#[test]
fn fewer_operations_than_usual_are_rejected_with_the_next_step() {
    block_on(async {
        let server = Server::start(&["--max-txn-ops", "10"]);
        let store = connect(&server.fresh_url()).await;
        let writes = (0..20).map(|n| put(&format!("k{n}"), Expect::Absent, "1", false)).collect();
        let error = send(&store, Lane::Change, writes, vec![]).await.expect_err("too many");
        assert_says(&error, ErrorKind::Rejected, &["too many operations", "--max-txn-ops"]);
        assert_eq!(find(&store, "k0").await, None);
    });
}

#[test]
fn a_store_outlives_neither_its_runtime_nor_the_caller() {
    let url = common::shared();
    let store = block_on(connect(&url));
    // Its runtime is gone, and it says so instead of hanging or panicking.
    let error = block_on(send(&store, Lane::Beat, vec![create("k", "1")], vec![]));
    assert_says(&error.expect_err("no runtime"), ErrorKind::Unknown, &["runtime"]);
    let error = futures_less(EtcdStore::connect(&url)).expect_err("no runtime");
    assert_says(&error, ErrorKind::Rejected, &["tokio runtime"]);
}

/// Polls once, outside of any runtime.
fn futures_less<T>(future: impl Future<Output = T>) -> T {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match pin!(future).poll(&mut context) {
        std::task::Poll::Ready(value) => value,
        std::task::Poll::Pending => panic!("it should fail at once"),
    }
}

#[test]
fn beats_take_the_space_that_the_docs_say() {
    block_on(async {
        let server = Server::start(&[]);
        let store = connect(&server.fresh_url()).await;
        let size = || http::metric(server.port(), "etcd_mvcc_db_total_size_in_use_in_bytes");
        let value = format!("{{\"format\":1,\"padding\":\"{}\"}}", "x".repeat(170));
        let mut version = applied(&store, create("member/1", &value)).await;
        pause(300).await;
        let before = size();
        let beats = 2_000;
        for _ in 0..beats {
            version = applied(&store, beat("member/1", &version, &value)).await;
        }
        pause(300).await;
        let each = (size() - before) / beats;
        assert!((200..800).contains(&each), "{each} bytes a beat");
        let json = format!("{{\"revision\":{},\"physical\":true}}", version.as_str());
        http::post(server.port(), "/v3/kv/compaction", &json);
        // The server tells the figure after its next commit.
        for _ in 0..100 {
            if size() < before + 200_000 {
                break;
            }
            pause(100).await;
        }
        assert!(size() < before + 200_000, "compaction frees it: {before} and now {}", size());
        println!("{each} bytes a beat until compacted");
    });
}
