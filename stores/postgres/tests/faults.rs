//! What happens when the server, the network or somebody else's lock is in the way.

#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // A test fails by panicking, its helpers too.

mod common;

use std::time::Duration;

use common::{
    Server, application, applied, beat, block_on, change, connect, create, find, fresh, read, send,
    shared, through, version, write,
};
use incumbent_core::store::{ErrorKind, Found, Key, Lane, Outcome, Reply, StoreError, Write};
use incumbent_postgres::PostgresStore;
use incumbent_proving::Proxy;

const LANES: [Lane; 3] = [Lane::Beat, Lane::Change, Lane::Watch];

/// An exchange as the library sends it: given up after so long.
async fn in_time(
    store: &PostgresStore,
    lane: Lane,
    writes: Vec<Write>,
    span: Duration,
) -> Option<Result<Reply, StoreError>> {
    tokio::time::timeout(span, send(store, lane, writes, vec![read("k")])).await.ok()
}

/// Tries until an exchange goes through, as the library does, and says how often it had to.
async fn until_served(store: &PostgresStore, lane: Lane, span: Duration) -> usize {
    for tries in 0..400 {
        match in_time(store, lane, vec![], span).await {
            Some(Ok(_)) => return tries,
            Some(Err(error)) => assert_ne!(error.kind, ErrorKind::Rejected, "{error}"),
            None => {}
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the {lane:?} lane was never served again");
}

#[test]
fn a_killed_server_loses_nothing_that_was_acknowledged_and_is_found_again() {
    // With fsync, as it should be.
    let server = Server::start(&[]);
    block_on(async {
        let store = connect(&server.fresh_url()).await;
        assert!(store.facts().fsync);
        write(&store, create("k", 0)).await.expect("a write");
        let mut last = 0;
        for round in 1..=3 {
            for attempt in round * 100..round * 100 + 20 {
                let written = write(&store, change("k", last, attempt)).await;
                assert_eq!(written, Ok(applied(attempt)));
                last = attempt;
            }
            server.kill();
            for lane in LANES {
                let writes = if lane == Lane::Watch { vec![] } else { vec![beat("k", 1, 9999)] };
                // What was sent before the end of its connection was noticed may have arrived.
                let error = send(&store, lane, writes, vec![]).await.expect_err("no server");
                assert_ne!(error.kind, ErrorKind::Rejected, "{error}");
            }
            server.resume();
            for lane in LANES {
                until_served(&store, lane, Duration::from_secs(5)).await;
            }
            let record = find(&store, "k").await.expect("a record");
            assert_eq!(record.version, version(last), "an acknowledged write is gone");
        }
    });
}

#[test]
fn a_stopped_server_is_given_up_and_found_again() {
    let server = Server::start(&["fsync=off"]);
    block_on(async {
        let store = connect(&server.fresh_url()).await;
        write(&store, create("k", 0)).await.expect("a write");
        for lane in LANES {
            until_served(&store, lane, Duration::from_secs(5)).await;
        }
        server.pause(true);
        let second = Duration::from_secs(1);
        for round in 0..4 {
            for lane in LANES {
                let writes = vec![beat("k", 0, 10 + round)];
                let writes = if lane == Lane::Watch { vec![] } else { writes };
                let answer = in_time(&store, lane, writes, second).await;
                assert!(!matches!(answer, Some(Ok(_))), "{answer:?}");
            }
        }
        server.pause(false);
        for lane in LANES {
            until_served(&store, lane, second).await;
        }
        // What was sent over open connections may have landed, once; beats have two of them.
        let record = find(&store, "k").await.expect("a record");
        assert!([0, 10, 11].map(version).contains(&record.version), "{record:?}");
    });
}

#[test]
fn a_half_open_connection_is_replaced_in_time_for_another_beat() {
    let server = Server::start(&["fsync=off"]);
    block_on(async {
        let proxy = Proxy::to(server.port()).await;
        let store = connect(&through(&proxy, &fresh())).await;
        let span = Duration::from_millis(500);
        for lane in LANES {
            until_served(&store, lane, Duration::from_secs(5)).await;
        }
        for lane in LANES {
            // Nothing comes through any more on what is open, and nobody says so (F27).
            proxy.forget_connections();
            assert!(in_time(&store, lane, vec![], span).await.is_none());
            let tries = until_served(&store, lane, span).await;
            // An attempt to connect that was under way hangs for 10 s, which are 20 tries.
            assert!(tries <= 10, "{tries} tries");
        }
    });
}

#[test]
fn cut_connections_are_replaced_at_once() {
    let server = Server::start(&["fsync=off"]);
    block_on(async {
        let proxy = Proxy::to(server.port()).await;
        let store = connect(&through(&proxy, &fresh())).await;
        assert_eq!(write(&store, create("k", 0)).await, Ok(applied(0)));
        for attempt in 1..30 {
            proxy.cut();
            // Once the store has noticed, nothing is unknown: a new connection is opened first.
            tokio::time::sleep(Duration::from_millis(20)).await;
            let lane = if attempt % 2 == 0 { Lane::Beat } else { Lane::Change };
            let reply = send(&store, lane, vec![beat("k", attempt - 1, attempt)], vec![]).await;
            assert_eq!(reply.expect("a write").writes, [applied(attempt)]);
        }
    });
}

#[test]
fn a_write_that_was_under_way_when_the_connection_broke_is_unknown() {
    let server = Server::start(&["fsync=off"]);
    block_on(async {
        let proxy = Proxy::to(server.port()).await;
        let schema = fresh();
        let store = connect(&format!("{}&lock_timeout=5000", through(&proxy, &schema))).await;
        assert_eq!(write(&store, create("k", 0)).await, Ok(applied(0)));
        let mut other = application(&server.url("postgres")).await;
        let transaction = other.transaction().await.expect("a transaction");
        let lock = format!("SELECT FROM {schema}.incumbent_records FOR UPDATE");
        transaction.execute(&lock, &[]).await.expect("a lock");
        let waiting = tokio::runtime::Handle::current().spawn({
            let store = store.clone();
            async move { write(&store, change("k", 0, 1)).await }
        });
        tokio::time::sleep(Duration::from_millis(200)).await;
        proxy.cut();
        let error = waiting.await.expect("no panic").expect_err("a broken connection");
        assert_eq!(error.kind, ErrorKind::Unknown, "{error}");
        transaction.rollback().await.expect("the end");
        // And rightly so: the server didn't notice, and did it.
        for _ in 0..100 {
            if find(&store, "k").await.expect("a record").version == version(1) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("this server noticed; the outcome was unknown all the same");
    });
}

#[test]
fn a_locked_row_refuses_a_change_and_delays_no_beat() {
    block_on(async {
        let url = format!("{}&lock_timeout=300", shared());
        let store = connect(&url).await;
        for (attempt, key) in (0..).zip(["k", "l", "m"]) {
            assert_eq!(write(&store, create(key, attempt)).await, Ok(applied(attempt)));
        }
        let schema = url.split("schema=").nth(1).and_then(|rest| rest.split('&').next());
        let table = format!("{}.incumbent_records", schema.expect("a schema"));
        let mut other = application(&url).await;
        let transaction = other.transaction().await.expect("a transaction");
        let lock = format!("SELECT FROM {table} WHERE key = 'l' FOR UPDATE");
        transaction.execute(&lock, &[]).await.expect("a lock");
        assert_eq!(write(&store, change("l", 1, 10)).await, Ok(Outcome::Refused));
        let writes = vec![
            change("k", 0, 11),
            change("l", 1, 12),
            Write::Delete(Key::new("m")),
            create("n", 13),
        ];
        let reply = send(&store, Lane::Change, writes, vec![read("l")]).await.expect("an exchange");
        let refused = Outcome::Refused;
        assert_eq!(reply.writes, [applied(11), refused.clone(), Outcome::Deleted, applied(13)]);
        assert!(matches!(&reply.reads[0], Found::Record(record) if record.version == version(1)));
        // A delete of what is locked says that it wasn't done.
        let writes = vec![Write::Delete(Key::new("l")), create("o", 14)];
        let reply = send(&store, Lane::Change, writes, vec![]).await.expect("an exchange");
        assert_eq!(reply.writes, [refused, applied(14)]);
        // A beat of the locked row is unavailable after a while, others aren't touched.
        let error = send(&store, Lane::Beat, vec![beat("l", 1, 15)], vec![]).await;
        let error = error.expect_err("locked");
        assert_eq!(error.kind, ErrorKind::Unavailable, "{error}");
        let reply = send(&store, Lane::Beat, vec![beat("k", 11, 16)], vec![]).await;
        assert_eq!(reply.expect("a beat").writes, [applied(16)]);
        transaction.rollback().await.expect("the end");
        assert_eq!(write(&store, change("l", 1, 17)).await, Ok(applied(17)));
    });
}

#[test]
fn a_locked_table_makes_everything_unavailable_and_nothing_hang() {
    block_on(async {
        let url = format!("{}&lock_timeout=200", shared());
        let store = connect(&url).await;
        assert_eq!(write(&store, create("k", 0)).await, Ok(applied(0)));
        let schema = url.split("schema=").nth(1).and_then(|rest| rest.split('&').next());
        let mut other = application(&url).await;
        let transaction = other.transaction().await.expect("a transaction");
        let lock = format!("LOCK TABLE {}.incumbent_records", schema.expect("a schema"));
        transaction.batch_execute(&lock).await.expect("a lock");
        for lane in LANES {
            let writes = if lane == Lane::Watch { vec![] } else { vec![change("k", 0, 1)] };
            let answer = send(&store, lane, writes, vec![read("k")]).await;
            assert_eq!(answer.expect_err("locked").kind, ErrorKind::Unavailable);
        }
        transaction.rollback().await.expect("the end");
        assert_eq!(write(&store, change("k", 0, 2)).await, Ok(applied(2)));
    });
}

#[test]
fn tables_dropped_underneath_are_made_again() {
    block_on(async {
        let url = shared();
        let store = connect(&url).await;
        assert_eq!(write(&store, create("k", 0)).await, Ok(applied(0)));
        let schema = url.split("schema=").nth(1).expect("a schema");
        let drop = format!("DROP SCHEMA {schema} CASCADE");
        application(&url).await.batch_execute(&drop).await.expect("a drop");
        let error = write(&store, change("k", 0, 1)).await.expect_err("no table");
        assert_eq!(error.kind, ErrorKind::Unavailable, "{error}");
        assert_eq!(write(&store, change("k", 0, 2)).await, Ok(Outcome::Refused));
        assert_eq!(find(&store, "k").await, None);
        for lane in LANES {
            until_served(&store, lane, Duration::from_secs(5)).await;
        }
        assert_eq!(write(&store, create("k", 3)).await, Ok(applied(3)));
    });
}

#[test]
fn an_isolation_level_of_the_role_s_changes_nothing() {
    // F21: under SERIALIZABLE a lost race would be an error instead of a refusal.
    let server = Server::start(&["fsync=off", "default_transaction_isolation=serializable"]);
    block_on(async {
        let url = server.fresh_url();
        let (one, two) = (connect(&url).await, connect(&url).await);
        assert_eq!(write(&one, create("k", 0)).await, Ok(applied(0)));
        let mut last = 0;
        for round in 1..40 {
            let (a, b) = (round * 2, round * 2 + 1);
            let (first, second) =
                tokio::join!(write(&one, change("k", last, a)), write(&two, change("k", last, b)));
            last = match (first, second) {
                (Ok(Outcome::Applied(_)), Ok(Outcome::Refused)) => a,
                (Ok(Outcome::Refused), Ok(Outcome::Applied(_))) => b,
                other => panic!("{other:?}"),
            };
        }
    });
}

#[test]
fn exchanges_that_are_given_up_leave_the_lane_usable() {
    // F18, at every moment of an exchange.
    block_on(async {
        let store = connect(&shared()).await;
        for attempt in 0..200 {
            let span = Duration::from_micros(attempt * 20);
            let lane = if attempt % 2 == 0 { Lane::Beat } else { Lane::Change };
            let writes = vec![create(&format!("k{attempt}"), attempt)];
            let _ = tokio::time::timeout(span, send(&store, lane, writes, vec![])).await;
        }
        for (attempt, lane) in (1000..).zip([Lane::Beat, Lane::Change]) {
            let writes = vec![create(&format!("end{attempt}"), attempt)];
            let reply = send(&store, lane, writes, vec![read("k1")]).await.expect("a write");
            assert_eq!(reply.writes, [applied(attempt)]);
        }
    });
}
