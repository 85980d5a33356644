//! The fence's function: one statement that fails by itself.

#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // A test fails by panicking, its helpers too.

mod common;

use std::time::Duration;

use common::{
    Server, application, applied, beat, block_on, connect, create, shared, version, with_value,
    write,
};
use incumbent::DutyId;
use incumbent_core::store::{Expect, Key, Outcome, Write};
use incumbent_core::{LeaseName, keys};
use incumbent_postgres::{PostgresOptions, PostgresStore};
use incumbent_proving::store::leases::{
    MEMBER, hold, hold_in, lease, member_value, odd_clusters, odd_leases, take, take_at_last,
};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error, IsolationLevel};

/// A store, its lease in term 7, and two connections of an application that find the function.
async fn scene() -> (PostgresStore, Client, Client) {
    let url = format!("{}&lock_timeout=400", shared());
    let store = connect(&url).await;
    hold(&store).await;
    let schema = schema(&url);
    let clients = (application(&url).await, application(&url).await);
    for client in [&clients.0, &clients.1] {
        client.batch_execute(&format!("SET search_path = {schema}")).await.expect("a path");
    }
    (store, clients.0, clients.1)
}

fn schema(url: &str) -> String {
    let rest = url.split("schema=").nth(1).expect("a schema");
    rest.split('&').next().expect("a schema").to_owned()
}

const ASSERT: &str = "SELECT incumbent_assert($1, $2, $3)";

async fn assert_term(client: &Client, lease: &str, term: i64) -> Result<i64, Error> {
    let row = client.query_one(ASSERT, &[&"c", &lease, &term]).await?;
    row.try_get(0)
}

/// What is said of a term that is over.
async fn refusal(client: &Client, lease: &str, term: i64) -> String {
    let error = assert_term(client, lease, term).await.expect_err("the term is over");
    let said = error.as_db_error().unwrap_or_else(|| panic!("{error}"));
    assert_eq!(said.code().code(), "IN001", "{said}");
    said.message().to_owned()
}

#[test]
fn a_term_that_is_over_fails_by_itself() {
    block_on(async {
        let (store, mut leader, _) = scene().await;
        assert_eq!(assert_term(&leader, "scheduler", 7).await.expect("it is held"), 7);
        assert_eq!(
            refusal(&leader, "scheduler", 6).await,
            "incumbent: term 6 of lease \"scheduler\" is over: found term 7, held by \"node-m\""
        );
        assert_eq!(write(&store, take(0, 1, 8)).await, Ok(applied(1)));
        for level in [IsolationLevel::ReadCommitted, IsolationLevel::Serializable] {
            let transaction = leader.build_transaction().isolation_level(level).start().await;
            let transaction = transaction.expect("a transaction");
            assert!(transaction.query_one(ASSERT, &[&"c", &"scheduler", &7_i64]).await.is_err());
            // The server itself refuses all that comes after.
            assert!(transaction.query_one("SELECT 1", &[]).await.is_err());
        }
        // Freed: the term is the same, but nobody holds it.
        let freed = lease(Expect::Version(version(1)), 2, 8, None);
        assert_eq!(write(&store, freed).await, Ok(applied(2)));
        assert!(refusal(&leader, "scheduler", 8).await.ends_with("found term 8, held by nobody"));
        assert!(refusal(&leader, "never", 8).await.ends_with("found no such lease"));
        assert!(refusal(&leader, "", 8).await.ends_with("found no such lease"));
        for sql in [
            "SELECT incumbent_assert('c', 'scheduler', NULL)",
            "SELECT incumbent_assert('c', NULL, 8)",
            "SELECT incumbent_assert(NULL, 'scheduler', 8)",
            "SELECT incumbent_assert('d', 'scheduler', 8)",
        ] {
            let error = leader.query_one(sql, &[]).await.expect_err("no term is held there");
            assert_eq!(error.code().expect("a code").code(), "IN001", "{sql}");
        }
        let huge = "ü".repeat(2_000_000);
        assert!(refusal(&leader, &huge, 7).await.ends_with("found no such lease"));
    });
}

#[test]
fn a_member_that_is_closed_or_gone_asserts_nothing_more() {
    block_on(async {
        let (store, leader, _) = scene().await;
        for (from, state) in [(100, "expired"), (101, "left"), (102, "evicted")] {
            let closed = Expect::Version(version(from));
            let closed = with_value(MEMBER, closed, from + 1, false, &member_value(state));
            assert_eq!(write(&store, closed).await, Ok(applied(from + 1)));
            let said = refusal(&leader, "scheduler", 7).await;
            assert!(said.ends_with("held by \"node-m\", whose membership is over"), "{said}");
        }
        write(&store, Write::Delete(Key::new(MEMBER))).await.expect("it is deleted");
        refusal(&leader, "scheduler", 7).await;
    });
}

#[test]
fn a_take_waits_for_the_transaction_and_an_assertion_for_a_take() {
    block_on(async {
        let (store, mut leader, other) = scene().await;
        let transaction = leader.transaction().await.expect("a transaction");
        transaction.query_one(ASSERT, &[&"c", &"scheduler", &7_i64]).await.expect("it is held");
        assert_eq!(write(&store, take(0, 1, 8)).await, Ok(Outcome::Refused));
        transaction.commit().await.expect("a commit in its term");
        // A take that is under way, done by hand so that it can be held open.
        other.batch_execute("BEGIN").await.expect("a transaction");
        let take = "UPDATE incumbent_records SET value = replace(value, '\"term\":7', '\"term\":8') \
                    WHERE key = 'lease/scheduler'";
        other.batch_execute(take).await.expect("a take");
        let asking = tokio::runtime::Handle::current()
            .spawn(async move { refusal(&leader, "scheduler", 7).await });
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(!asking.is_finished());
        other.batch_execute("COMMIT").await.expect("a commit");
        let said = asking.await.expect("a stale leader passed");
        assert!(said.ends_with("found term 8, held by \"node-m\""), "{said}");
    });
}

#[test]
fn a_rolled_back_savepoint_takes_the_lock_with_it() {
    // The trap that the page warns of.
    block_on(async {
        let (store, leader, _) = scene().await;
        leader.batch_execute("BEGIN; SAVEPOINT s").await.expect("a savepoint");
        assert_term(&leader, "scheduler", 7).await.expect("it is held");
        leader.batch_execute("ROLLBACK TO s").await.expect("a way back");
        assert_eq!(write(&store, take(0, 1, 8)).await, Ok(applied(1)));
        leader.batch_execute("COMMIT").await.expect("a stale leader commits: this is why");
    });
}

#[test]
fn in_autocommit_the_lock_is_gone_with_the_statement() {
    // The other trap that the page warns of.
    block_on(async {
        let (store, leader, _) = scene().await;
        leader.batch_execute("CREATE TEMP TABLE work (term bigint)").await.expect("a table");
        assert_term(&leader, "scheduler", 7).await.expect("it is held");
        assert_eq!(write(&store, take(0, 1, 8)).await, Ok(applied(1)));
        let stale = "INSERT INTO work VALUES (7)";
        leader.batch_execute(stale).await.expect("a stale leader writes: this is why");
    });
}

#[test]
fn names_become_the_same_keys_in_sql_and_in_the_program() {
    block_on(async {
        let (_, client, _) = scene().await;
        let leases = odd_leases(1, |_, name| name);
        let names: Vec<_> = leases.iter().map(LeaseName::as_str).collect();
        let sql = "SELECT incumbent_key('lease/', name) FROM unnest($1::text[]) WITH ORDINALITY \
                   AS n(name, place) ORDER BY place";
        let rows = client.query(sql, &[&names]).await.expect("keys");
        assert_eq!(rows.len(), leases.len());
        for (row, lease) in rows.iter().zip(&leases) {
            assert_eq!(row.get::<_, &str>(0), keys::lease(lease).as_str(), "{lease}");
        }
    });
}

#[test]
fn long_clusters_and_duties_are_found() {
    block_on(async {
        let (store, client, _) = scene().await;
        let duty = DutyId::new("projections", "orders, eu").expect("a duty").lease();
        for (number, cluster) in odd_clusters(512).iter().enumerate() {
            hold_in(&store, cluster, &duty, 1000 + 2 * number as u64).await;
            let row = client.query_one(ASSERT, &[&cluster, &duty.as_str(), &3_i64]).await;
            assert_eq!(row.expect("it is held").get::<_, i64>(0), 3, "{cluster}");
            let error = client.query_one(ASSERT, &[&cluster, &duty.as_str(), &2_i64]).await;
            let error = error.expect_err("it is over");
            assert_eq!(error.code().expect("a code").code(), "IN001", "{cluster}");
        }
    });
}

#[test]
fn an_idle_transaction_is_bounded_by_the_ttl_and_only_that() {
    block_on(async {
        let (_, client, _) = scene().await;
        let bound = async |before: &str| {
            client.batch_execute(&format!("{before}; BEGIN")).await.expect("a transaction");
            assert_term(&client, "scheduler", 7).await.expect("it is held");
            let show = "SELECT current_setting('idle_in_transaction_session_timeout')";
            let inside: String = client.query_one(show, &[]).await.expect("a value").get(0);
            client.batch_execute("COMMIT").await.expect("a commit");
            let after: String = client.query_one(show, &[]).await.expect("a value").get(0);
            (inside, after)
        };
        let none = "SET idle_in_transaction_session_timeout = 0";
        assert_eq!(bound(none).await, ("1500ms".to_owned(), "0".to_owned()));
        let short = "SET idle_in_transaction_session_timeout = '1s'";
        assert_eq!(bound(short).await, ("1s".to_owned(), "1s".to_owned()));
        let long = "SET idle_in_transaction_session_timeout = '1min'";
        assert_eq!(bound(long).await, ("1500ms".to_owned(), "1min".to_owned()));
        let off = "SET incumbent.idle_timeout = off";
        assert_eq!(bound(off).await, ("1min".to_owned(), "1min".to_owned()));
    });
}

#[test]
fn a_leader_that_hangs_in_its_transaction_delays_a_take_for_a_bounded_time() {
    block_on(async {
        let (store, mut leader, _) = scene().await;
        let transaction = leader.transaction().await.expect("a transaction");
        transaction.query_one(ASSERT, &[&"c", &"scheduler", &7_i64]).await.expect("it is held");
        let taken = take_at_last(&store).await;
        // The ttl of 1.5 s, and a second for a busy machine.
        assert!(taken < Duration::from_millis(2500), "{taken:?}");
        assert!(transaction.commit().await.is_err(), "the server has ended the session");
    });
}

#[test]
fn a_role_without_rights_on_tables_may_assert_and_only_where_it_was_granted() {
    let server = Server::start(&["fsync=off"]);
    block_on(async {
        let administrator = application(&server.url("postgres")).await;
        administrator
            .batch_execute("CREATE ROLE app LOGIN; CREATE ROLE other LOGIN")
            .await
            .expect("roles");
        let url = format!("{}?schema=Jobs&prefix=x_", server.url("postgres"));
        let store = connect(&url).await;
        hold(&store).await;
        let options =
            PostgresOptions::parse(&format!("{}?schema=Jobs&prefix=x_", server.url("app")));
        let grants = options.expect("options").grants_sql();
        // The first and the last line: nothing on the tables.
        let lines: Vec<_> = grants.lines().collect();
        assert!(lines[0].contains("USAGE") && lines[3].contains("EXECUTE"), "{grants}");
        let least =
            format!("{}{} {}", lines[0], lines[3], "GRANT USAGE ON SCHEMA \"Jobs\" TO other");
        administrator.batch_execute(&least).await.expect("the grants");

        let sql = "SELECT \"Jobs\".\"x_assert\"('c', 'scheduler', $1)";
        let app = application(&server.url("app")).await;
        // What a caller has in the way decides nothing.
        app.batch_execute(
            "CREATE TEMP TABLE x_records (cluster text, key text, value text); \
             CREATE FUNCTION pg_temp.sha256(bytea) RETURNS bytea LANGUAGE sql AS 'SELECT $1'; \
             SET search_path = pg_temp, pg_catalog",
        )
        .await
        .expect("traps");
        assert_eq!(app.query_one(sql, &[&7_i64]).await.expect("it is held").get::<_, i64>(0), 7);
        let error = app.query_one(sql, &[&6_i64]).await.expect_err("it is over");
        assert_eq!(error.code().expect("a code").code(), "IN001");
        let error = app.query_one("SELECT value FROM \"Jobs\".x_records", &[]).await;
        let denied = Some(&SqlState::INSUFFICIENT_PRIVILEGE);
        assert_eq!(error.expect_err("no right").code(), denied);
        let other = application(&server.url("other")).await;
        let error = other.query_one(sql, &[&7_i64]).await.expect_err("no right");
        assert_eq!(error.code(), denied, "{error}");
    });
}

#[test]
fn tables_of_a_former_version_get_the_function_when_their_owner_opens_them() {
    let server = Server::start(&["fsync=off"]);
    block_on(async {
        let administrator = application(&server.url("postgres")).await;
        let url = |user: &str| format!("{}?schema=jobs", server.url(user));
        let store = connect(&url("postgres")).await;
        // As a version before the function left them.
        let former = "DROP FUNCTION jobs.incumbent_assert; DROP FUNCTION jobs.incumbent_examine; \
                      DROP FUNCTION jobs.incumbent_key; \
                      DELETE FROM jobs.incumbent_meta WHERE name = 'assert'; \
                      CREATE ROLE poor LOGIN; GRANT USAGE ON SCHEMA jobs TO poor; \
                      GRANT SELECT, INSERT, UPDATE, DELETE ON jobs.incumbent_records TO poor; \
                      GRANT SELECT ON jobs.incumbent_meta TO poor; \
                      GRANT CREATE ON SCHEMA jobs TO poor; CREATE ROLE keeper; \
                      GRANT USAGE ON SCHEMA jobs TO keeper; \
                      ALTER TABLE jobs.incumbent_records OWNER TO keeper; \
                      ALTER TABLE jobs.incumbent_meta OWNER TO keeper";
        administrator.batch_execute(former).await.expect("a former version");
        let there = async || {
            let sql = "SELECT count(*) FROM pg_proc WHERE proname = 'incumbent_assert'";
            administrator.query_one(sql, &[]).await.expect("an answer").get::<_, i64>(0) == 1
        };
        // Without rights everything works as before.
        let poor = connect(&url("poor")).await;
        assert_eq!(write(&poor, create("k", 1)).await, Ok(applied(1)));
        assert!(!there().await);
        connect(&url("postgres")).await;
        assert!(there().await);
        // It has the rights of the tables' owner, and not those of the superuser that opened them.
        let owner = "SELECT pg_get_userbyid(proowner)::text, prosecdef FROM pg_proc \
                     WHERE proname = 'incumbent_assert'";
        let row = administrator.query_one(owner, &[]).await.expect("an answer");
        assert_eq!((row.get::<_, &str>(0), row.get::<_, bool>(1)), ("keeper", true));
        // The program that was there before goes on: the format is the same.
        assert_eq!(write(&store, beat("k", 1, 2)).await, Ok(applied(2)));
        let format = "SELECT value FROM jobs.incumbent_meta WHERE name = 'format'";
        assert_eq!(administrator.query_one(format, &[]).await.expect("it").get::<_, i32>(0), 1);
        // A newer function is left alone, and an older one replaced.
        let broken = "CREATE OR REPLACE FUNCTION jobs.incumbent_assert(cluster text, lease text, \
                      term bigint) RETURNS bigint LANGUAGE sql AS 'SELECT 99::bigint'";
        administrator.batch_execute(broken).await.expect("another function");
        let ask = "SELECT jobs.incumbent_assert('c', 'never', 1)";
        connect(&url("postgres")).await;
        assert!(administrator.query_one(ask, &[]).await.is_ok());
        let older = "UPDATE jobs.incumbent_meta SET value = 0 WHERE name = 'assert'";
        administrator.batch_execute(older).await.expect("an older one");
        connect(&url("postgres")).await;
        assert!(administrator.query_one(ask, &[]).await.is_err());
    });
}
