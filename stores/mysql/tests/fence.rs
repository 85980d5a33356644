//! The fence: a stale leader's transaction can't commit.
#![allow(clippy::panic, clippy::expect_used, clippy::indexing_slicing)] // A test fails by panicking, its helpers too.

mod common;

use std::time::Duration;

use common::{
    application, applied, block_on, change, connect, create, find, prefix, read, run, send, shared,
    version, write,
};
use incumbent_core::store::{Expect, Lane, Outcome};
use incumbent_mysql::MysqlStore;
use incumbent_proving::store::leases::{LEASE, lease, take};
use mysql_async::Conn;
use mysql_async::prelude::Queryable;

/// A store, its lease in term 7, and two connections of an application.
async fn scene() -> (MysqlStore, Conn, Conn) {
    let url = shared();
    let store = connect(&url).await;
    let first = lease(Expect::Absent, 0, 7, Some("m"));
    assert_eq!(write(&store, first).await, Ok(applied(0)));
    (store, application(&url).await, application(&url).await)
}

/// The term that the fence finds, if it lets the transaction pass.
async fn fence(conn: &mut Conn, sql: &str, term: u64) -> Option<u64> {
    conn.exec_first(sql, ("c", LEASE, term)).await.expect("a fence")
}

#[test]
fn a_stale_leader_gets_no_row_after_a_take_over() {
    block_on(async {
        let (store, mut leader, _) = scene().await;
        let sql = store.fence_sql();
        run(&mut leader, "BEGIN").await;
        assert_eq!(fence(&mut leader, &sql, 7).await, Some(7));
        run(&mut leader, "COMMIT").await;
        // A snapshot from before the take-over doesn't deceive it.
        run(&mut leader, "START TRANSACTION WITH CONSISTENT SNAPSHOT").await;
        assert_eq!(write(&store, take(0, 1, 8)).await, Ok(applied(1)));
        assert_eq!(fence(&mut leader, &sql, 7).await, None);
        run(&mut leader, "ROLLBACK").await;
        for level in ["READ COMMITTED", "SERIALIZABLE"] {
            run(&mut leader, &format!("SET TRANSACTION ISOLATION LEVEL {level}")).await;
            run(&mut leader, "BEGIN").await;
            assert_eq!(fence(&mut leader, &sql, 7).await, None, "{level}");
            run(&mut leader, "ROLLBACK").await;
        }
        // Freed: the term is the same, but nobody holds it.
        let freed = lease(Expect::Version(version(1)), 2, 8, None);
        assert_eq!(write(&store, freed).await, Ok(applied(2)));
        assert_eq!(fence(&mut leader, &sql, 8).await, None);
        let row: Option<u64> =
            leader.exec_first(&sql, ("c", "lease/never", 8)).await.expect("a fence");
        assert_eq!(row, None);
    });
}

#[test]
fn a_take_is_refused_while_a_fenced_transaction_is_open() {
    block_on(async {
        let (store, mut leader, _) = scene().await;
        run(&mut leader, "BEGIN").await;
        assert_eq!(fence(&mut leader, &store.fence_sql(), 7).await, Some(7));
        // Alone, and together with others, which go through.
        assert_eq!(write(&store, take(0, 1, 8)).await, Ok(Outcome::Refused));
        let writes = vec![create("lease/other", 2), take(0, 3, 8), create("lease/third", 4)];
        let reply = send(&store, Lane::Change, writes, vec![read(LEASE)]).await;
        let reply = reply.expect("an exchange");
        assert_eq!(reply.writes, [applied(2), Outcome::Refused, applied(4)]);
        assert_eq!(reply.reads.len(), 1);
        assert_eq!(find(&store, LEASE).await.expect("a lease").version, version(0));
        // The leader commits in its term, and then the lease can be taken.
        run(&mut leader, "COMMIT").await;
        assert_eq!(write(&store, take(0, 5, 8)).await, Ok(applied(5)));
    });
}

#[test]
fn many_locked_leases_cost_one_wait() {
    block_on(async {
        let url = shared();
        let store = connect(&url).await;
        let writes = (0..20).map(|n| create(&format!("lease/{n:02}"), n)).collect();
        send(&store, Lane::Change, writes, vec![]).await.expect("creations");
        let mut leader = application(&url).await;
        // Otherwise the gaps between the rows would be locked too, and nothing could be created.
        run(&mut leader, "SET TRANSACTION ISOLATION LEVEL READ COMMITTED").await;
        run(&mut leader, "BEGIN").await;
        let all = format!(
            "SELECT * FROM {}records WHERE `key` LIKE 'lease/%' LOCK IN SHARE MODE",
            prefix(&url)
        );
        leader.query_drop(all).await.expect("locks");
        let mut writes: Vec<_> =
            (0..20).map(|n| change(&format!("lease/{n:02}"), n, n + 100)).collect();
        writes.push(create("lease/new", 200));
        let exchange = send(&store, Lane::Change, writes, vec![]);
        let reply = tokio::time::timeout(Duration::from_secs(5), exchange).await;
        let reply = reply.expect("one wait").expect("an exchange");
        assert!(reply.writes[..20].iter().all(|outcome| *outcome == Outcome::Refused));
        assert_eq!(reply.writes[20], applied(200));
    });
}

#[test]
fn a_take_that_waits_goes_through_when_the_transaction_ends() {
    block_on(async {
        let (store, mut leader, _) = scene().await;
        run(&mut leader, "BEGIN").await;
        assert_eq!(fence(&mut leader, &store.fence_sql(), 7).await, Some(7));
        let taking = tokio::runtime::Handle::current().spawn({
            let store = store.clone();
            async move { write(&store, take(0, 1, 8)).await }
        });
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(!taking.is_finished());
        run(&mut leader, "COMMIT").await;
        assert_eq!(taking.await.expect("no panic"), Ok(applied(1)));
    });
}

#[test]
fn a_fence_that_waits_for_a_take_sees_the_new_term() {
    block_on(async {
        let url = shared();
        let store = connect(&url).await;
        let first = lease(Expect::Absent, 0, 7, Some("m"));
        assert_eq!(write(&store, first).await, Ok(applied(0)));
        let (mut leader, mut other) = (application(&url).await, application(&url).await);
        // A take that is under way, done by hand so that it can be held open.
        run(&mut other, "BEGIN").await;
        let take = format!(
            "UPDATE {}records SET value = REPLACE(value, '\"term\":7', '\"term\":8'), stamp = 'x' \
             WHERE `key` = '{LEASE}'",
            prefix(&url)
        );
        run(&mut other, &take).await;
        let sql = store.fence_sql();
        let asking = tokio::runtime::Handle::current().spawn(async move {
            run(&mut leader, "BEGIN").await;
            fence(&mut leader, &sql, 7).await
        });
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert!(!asking.is_finished());
        run(&mut other, "COMMIT").await;
        assert_eq!(asking.await.expect("no panic"), None, "a stale leader passed");
    });
}

#[test]
fn a_plain_select_doesn_t_hold() {
    block_on(async {
        let (store, mut leader, _) = scene().await;
        let weak = store.fence_sql().replace(" LOCK IN SHARE MODE", "");
        run(&mut leader, "BEGIN").await;
        assert_eq!(fence(&mut leader, &weak, 7).await, Some(7));
        assert_eq!(write(&store, take(0, 1, 8)).await, Ok(applied(1)));
        // Another has taken over, and the snapshot still shows the old term: this is why.
        assert_eq!(fence(&mut leader, &weak, 7).await, Some(7));
        run(&mut leader, "COMMIT").await;
    });
}

#[test]
fn a_beat_waits_neither_for_a_fenced_transaction_nor_for_a_take_that_does() {
    block_on(async {
        let (store, mut leader, _) = scene().await;
        assert_eq!(write(&store, create("member/m", 10)).await, Ok(applied(10)));
        run(&mut leader, "BEGIN").await;
        assert_eq!(fence(&mut leader, &store.fence_sql(), 7).await, Some(7));
        let taking = tokio::runtime::Handle::current().spawn({
            let store = store.clone();
            async move { write(&store, take(0, 1, 8)).await }
        });
        tokio::time::sleep(Duration::from_millis(100)).await;
        for attempt in 11..20 {
            let beat = vec![change("member/m", attempt - 1, attempt)];
            let reply = send(&store, Lane::Beat, beat, vec![read(LEASE)]).await.expect("a beat");
            assert_eq!(reply.writes, [applied(attempt)]);
        }
        assert!(!taking.is_finished(), "the take still waits");
        assert_eq!(taking.await.expect("no panic"), Ok(Outcome::Refused));
    });
}
