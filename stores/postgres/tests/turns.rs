//! Whatever changes a lease's row waits for the transactions that have asserted its term: nodes of any
//! version and people alike, because a trigger sees to it.

#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // A test fails by panicking, its helpers too.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::{
    Server, application, applied, block_on, connect, send, shared, version, with_value, write,
};
use incumbent_core::store::{Expect, Lane, Outcome, Store as _, Write};
use incumbent_core::{LeaseName, keys};
use incumbent_postgres::PostgresStore;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error};

const ASSERT: &str = "SELECT incumbent_assert($1, $2, $3)";
/// The version of the function that this program makes.
const NEWEST: i32 = 4;
const UPDATE: &str = "UPDATE incumbent_records SET stamp = 'by hand' WHERE key = 'lease/scheduler'";

fn lease(name: &str, expect: Expect, attempt: u64, term: u64) -> Write {
    let key = keys::lease(&LeaseName::new(name).expect("a name"));
    let value = format!(
        "{{\"format\":1,\"name\":\"{name}\",\"term\":{term},\"holder\":{{\"member\":\"m\",\"node\":\"n\"}}}}"
    );
    with_value(key.as_str(), expect, attempt, true, &value)
}

/// A store with a lease in term 7, and connections of applications that find the function.
async fn scene() -> (PostgresStore, Client, Client) {
    let url = format!("{}&lock_timeout=400", shared());
    (store(&url).await, client(&url).await, client(&url).await)
}

async fn store(url: &str) -> PostgresStore {
    let store = connect(url).await;
    assert_eq!(write(&store, lease("scheduler", Expect::Absent, 0, 7)).await, Ok(applied(0)));
    let member =
        "{\"format\":1,\"id\":\"m\",\"state\":\"alive\",\"beat\":1,\"ttl_ms\":9000,\"due_ms\":500}";
    let member = with_value("member/m", Expect::Absent, 100, false, member);
    assert_eq!(write(&store, member).await, Ok(applied(100)));
    store
}

async fn client(url: &str) -> Client {
    let schema = url.split("schema=").nth(1).and_then(|rest| rest.split('&').next());
    let client = application(url).await;
    let path = format!("SET search_path = {}; SET lock_timeout = 200", schema.expect("a schema"));
    client.batch_execute(&path).await.expect("a path");
    client
}

async fn held(client: &Client, lease: &str) -> Result<i64, Error> {
    client.query_one(ASSERT, &[&"c", &lease, &7_i64]).await.map(|row| row.get(0))
}

/// In how many rows of leases somebody has left the mark of a lock or of a change.
async fn locked(client: &Client) -> i64 {
    let sql = "SELECT count(*) FROM incumbent_records WHERE xmax <> 0 AND key LIKE 'lease%'";
    client.query_one(sql, &[]).await.expect("a count").get(0)
}

async fn waits(client: &Client, sql: &str) {
    let error = client.batch_execute(sql).await.expect_err("it waits");
    assert_eq!(error.code(), Some(&SqlState::LOCK_NOT_AVAILABLE), "{sql}: {error}");
}

#[test]
fn a_change_by_hand_waits_too_and_no_row_is_locked_for_it() {
    block_on(async {
        let (_, mut leader, other) = scene().await;
        let transaction = leader.transaction().await.expect("a transaction");
        transaction.query_one(ASSERT, &[&"c", &"scheduler", &7_i64]).await.expect("it is held");
        waits(&other, UPDATE).await;
        waits(&other, "DELETE FROM incumbent_records WHERE key = 'lease/scheduler'").await;
        let replicated = format!("SET session_replication_role = replica; {UPDATE}");
        waits(&other, &replicated).await;
        other
            .batch_execute("UPDATE incumbent_records SET stamp = 'x' WHERE key = 'member/m'")
            .await
            .expect("beats don't wait");
        let before = locked(&other).await;
        transaction.commit().await.expect("a commit in its term");
        other.batch_execute(UPDATE).await.expect("it goes through");
        // What was taken back left its mark in the row; the assertion leaves none.
        assert!(before <= 1);
        assert_eq!(held(&leader, "scheduler").await.expect("it is held"), 7);
        assert_eq!(locked(&leader).await, 0, "an assertion writes nothing into the row");
    });
}

#[test]
fn a_transaction_with_an_older_snapshot_locks_the_row_or_fails() {
    block_on(async {
        for level in ["REPEATABLE READ", "SERIALIZABLE"] {
            let (store, mut leader, other) = scene().await;
            let begin = async |leader: &mut Client| {
                let begin = format!("BEGIN ISOLATION LEVEL {level}");
                leader.batch_execute(&begin).await.expect("a transaction");
                leader.query_one("SELECT count(*) FROM pg_class", &[]).await.expect("a snapshot");
            };
            begin(&mut leader).await;
            held(&leader, "scheduler").await.expect("it is held");
            waits(&other, UPDATE).await;
            leader.batch_execute("COMMIT").await.expect("a commit in its term");
            begin(&mut leader).await;
            let take = lease("scheduler", Expect::Version(version(0)), 1, 8);
            assert_eq!(write(&store, take).await, Ok(applied(1)));
            let error = held(&leader, "scheduler").await.expect_err("the snapshot is older");
            assert_eq!(error.code(), Some(&SqlState::T_R_SERIALIZATION_FAILURE), "{error}");
            leader.batch_execute("ROLLBACK").await.expect("an end");
        }
    });
}

#[test]
fn without_the_trigger_the_row_is_locked() {
    block_on(async {
        let (store, mut leader, other) = scene().await;
        // A change that is rolled back by nobody leaves no mark of a former lock in the row.
        let with = "ALTER TABLE incumbent_records ENABLE ALWAYS TRIGGER incumbent_turn; \
                    UPDATE incumbent_records SET written = now() WHERE key = 'lease/scheduler'";
        for without in [
            "ALTER TABLE incumbent_records DISABLE TRIGGER incumbent_turn",
            "ALTER TABLE incumbent_records ENABLE REPLICA TRIGGER incumbent_turn",
            "DROP TRIGGER incumbent_turn ON incumbent_records",
        ] {
            // The same session has asserted often enough before to have made up its plans for good.
            other.batch_execute(with).await.expect("it is switched on");
            for _ in 0..10 {
                held(&leader, "scheduler").await.expect("it is held");
            }
            assert_eq!(locked(&leader).await, 0, "no row is locked while the trigger is there");
            other.batch_execute(without).await.expect("it is switched off");
            let transaction = leader.transaction().await.expect("a transaction");
            transaction.query_one(ASSERT, &[&"c", &"scheduler", &7_i64]).await.expect("held");
            waits(&other, UPDATE).await;
            let take = lease("scheduler", Expect::Version(version(0)), 1, 8);
            assert_eq!(write(&store, take).await, Ok(Outcome::Refused), "{without}");
            transaction.commit().await.expect("a commit in its term");
            assert_eq!(locked(&leader).await, 1, "{without}");
        }
    });
}

#[test]
fn assertions_that_overlap_without_end_don_t_keep_a_hand_over_out() {
    let server = Server::start(&["fsync=off"]);
    block_on(async {
        let url = format!("{}&lock_timeout=2000", server.fresh_url());
        let store = store(&url).await;
        let going = Arc::new(AtomicBool::new(true));
        let mut workers = Vec::new();
        for _ in 0..8 {
            let (client, going) = (client(&url).await, Arc::clone(&going));
            client.batch_execute("SET lock_timeout = 0").await.expect("patience");
            workers.push(tokio::runtime::Handle::current().spawn(async move {
                let mut passed = 0;
                while going.load(Ordering::SeqCst) {
                    client.batch_execute("BEGIN").await.expect("a transaction");
                    passed += u32::from(held(&client, "scheduler").await.is_ok());
                    tokio::time::sleep(Duration::from_millis(60)).await;
                    client.batch_execute("ROLLBACK").await.expect("an end");
                }
                passed
            }));
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
        // The member lives. A lock on the row would be shared anew by the next again and again.
        let take = lease("scheduler", Expect::Version(version(0)), 1, 8);
        assert_eq!(write(&store, take).await, Ok(applied(1)), "the first try gets through");
        going.store(false, Ordering::SeqCst);
        for worker in workers {
            assert!(worker.await.expect("no panic") > 0);
        }
    });
}

#[test]
fn of_a_batch_what_is_asserted_is_refused_and_the_rest_is_taken() {
    block_on(async {
        let (store, mut leader, _) = scene().await;
        let odd = format!("{}, daily ☃", "report ".repeat(40));
        let leases = ["free", "scheduler", &odd];
        for (name, attempt) in [("free", 1), (odd.as_str(), 2)] {
            let put = lease(name, Expect::Absent, attempt, 7);
            assert_eq!(write(&store, put).await, Ok(applied(attempt)));
        }
        let transaction = leader.transaction().await.expect("a transaction");
        for name in [&odd, "scheduler"] {
            transaction.query_one(ASSERT, &[&"c", &name, &7_i64]).await.expect("it is held");
        }
        let take =
            |attempt: u64| {
                let from = [1, 0, 2].map(|from| Expect::Version(version(from)));
                leases.iter().zip(from).enumerate().map(move |(place, (name, expect))| {
                    lease(name, expect, attempt + place as u64, 8)
                })
            };
        let reply = send(&store, Lane::Change, take(10).collect(), Vec::new()).await;
        let expected = [applied(10), Outcome::Refused, Outcome::Refused];
        assert_eq!(reply.expect("an answer").writes, expected);
        transaction.commit().await.expect("a commit in its term");
        let reply = send(&store, Lane::Change, take(20).skip(1).collect(), Vec::new()).await;
        assert_eq!(reply.expect("an answer").writes, [applied(21), applied(22)]);
    });
}

#[test]
fn leases_of_one_name_in_two_schemas_have_nothing_to_do_with_each_other() {
    block_on(async {
        let ((_, mut leader, _), (other, _, _)) = (scene().await, scene().await);
        let transaction = leader.transaction().await.expect("a transaction");
        transaction.query_one(ASSERT, &[&"c", &"scheduler", &7_i64]).await.expect("it is held");
        let take = lease("scheduler", Expect::Version(version(0)), 1, 8);
        assert_eq!(write(&other, take).await, Ok(applied(1)));
        transaction.commit().await.expect("a commit");
    });
}

#[test]
fn who_has_asserted_the_term_is_told_as_an_obstacle() {
    block_on(async {
        let url = format!("{}&lock_timeout=30000&statement_timeout=60000", shared());
        let (store, mut leader) = (store(&url).await, client(&url).await);
        leader.batch_execute("SET application_name = 'billing'").await.expect("a name");
        let transaction = leader.transaction().await.expect("a transaction");
        transaction.query_one(ASSERT, &[&"c", &"scheduler", &7_i64]).await.expect("it is held");
        // The second waits for the row that the first has changed, and isn't in its own way.
        let takers: Vec<_> = [(1, 8), (2, 8)]
            .into_iter()
            .map(|(attempt, term)| {
                let store = store.clone();
                tokio::runtime::Handle::current().spawn(async move {
                    let from = Expect::Version(version(0));
                    write(&store, lease("scheduler", from, attempt, term)).await
                })
            })
            .collect();
        let mut found = Vec::new();
        for _ in 0..100 {
            tokio::time::sleep(Duration::from_millis(50)).await;
            found = store.obstacles().await;
            if !found.is_empty() {
                break;
            }
        }
        let [obstacle] = found.as_slice() else { panic!("{found:?}") };
        let record = ("c".to_owned(), "lease/scheduler".to_owned());
        assert_eq!(obstacle.record, Some(record));
        assert!(obstacle.to_string().contains("billing"), "{obstacle}");
        transaction.commit().await.expect("a commit");
        let mut applied = 0;
        for taker in takers {
            let outcome = taker.await.expect("no panic").expect("an answer");
            applied += u32::from(matches!(outcome, Outcome::Applied(_)));
        }
        assert_eq!(applied, 1);
    });
}

/// The first version locked the row, and there was no trigger.
const FORMER: &str = "DROP TRIGGER incumbent_turn ON incumbent_records; DROP FUNCTION incumbent_turn; \
    CREATE OR REPLACE FUNCTION incumbent_assert(cluster text, lease text, term bigint) RETURNS bigint \
    LANGUAGE plpgsql AS $$ DECLARE found bigint; BEGIN \
    SELECT (r.value::json ->> 'term')::bigint INTO found FROM incumbent_records r \
    WHERE r.key = 'lease/' || lease FOR SHARE; \
    IF found IS DISTINCT FROM term THEN RAISE EXCEPTION USING ERRCODE = 'IN001'; END IF; \
    RETURN term; END $$; UPDATE incumbent_meta SET value = 1 WHERE name = 'assert'";

#[test]
fn functions_of_two_versions_hold_beside_each_other_while_one_replaces_the_other() {
    block_on(async {
        let url = format!("{}&lock_timeout=400", shared());
        let (store, other) = (store(&url).await, client(&url).await);
        other.batch_execute(FORMER).await.expect("a former version");
        let (mut old, mut new) = (client(&url).await, client(&url).await);
        let take = |attempt| lease("scheduler", Expect::Version(version(0)), attempt, 8);
        let first = old.transaction().await.expect("a transaction");
        first.query_one(ASSERT, &[&"c", &"scheduler", &7_i64]).await.expect("it is held");
        // A newer program opens the tables while that transaction is open.
        connect(&url).await;
        let version = "SELECT value FROM incumbent_meta WHERE name = 'assert'";
        assert_eq!(other.query_one(version, &[]).await.expect("it").get::<_, i32>(0), NEWEST);
        let second = new.transaction().await.expect("a transaction");
        second.query_one(ASSERT, &[&"c", &"scheduler", &7_i64]).await.expect("it is held");
        assert_eq!(write(&store, take(1)).await, Ok(Outcome::Refused));
        first.commit().await.expect("a commit in its term");
        assert_eq!(write(&store, take(2)).await, Ok(Outcome::Refused), "the newer one holds");
        second.commit().await.expect("a commit in its term");
        // Whoever goes back to the former function goes back to the lock on the row.
        let former = FORMER.split_once("incumbent_turn; ").expect("the function").1;
        other.batch_execute(former).await.expect("a former version");
        let third = new.transaction().await.expect("a transaction");
        third.query_one(ASSERT, &[&"c", &"scheduler", &7_i64]).await.expect("it is held");
        assert_eq!(write(&store, take(3)).await, Ok(Outcome::Refused));
        third.commit().await.expect("a commit in its term");
        assert_eq!(write(&store, take(4)).await, Ok(applied(4)));
        assert!(held(&old, "scheduler").await.is_err());
    });
}

/// A former version as it was: made by its own statements, and without what came later.
fn former_version(schema: &str, number: i32, text: &str) -> String {
    let object = |name: &str| format!("{schema}.incumbent_{name}");
    let names = ["records", "meta", "key", "turn", "turns", "turns_planned", "examine", "assert"];
    let text = names
        .iter()
        .fold(text.to_owned(), |text, name| text.replace(&format!("{{{name}}}"), &object(name)));
    let drop = format!(
        "DROP FUNCTION {}(text, text, bigint); DROP FUNCTION {}(text, text, bigint); \
         DROP FUNCTION {}(); DROP FUNCTION {}();",
        object("assert"),
        object("examine"),
        object("turns_planned"),
        object("turns")
    );
    format!("{drop}\n{}", text.replace("{assert_version}", &number.to_string()))
}

#[test]
fn the_functions_of_former_versions_are_replaced_and_their_programs_go_on() {
    let former =
        [(2, include_str!("former/assert_2.sql")), (3, include_str!("former/assert_3.sql"))];
    for (number, text) in former {
        block_on(replaced(number, text));
    }
}

async fn replaced(number: i32, text: &str) {
    let url = format!("{}&lock_timeout=400", shared());
    let (node, other) = (store(&url).await, client(&url).await);
    let schema = url.split("schema=").nth(1).and_then(|rest| rest.split('&').next());
    let former = former_version(schema.expect("a schema"), number, text);
    other.batch_execute(&former).await.expect("a former version");
    let version_of = async || {
        let sql = "SELECT value FROM incumbent_meta WHERE name = 'assert'";
        other.query_one(sql, &[]).await.expect("a version").get::<_, i32>(0)
    };
    let functions = "SELECT count(*) FROM pg_proc WHERE pronamespace = current_schema()::regnamespace \
                     AND proname = 'incumbent_examine'";
    let mut leader = client(&url).await;
    for _ in 0..10 {
        held(&leader, "scheduler").await.expect("it is held");
    }
    assert_eq!(version_of().await, number);
    // Replaced while a transaction is open that has asserted by the former one.
    let transaction = leader.transaction().await.expect("a transaction");
    transaction.query_one(ASSERT, &[&"c", &"scheduler", &7_i64]).await.expect("it is held");
    connect(&url).await;
    assert_eq!(version_of().await, NEWEST);
    assert_eq!(other.query_one(functions, &[]).await.expect("a count").get::<_, i64>(0), 1);
    waits(&other, UPDATE).await;
    transaction.commit().await.expect("a commit in its term");
    // The session goes on with the new one, and the node that was there before with its work.
    held(&leader, "scheduler").await.expect("it is held");
    let take = lease("scheduler", Expect::Version(version(0)), 1, 8);
    assert_eq!(write(&node, take).await, Ok(applied(1)));
    assert!(held(&leader, "scheduler").await.is_err());
}
