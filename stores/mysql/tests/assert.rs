//! The fence's procedure: one statement that fails by itself.
#![allow(clippy::panic, clippy::expect_used, clippy::indexing_slicing)] // A test fails by panicking, its helpers too.

mod common;

use std::time::Duration;

use common::{
    Server, application, applied, block_on, change, connect, create, prefix, run, shared, version,
    with_value, write,
};
use incumbent::{DutyId, clock};
use incumbent_core::keys;
use incumbent_core::store::{Expect, Key, Outcome, Write};
use incumbent_mysql::{MysqlOptions, MysqlStore};
use incumbent_proving::store::leases::{
    MEMBER, hold, hold_in, lease, member_value, odd_clusters, odd_leases, take, take_at_last,
};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error};

/// An application's connection, and the names of its procedures.
struct Leader {
    conn: Conn,
    prefix: String,
}

impl Leader {
    async fn new(url: &str) -> Self {
        Self { conn: application(url).await, prefix: prefix(url).to_owned() }
    }

    async fn assert_in(&mut self, cluster: &str, lease: &str, term: i64) -> Result<(), Error> {
        let sql = format!("CALL {}assert(?, ?, ?)", self.prefix);
        self.conn.exec_drop(sql, (cluster, lease, term)).await
    }

    async fn assert(&mut self, term: i64) -> Result<(), Error> {
        self.assert_in("c", "scheduler", term).await
    }

    /// What is said of a term that is over.
    async fn refusal(&mut self, lease: &str, term: i64) -> String {
        said(self.assert_in("c", lease, term).await)
    }

    async fn run(&mut self, sql: &str) {
        run(&mut self.conn, sql).await;
    }
}

fn said(result: Result<(), Error>) -> String {
    match result.expect_err("the term is over") {
        Error::Server(said) => {
            assert_eq!(said.state, "IN001", "{said}");
            said.message
        }
        other => panic!("{other}"),
    }
}

/// A store, its lease in term 7, and a connection of an application.
async fn scene() -> (MysqlStore, Leader) {
    let url = shared();
    let store = connect(&url).await;
    hold(&store).await;
    (store, Leader::new(&url).await)
}

#[test]
fn a_term_that_is_over_fails_by_itself() {
    block_on(async {
        let (store, mut leader) = scene().await;
        leader.assert(7).await.expect("it is held");
        assert_eq!(
            leader.refusal("scheduler", 6).await,
            "incumbent: term 6 of lease \"scheduler\" is over: found term 7, held by \"node-m\""
        );
        // A snapshot from before the take-over doesn't deceive it.
        leader.run("START TRANSACTION WITH CONSISTENT SNAPSHOT").await;
        assert_eq!(write(&store, take(0, 1, 8)).await, Ok(applied(1)));
        let said = leader.refusal("scheduler", 7).await;
        assert!(said.ends_with("found term 8, held by \"node-m\""), "{said}");
        leader.run("ROLLBACK").await;
        for level in ["READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
            leader.run(&format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}")).await;
            leader.run("BEGIN").await;
            leader.refusal("scheduler", 7).await;
            leader.run("ROLLBACK").await;
        }
        let freed = lease(Expect::Version(version(1)), 2, 8, None);
        assert_eq!(write(&store, freed).await, Ok(applied(2)));
        assert!(leader.refusal("scheduler", 8).await.ends_with("found term 8, held by nobody"));
        // The longest message that there is.
        let long = "☃".repeat(1000);
        let said = leader.refusal(&long, i64::MAX).await;
        assert!(said.ends_with("found no such lease") && said.chars().count() <= 128, "{said}");
        for arguments in ["'c', 'scheduler', NULL", "'c', NULL, 8", "NULL, 'scheduler', 8"] {
            let call = format!("CALL {}assert({arguments})", leader.prefix);
            said_of(leader.conn.query_drop(&call).await, arguments);
        }
    });
}

fn said_of(result: Result<(), Error>, what: &str) {
    assert!(said(result).contains("is over"), "{what}");
}

#[test]
fn o54_a_lease_that_was_deleted_since_the_snapshot_asserts_nothing() {
    block_on(async {
        let (store, mut leader) = scene().await;
        leader.run("START TRANSACTION WITH CONSISTENT SNAPSHOT").await;
        leader.assert(7).await.expect("it is held");
        leader.run("ROLLBACK").await;
        leader.run("START TRANSACTION WITH CONSISTENT SNAPSHOT").await;
        let gone = Write::Delete(Key::new("lease/scheduler"));
        write(&store, gone).await.expect("it is deleted");
        let said = leader.refusal("scheduler", 7).await;
        assert!(said.ends_with("found no such lease"), "{said}");
        leader.run("ROLLBACK").await;
    });
}

#[test]
fn a_member_that_is_closed_or_gone_asserts_nothing_more() {
    block_on(async {
        let (store, mut leader) = scene().await;
        for (from, state) in [(100, "expired"), (101, "left"), (102, "evicted")] {
            let closed = Expect::Version(version(from));
            let closed = with_value(MEMBER, closed, from + 1, &member_value(state));
            assert_eq!(write(&store, closed).await, Ok(applied(from + 1)));
            let said = leader.refusal("scheduler", 7).await;
            assert!(said.ends_with("held by \"node-m\", whose membership is over"), "{said}");
        }
        write(&store, Write::Delete(Key::new(MEMBER))).await.expect("it is deleted");
        leader.refusal("scheduler", 7).await;
    });
}

#[test]
fn a_take_waits_for_the_transaction_and_beats_never_do() {
    block_on(async {
        let (store, mut leader) = scene().await;
        for (level, attempt) in [("REPEATABLE READ", 1), ("SERIALIZABLE", 10)] {
            leader.run(&format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}")).await;
            leader.run("BEGIN").await;
            leader.assert(7).await.expect("it is held");
            assert_eq!(write(&store, take(0, attempt, 8)).await, Ok(Outcome::Refused));
            let since = clock::now();
            let from = if attempt == 1 { 100 } else { 101 };
            let beat = Expect::Version(version(from));
            let beat = with_value(MEMBER, beat, from + 1, &member_value("alive"));
            assert_eq!(write(&store, beat).await, Ok(applied(from + 1)), "{level}");
            assert!(
                clock::now().since(since) < Duration::from_millis(900),
                "{level}: a beat waited"
            );
            leader.run("COMMIT").await;
        }
        assert_eq!(write(&store, take(0, 20, 8)).await, Ok(applied(20)));
    });
}

#[test]
fn a_swallowed_error_is_no_fence() {
    // The trap that the page warns of.
    block_on(async {
        let (_store, mut leader) = scene().await;
        let table = format!("{}work", leader.prefix);
        leader.run(&format!("CREATE TABLE {table} (term BIGINT) ENGINE = InnoDB")).await;
        leader.run("BEGIN").await;
        leader.refusal("scheduler", 6).await;
        leader.run(&format!("INSERT INTO {table} VALUES (6)")).await;
        leader.run("COMMIT").await;
        let count = format!("SELECT count(*) FROM {table}");
        let found: Option<u64> = leader.conn.query_first(count).await.expect("an answer");
        assert_eq!(found, Some(1), "the server commits what an application lets it");
    });
}

#[test]
fn names_become_the_same_keys_in_sql_and_in_the_program() {
    block_on(async {
        let (_, mut leader) = scene().await;
        let leases = odd_leases(2, |_, name| name);
        let call = format!("CALL {}key('lease/', ?, @place)", leader.prefix);
        for lease in &leases {
            leader.conn.exec_drop(&call, (lease.as_str(),)).await.expect("a key");
            let key: Option<String> = leader.conn.query_first("SELECT @place").await.expect("it");
            assert_eq!(key.as_deref(), Some(keys::lease(lease).as_str()), "{lease}");
        }
    });
}

#[test]
fn long_clusters_and_duties_are_found() {
    block_on(async {
        let (store, mut leader) = scene().await;
        let duty = DutyId::new("projections", "orders, eu").expect("a duty").lease();
        for (number, cluster) in odd_clusters(255).iter().enumerate() {
            hold_in(&store, cluster, &duty, 1000 + 2 * number as u64).await;
            let held = leader.assert_in(cluster, duty.as_str(), 3).await;
            held.unwrap_or_else(|error| panic!("{cluster}: {error}"));
            said(leader.assert_in(cluster, duty.as_str(), 2).await);
        }
    });
}

#[test]
fn a_user_without_rights_on_tables_may_assert_with_the_binary_log_on() {
    let server = Server::start(&["--log-bin", "--server-id=1"]);
    block_on(async {
        let mut root = application(&server.url("root")).await;
        run(&mut root, "CREATE USER app@'%'").await;
        run(&mut root, "CREATE USER maker@'%'").await;
        // No SUPER: it couldn't make a function here.
        run(&mut root, "GRANT CREATE, CREATE VIEW, CREATE ROUTINE ON app.* TO maker@'%'").await;
        run(&mut root, "GRANT SELECT, INSERT, UPDATE, DELETE ON app.* TO maker@'%'").await;
        let url = format!("{}?prefix=x_", server.url("maker"));
        let store = connect(&url).await;
        hold(&store).await;
        let options = MysqlOptions::parse(&format!("{}?prefix=x_", server.url("app")));
        let grants = options.expect("options").grants_sql();
        let execute = grants.lines().last().expect("a line");
        assert!(execute.starts_with("GRANT EXECUTE ON PROCEDURE"), "{grants}");
        run(&mut root, execute).await;

        let mut app = Leader { conn: application(&server.url("app")).await, prefix: "x_".into() };
        app.run("BEGIN").await;
        app.assert(7).await.expect("it is held");
        assert_eq!(write(&store, take(0, 1, 8)).await, Ok(Outcome::Refused));
        app.run("COMMIT").await;
        app.refusal("scheduler", 6).await;
        let denied = app.conn.query_drop("SELECT value FROM x_records").await;
        assert!(matches!(denied, Err(Error::Server(said)) if said.code == 1142));
    });
}

#[test]
fn tables_of_a_former_version_get_the_procedure_from_who_may_make_it() {
    let server = Server::start(&[]);
    block_on(async {
        let mut root = application(&server.url("root")).await;
        let url = |user: &str| format!("{}?prefix=x_", server.url(user));
        let store = connect(&url("root")).await;
        run(&mut root, "DROP PROCEDURE app.x_assert").await;
        run(&mut root, "DROP PROCEDURE app.x_key").await;
        run(&mut root, "CREATE USER poor@'%'").await;
        for table in ["records", "meta", "leases", "members"] {
            let sql = format!("GRANT SELECT, INSERT, UPDATE, DELETE ON app.x_{table} TO poor@'%'");
            run(&mut root, &sql).await;
        }
        let poor = connect(&url("poor")).await;
        assert_eq!(write(&poor, create("k", 1)).await, Ok(applied(1)));
        let count = "SELECT count(*) FROM information_schema.ROUTINES WHERE ROUTINE_NAME LIKE 'x%'";
        let found: Option<u64> = root.query_first(count).await.expect("an answer");
        assert_eq!(found, Some(0));
        connect(&url("root")).await;
        let found: Option<u64> = root.query_first(count).await.expect("an answer");
        assert_eq!(found, Some(2));
        // The program that was there before goes on.
        assert_eq!(write(&store, change("k", 1, 2)).await, Ok(applied(2)));
    });
}

/// A procedure of the first version, which had no comment. It lets everybody pass, so that one can
/// tell.
const FIRST: &str = "CREATE OR REPLACE PROCEDURE app.x_assert(IN c LONGTEXT, IN l LONGTEXT, \
                     IN t BIGINT) SQL SECURITY DEFINER READS SQL DATA BEGIN END";

#[test]
fn a_procedure_of_a_former_version_is_replaced_with_its_grants_and_a_newer_one_stays() {
    let server = Server::start(&["--log-bin", "--server-id=1"]);
    block_on(async {
        let mut root = application(&server.url("root")).await;
        let url = format!("{}?prefix=x_", server.url("root"));
        let store = connect(&url).await;
        hold(&store).await;
        run(&mut root, "CREATE USER app@'%'").await;
        run(&mut root, FIRST).await;
        run(&mut root, "GRANT EXECUTE ON PROCEDURE app.x_assert TO app@'%'").await;
        let mut app = Leader { conn: application(&server.url("app")).await, prefix: "x_".into() };
        app.run("BEGIN").await;
        app.assert(6).await.expect("the former one lets pass");
        // In use: it is waited for no longer than a second, and everything works as before.
        let since = clock::now();
        connect(&url).await;
        assert!(clock::now().since(since) < Duration::from_secs(10));
        app.run("COMMIT").await;
        connect(&url).await;
        app.refusal("scheduler", 6).await;
        app.assert(7).await.expect("it is held, and the right to ask is still there");
        // The program that was there before goes on.
        assert_eq!(write(&store, take(0, 1, 8)).await, Ok(applied(1)));

        let newer = FIRST.replace("READS SQL DATA", "READS SQL DATA COMMENT 'version 99'");
        run(&mut root, &newer).await;
        connect(&url).await;
        app.assert(6).await.expect("a newer one is left alone");
    });
}

#[test]
fn a_leader_that_hangs_delays_a_take_until_its_session_ends() {
    block_on(async {
        let (store, mut leader) = scene().await;
        // What the page advises, on MariaDB and on MySQL.
        let maria = "SET SESSION idle_write_transaction_timeout = 2, idle_transaction_timeout = 2";
        if leader.conn.query_drop(maria).await.is_err() {
            leader.run("SET SESSION wait_timeout = 2").await;
        }
        leader.run("BEGIN").await;
        leader.assert(7).await.expect("it is held");
        let taken = take_at_last(&store).await;
        assert!(taken < Duration::from_secs(5), "{taken:?}");
        assert!(leader.conn.query_drop("COMMIT").await.is_err(), "the server ended the session");
    });
}
