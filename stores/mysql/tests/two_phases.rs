//! The fence in transactions of two phases, whose locks don't last.
#![allow(clippy::expect_used, clippy::panic)] // A test fails by panicking, its helpers too.

mod common;

use common::{application, applied, block_on, connect, prefix, run, shared, write};
use incumbent_core::store::Outcome;
use incumbent_mysql::MysqlStore;
use incumbent_proving::store::leases::{LEASE, hold, take};
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Error};

/// A store with a lease in term 7, a leader's connection with a table to work on, and their prefix.
async fn scene() -> (MysqlStore, Conn, String) {
    let url = shared();
    let store = connect(&url).await;
    hold(&store).await;
    let (mut leader, prefix) = (application(&url).await, prefix(&url).to_owned());
    run(&mut leader, &format!("CREATE TABLE {prefix}work (term BIGINT) ENGINE = InnoDB")).await;
    (store, leader, prefix)
}

async fn is_mariadb(leader: &mut Conn) -> bool {
    let version: Option<String> = leader.query_first("SELECT VERSION()").await.expect("a version");
    version.expect("a version").contains("MariaDB")
}

async fn assert_term(leader: &mut Conn, prefix: &str) -> Result<(), Error> {
    leader.exec_drop(format!("CALL {prefix}assert('c', 'scheduler', 7)"), ()).await
}

#[test]
fn nothing_is_asserted_in_an_xa_transaction() {
    block_on(async {
        let (store, mut leader, prefix) = scene().await;
        if !is_mariadb(&mut leader).await {
            // MySQL isn't asked whether there is one: the page says so.
            assert_term(&mut leader, &prefix).await.expect("it is held");
            return;
        }
        let xid = format!("'{prefix}'");
        for level in ["READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
            let set = format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}");
            run(&mut leader, &set).await;
            run(&mut leader, &format!("XA START {xid}")).await;
            let refused = assert_term(&mut leader, &prefix).await;
            let Err(Error::Server(said)) = refused else { panic!("{level}: {refused:?}") };
            assert_eq!(said.state, "IN002", "{level}: {said}");
            // It is still the application's to end, in its own way.
            run(&mut leader, &format!("INSERT INTO {prefix}work VALUES (7)")).await;
            run(&mut leader, &format!("XA END {xid}")).await;
            run(&mut leader, &format!("XA ROLLBACK {xid}")).await;

            // Other transactions are asked in the same way, and stay what they are.
            run(&mut leader, "BEGIN").await;
            run(&mut leader, &format!("INSERT INTO {prefix}work VALUES (7)")).await;
            assert_term(&mut leader, &prefix).await.expect("it is held");
            assert_eq!(write(&store, take(0, 1, 8)).await, Ok(Outcome::Refused), "{level}");
            run(&mut leader, "ROLLBACK").await;
            let count = format!("SELECT count(*) FROM {prefix}work");
            let found: Option<u64> = leader.query_first(count).await.expect("an answer");
            assert_eq!(found, Some(0), "{level}: nothing was committed by the way");
        }
    });
}

#[test]
fn xa_prepare_drops_the_lock_of_the_query() {
    // The trap that the page warns of.
    block_on(async {
        let (store, mut leader, prefix) = scene().await;
        let xid = format!("'{prefix}'");
        run(&mut leader, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED").await;
        run(&mut leader, &format!("XA START {xid}")).await;
        let row: Option<u64> =
            leader.exec_first(store.fence_sql(), ("c", LEASE, 7)).await.expect("a fence");
        assert_eq!(row, Some(7));
        run(&mut leader, &format!("INSERT INTO {prefix}work VALUES (7)")).await;
        run(&mut leader, &format!("XA END {xid}")).await;
        assert_eq!(write(&store, take(0, 1, 8)).await, Ok(Outcome::Refused));
        run(&mut leader, &format!("XA PREPARE {xid}")).await;
        assert_eq!(write(&store, take(0, 2, 8)).await, Ok(applied(2)));
        leader.query_drop(format!("XA COMMIT {xid}")).await.expect("stale: this is why");
    });
}
