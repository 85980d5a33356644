//! The fence: a stale leader's transaction can't commit.

#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // A test fails by panicking, its helpers too.

mod common;

use std::time::Duration;

use common::{
    application, applied, beat, block_on, connect, create, find, send, shared, version, write,
};
use incumbent_core::store::{Expect, Lane, Outcome};
use incumbent_postgres::PostgresStore;
use incumbent_proving::store::leases::{LEASE, lease, take};
use tokio_postgres::{Client, IsolationLevel};

/// A store, its lease in term 7, and two connections of an application.
async fn scene() -> (PostgresStore, Client, Client) {
    let url = format!("{}&lock_timeout=400", shared());
    let store = connect(&url).await;
    let first = lease(Expect::Absent, 0, 7, Some("m"));
    assert_eq!(write(&store, first).await, Ok(applied(0)));
    (store, application(&url).await, application(&url).await)
}

#[test]
fn a_stale_leader_gets_no_row_after_a_take_over() {
    block_on(async {
        let (store, mut leader, _) = scene().await;
        let fence = store.fence_sql();
        let transaction = leader.transaction().await.expect("a transaction");
        let row = transaction.query_opt(&fence, &[&"c", &LEASE, &7_i64]).await.expect("a fence");
        assert_eq!(row.expect("the term stands").get::<_, i64>("term"), 7);
        transaction.commit().await.expect("a commit");
        assert_eq!(write(&store, take(0, 1, 8)).await, Ok(applied(1)));
        for level in [IsolationLevel::ReadCommitted, IsolationLevel::Serializable] {
            let transaction = leader.build_transaction().isolation_level(level).start().await;
            let transaction = transaction.expect("a transaction");
            let row = transaction.query_opt(&fence, &[&"c", &LEASE, &7_i64]).await;
            assert!(row.expect("a fence").is_none());
        }
        // Freed: the term is the same, but nobody holds it.
        let freed = lease(Expect::Version(version(1)), 2, 8, None);
        assert_eq!(write(&store, freed).await, Ok(applied(2)));
        let row = leader.query_opt(&fence, &[&"c", &LEASE, &8_i64]).await.expect("a fence");
        assert!(row.is_none());
        let row = leader.query_opt(&fence, &[&"c", &"lease/never", &8_i64]).await;
        assert!(row.expect("a fence").is_none());
    });
}

#[test]
fn a_take_waits_for_an_open_fenced_transaction_and_is_refused_in_the_end() {
    block_on(async {
        let (store, mut leader, _) = scene().await;
        let transaction = leader.transaction().await.expect("a transaction");
        let fence = store.fence_sql();
        let row = transaction.query_opt(&fence, &[&"c", &LEASE, &7_i64]).await.expect("a fence");
        assert!(row.is_some());
        // Alone, and together with others, which go through.
        assert_eq!(write(&store, take(0, 1, 8)).await, Ok(Outcome::Refused));
        let writes = vec![create("lease/other", 2), take(0, 3, 8), create("lease/third", 4)];
        let reply = send(&store, Lane::Change, writes, vec![common::read(LEASE)]).await;
        let reply = reply.expect("an exchange");
        assert_eq!(reply.writes, [applied(2), Outcome::Refused, applied(4)]);
        assert_eq!(find(&store, LEASE).await.expect("a lease").version, version(0));
        transaction.commit().await.expect("the leader commits in its term");
        assert_eq!(write(&store, take(0, 5, 8)).await, Ok(applied(5)));
    });
}

#[test]
fn a_take_that_waits_goes_through_when_the_transaction_ends() {
    block_on(async {
        let (store, mut leader, _) = scene().await;
        let transaction = leader.transaction().await.expect("a transaction");
        let fence = store.fence_sql();
        transaction.query_one(&fence, &[&"c", &LEASE, &7_i64]).await.expect("the term stands");
        let taking = tokio::runtime::Handle::current().spawn({
            let store = store.clone();
            async move { write(&store, take(0, 1, 8)).await }
        });
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(!taking.is_finished());
        transaction.commit().await.expect("a commit");
        assert_eq!(taking.await.expect("no panic"), Ok(applied(1)));
    });
}

#[test]
fn a_fence_that_waits_for_a_take_sees_the_new_term() {
    block_on(async {
        let (store, leader, other) = scene().await;
        let records = store.fence_sql();
        let table = records.split(" FROM ").nth(1).and_then(|rest| rest.split(' ').next());
        let table = table.expect("a table").to_owned();
        // A take that is under way, done by hand so that it can be held open.
        other.batch_execute("BEGIN").await.expect("a transaction");
        let sql = format!(
            "UPDATE {table} SET value = replace(value, '\"term\":7', '\"term\":8'), stamp = 'x' \
             WHERE key = '{LEASE}'"
        );
        other.batch_execute(&sql).await.expect("a take");
        let fence = store.fence_sql();
        let asking = tokio::runtime::Handle::current().spawn(async move {
            let row = leader.query_opt(&fence, &[&"c", &LEASE, &7_i64]).await;
            row.map(|row| row.is_some())
        });
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(!asking.is_finished());
        other.batch_execute("COMMIT").await.expect("a commit");
        assert!(!asking.await.expect("no panic").expect("a fence"), "a stale leader passed");
    });
}

#[test]
fn weaker_locks_don_t_hold() {
    block_on(async {
        let (store, mut leader, _) = scene().await;
        let weak = store.fence_sql().replace("FOR SHARE", "FOR KEY SHARE");
        let transaction = leader.transaction().await.expect("a transaction");
        transaction.query_one(&weak, &[&"c", &LEASE, &7_i64]).await.expect("a row");
        assert_eq!(write(&store, take(0, 1, 8)).await, Ok(applied(1)));
        transaction.commit().await.expect("a stale leader commits: this is why");
    });
}

#[test]
fn the_right_to_update_one_column_is_enough_for_a_fence() {
    block_on(async {
        let (store, _, owner) = scene().await;
        let fence = store.fence_sql();
        let table = fence.split(" FROM ").nth(1).and_then(|rest| rest.split(' ').next());
        let table = table.expect("a table");
        let schema = table.split('.').next().expect("a schema");
        let role = format!("worker_{}", common::fresh());
        let run = async |sql: String| owner.batch_execute(&sql).await.expect("it runs");
        run(format!("CREATE ROLE {role}; GRANT USAGE ON SCHEMA {schema} TO {role}")).await;
        run(format!("GRANT SELECT ON {table} TO {role}; SET ROLE {role}")).await;
        let refused = owner.query_opt(&fence, &[&"c", &LEASE, &7_i64]).await;
        assert!(refused.is_err(), "a locking read needs more than SELECT");
        run(format!("RESET ROLE; GRANT UPDATE (written) ON {table} TO {role}; SET ROLE {role}"))
            .await;
        let row = owner.query_opt(&fence, &[&"c", &LEASE, &7_i64]).await.expect("a fence");
        assert!(row.is_some());
        run(format!("RESET ROLE; DROP OWNED BY {role}; DROP ROLE {role}")).await;
    });
}

#[test]
fn a_beat_doesn_t_wait_for_a_fenced_transaction_nor_for_a_take_that_does() {
    block_on(async {
        let (store, mut leader, _) = scene().await;
        assert_eq!(write(&store, create("member/m", 10)).await, Ok(applied(10)));
        let transaction = leader.transaction().await.expect("a transaction");
        let fence = store.fence_sql();
        transaction.query_one(&fence, &[&"c", &LEASE, &7_i64]).await.expect("the term stands");
        let taking = tokio::runtime::Handle::current().spawn({
            let store = store.clone();
            async move { write(&store, take(0, 1, 8)).await }
        });
        for attempt in 11..40 {
            let beats = vec![beat("member/m", attempt - 1, attempt)];
            let beating = send(&store, Lane::Beat, beats, vec![common::read(LEASE)]);
            let reply = tokio::time::timeout(Duration::from_millis(300), beating).await;
            let reply = reply.expect("a beat doesn't wait").expect("a beat");
            assert_eq!(reply.writes, [applied(attempt)]);
        }
        assert_eq!(taking.await.expect("no panic"), Ok(Outcome::Refused));
        drop(transaction);
    });
}
