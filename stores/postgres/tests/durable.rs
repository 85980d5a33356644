//! What survives a crash of the server, and what needn't.

#![allow(clippy::expect_used, clippy::panic)] // A test fails by panicking, its helpers too.

mod common;

use std::time::Duration;

use common::{
    Server, application, applied, block_on, change, connect, create, find, version, write,
};
use incumbent_core::store::{ErrorKind, Write};
use incumbent_postgres::PostgresStore;

/// Tries until the server is back.
async fn written(store: &PostgresStore, create: impl Fn() -> Write) {
    for _ in 0..400 {
        match write(store, create()).await {
            Ok(_) => return,
            Err(error) => assert_ne!(error.kind, ErrorKind::Rejected, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the server never came back");
}

#[test]
fn what_need_not_survive_is_acknowledged_before_it_is_on_the_disk() {
    // What flushes by itself does so rarely.
    let server = Server::start(&["wal_writer_delay=10s", "bgwriter_delay=10s"]);
    block_on(async {
        let url = server.fresh_url();
        let store = connect(&url).await;
        let application = application(&url).await;
        let behind = "SELECT pg_current_wal_insert_lsn() > pg_current_wal_flush_lsn()";
        let is_behind = async || -> bool {
            let row = application.query_one(behind, &[]).await.expect("a row");
            row.get(0)
        };
        write(&store, create("member/m", 0)).await.expect("a write");
        let mut attempts = 0;
        let (mut flushed, mut left) = (0, 0);
        for _ in 0..20 {
            for durable in [true, false] {
                attempts += 1;
                let change = change("member/m", attempts - 1, attempts).durable(durable);
                assert_eq!(write(&store, change).await, Ok(applied(attempts)));
                match (durable, is_behind().await) {
                    (true, false) => flushed += 1,
                    (false, true) => left += 1,
                    _ => {}
                }
            }
        }
        // The server writes a word of its own now and then.
        assert!(flushed >= 15 && left >= 15, "{flushed} flushed and {left} left, of 20 each");
    });
}

#[test]
fn who_builds_on_it_by_a_write_that_survives_finds_both_or_neither() {
    let server = Server::start(&["wal_writer_delay=10s"]);
    block_on(async {
        let store = connect(&server.fresh_url()).await;
        write(&store, create("member/m", 0)).await.expect("a write");
        write(&store, create("lease/l", 1)).await.expect("a write");
        let mut lease = 1;
        for round in 1..=6 {
            let (member, closed, taken) = (format!("member/{round}"), round * 10, round * 10 + 1);
            write(&store, create(&member, closed - 1)).await.expect("a write");
            let closing = change(&member, closed - 1, closed).durable(false);
            assert_eq!(write(&store, closing).await, Ok(applied(closed)));
            let takes = round % 2 == 0;
            if takes {
                assert_eq!(
                    write(&store, change("lease/l", lease, taken)).await,
                    Ok(applied(taken))
                );
                lease = taken;
            }
            server.kill();
            server.resume();
            written(&store, || create(&format!("back/{round}"), round * 10 + 2)).await;
            let there = find(&store, "lease/l").await.expect("a lease").version;
            assert_eq!(
                there,
                version(lease),
                "an acknowledged take is gone, or is there once more"
            );
            let member = find(&store, &member).await.expect("a member").version;
            let known = [version(closed - 1), version(closed)];
            assert!(known.contains(&member), "{member:?}");
            assert!(!takes || member == version(closed), "taken, and the holder was never closed");
        }
    });
}
