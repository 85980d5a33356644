//! The fence's view: one statement that fails by itself, in any SQLite library.
#![allow(clippy::panic, clippy::expect_used, clippy::indexing_slicing)] // A test fails by panicking, its helpers too.

mod common;

use std::process::Command;

use common::{Place, applied, create, send, stamp, version, write};
use incumbent_core::keys;
use incumbent_core::store::{ErrorKind, Expect, Key, Lane, Outcome, Put, Store, Write};
use incumbent_proving::store::leases::odd_leases;
use incumbent_sqlite::SqliteStore;
use rusqlite::{Connection, Error};

const OVER: &str = "incumbent: the term is over";
const ASSERT: &str = "INSERT INTO incumbent_assert VALUES (?1, ?2, ?3)";

fn put(key: &str, expect: Expect, attempt: u64, value: &str) -> Write {
    let (key, value, stamp) = (Key::new(key), value.as_bytes().to_vec(), stamp(attempt));
    Write::Put(Put { key, expect, value, stamp, hint: false, durable: true })
}

fn lease_value(name: &str, term: u64, held: bool) -> String {
    let holder = if held { ",\"holder\":{\"member\":\"m\",\"node\":\"n\"}" } else { "" };
    format!("{{\"format\":1,\"name\":{name:?},\"term\":{term}{holder}}}")
}

fn lease(expect: Expect, attempt: u64, term: u64) -> Write {
    put("lease/scheduler", expect, attempt, &lease_value("scheduler", term, true))
}

fn member(expect: Expect, attempt: u64, state: &str) -> Write {
    put("member/m", expect, attempt, &format!("{{\"state\":\"{state}\",\"ttl_ms\":1500}}"))
}

fn scene() -> (Place, SqliteStore, Connection) {
    let place = Place::new();
    let store = place.store();
    assert_eq!(write(&store, "c", lease(Expect::Absent, 1, 7)), Ok(applied(1)));
    assert_eq!(write(&store, "c", member(Expect::Absent, 100, "alive")), Ok(applied(100)));
    let application = place.application();
    (place, store, application)
}

fn refused(result: Result<usize, Error>, what: &str) {
    let error = result.err().unwrap_or_else(|| panic!("{what} passed"));
    assert_eq!(error.to_string(), OVER, "{what}");
}

#[test]
fn a_term_that_is_over_fails_by_itself() {
    let (_place, store, application) = scene();
    application.execute(ASSERT, ("c", "scheduler", 7)).expect("it is held");
    application.execute(ASSERT, ("c", "scheduler", "7")).expect("whatever its type");
    refused(application.execute(ASSERT, ("c", "scheduler", 6)), "an older term");
    refused(application.execute(ASSERT, ("c", "scheduler", 8)), "a later term");
    application.execute(ASSERT, ("c", "scheduler", 7.0)).expect("as JavaScript binds numbers");
    refused(application.execute(ASSERT, ("c", "scheduler", 7.9)), "a fraction");
    refused(application.execute(ASSERT, ("c", "scheduler", "7abc")), "the beginning of a text");
    refused(application.execute(ASSERT, ("d", "scheduler", 7)), "another cluster");
    refused(application.execute(ASSERT, ("c", "never", 7)), "another lease");
    refused(application.execute(ASSERT, ("c", "sched", 7)), "the beginning of a name");
    let none: Option<i64> = None;
    refused(application.execute(ASSERT, ("c", "scheduler", none)), "no term");
    refused(application.execute(ASSERT, ("c", none, 7)), "no lease");
    refused(application.execute(ASSERT, (none, "scheduler", 7)), "no cluster");
    let freed =
        put("lease/scheduler", Expect::Version(version(1)), 2, &lease_value("scheduler", 7, false));
    assert_eq!(write(&store, "c", freed), Ok(applied(2)));
    refused(application.execute(ASSERT, ("c", "scheduler", 7)), "a lease that nobody holds");
}

#[test]
fn a_member_that_is_closed_or_gone_asserts_nothing_more() {
    let (_place, store, application) = scene();
    for (from, state) in [(100, "expired"), (101, "left"), (102, "evicted")] {
        let closed = member(Expect::Version(version(from)), from + 1, state);
        assert_eq!(write(&store, "c", closed), Ok(applied(from + 1)));
        refused(application.execute(ASSERT, ("c", "scheduler", 7)), state);
    }
    assert_eq!(write(&store, "c", Write::Delete(Key::new("member/m"))), Ok(Outcome::Deleted));
    refused(application.execute(ASSERT, ("c", "scheduler", 7)), "gone");
}

#[test]
fn a_take_waits_for_the_transaction_even_for_one_begun_as_deferred() {
    let (place, store, mut application) = scene();
    let store = (store, place.options());
    let quick = SqliteStore::open(store.1.busy(std::time::Duration::from_millis(200)));
    let quick = quick.expect("it opens");
    let transaction = application.transaction().expect("a transaction");
    transaction.execute(ASSERT, ("c", "scheduler", 7)).expect("it is held");
    let taken = write(&quick, "c", lease(Expect::Version(version(1)), 2, 8));
    assert_eq!(taken.expect_err("it waits").kind, ErrorKind::Unavailable);
    transaction.commit().expect("a commit in its term");
    assert_eq!(write(&quick, "c", lease(Expect::Version(version(1)), 3, 8)), Ok(applied(3)));
    // A snapshot from before a take-over can't get the lock any more.
    let transaction = application.transaction().expect("a transaction");
    let count = "SELECT count(*) FROM incumbent_records";
    transaction.query_row(count, [], |_| Ok(())).expect("a snapshot");
    assert_eq!(write(&quick, "c", lease(Expect::Version(version(3)), 4, 9)), Ok(applied(4)));
    assert!(transaction.execute(ASSERT, ("c", "scheduler", 8)).is_err());
}

#[test]
fn a_swallowed_error_is_no_fence() {
    // The trap that the page warns of.
    let (_place, _store, mut application) = scene();
    application.execute_batch("CREATE TABLE work (term INTEGER)").expect("a table");
    let transaction = application.transaction().expect("a transaction");
    refused(transaction.execute(ASSERT, ("c", "scheduler", 6)), "an older term");
    transaction.execute("INSERT INTO work VALUES (6)", []).expect("it goes on");
    transaction.commit().expect("SQLite commits what an application lets it");
    let count = "SELECT count(*) FROM work";
    assert_eq!(application.query_row(count, [], |row| row.get::<_, i64>(0)), Ok(1));
}

#[test]
fn leases_of_any_name_are_found() {
    let (_place, store, mut application) = scene();
    // Most begin differently, as names do; those that don't are found more slowly.
    let mut leases = odd_leases(3, |count, name| {
        let number = if count % 100 == 0 { 0 } else { count };
        format!("{number}{}", name.replace(['"', '\\'], "."))
    });
    leases.sort();
    leases.dedup();
    for (part, some) in leases.chunks(1000).enumerate() {
        let writes = some.iter().enumerate().map(|(place, lease)| {
            let attempt = 1000 + (part * 1000 + place) as u64;
            // A term of its own, so that none is taken for another.
            put(
                keys::lease(lease).as_str(),
                Expect::Absent,
                attempt,
                &lease_value(lease.as_str(), attempt, true),
            )
        });
        let reply = send(&store, "c", Lane::Change, writes.collect(), vec![]).expect("leases");
        assert!(reply.writes.iter().all(|outcome| *outcome != Outcome::Refused));
    }
    let transaction = application.transaction().expect("a transaction");
    for (place, lease) in leases.iter().enumerate() {
        let term = 1000 + place as i64;
        let held = transaction.execute(ASSERT, ("c", lease.as_str(), term));
        held.unwrap_or_else(|error| panic!("{lease}: {error}"));
        refused(transaction.execute(ASSERT, ("c", lease.as_str(), term - 1)), lease.as_str());
    }
    // What is in a key is no name.
    let (key, term) = leases
        .iter()
        .enumerate()
        .find_map(|(place, lease)| {
            let key = keys::lease(lease);
            let name = key.as_str().strip_prefix("lease/").expect("a lease").to_owned();
            (name != lease.as_str()).then_some((name, 1000 + place as i64))
        })
        .expect("an odd name");
    refused(transaction.execute(ASSERT, ("c", &key, term)), &key);
}

#[test]
fn debian_s_sqlite_and_python_s_read_the_file_and_the_fence_holds_there() {
    let (place, store, application) = scene();
    application.execute_batch("CREATE TABLE work (term INTEGER)").expect("a table");
    drop(application);
    let file = place.path().display().to_string();
    let shell = |term: u64| {
        let sql = format!(
            ".bail on\nBEGIN IMMEDIATE;\nINSERT INTO incumbent_assert VALUES ('c', 'scheduler', \
             {term});\nINSERT INTO work VALUES ({term});\nCOMMIT;\nSELECT count(*) FROM work;\n"
        );
        let mut command = Command::new("sqlite3");
        run(command.arg(&file), &sql)
    };
    let python = |term: u64| {
        let program = format!(
            "import sqlite3\nc = sqlite3.connect({file:?}, isolation_level=None)\n\
             c.execute('BEGIN IMMEDIATE')\ntry:\n    c.execute('INSERT INTO incumbent_assert \
             VALUES (?, ?, ?)', ('c', 'scheduler', {term}))\n    c.execute('INSERT INTO work \
             VALUES ({term})')\n    c.execute('COMMIT')\nexcept sqlite3.DatabaseError:\n    \
             c.execute('ROLLBACK')\n    raise\nprint(c.execute('SELECT count(*) FROM \
             work').fetchone()[0])\n"
        );
        run(Command::new("python3").arg("-"), &program)
    };
    assert_eq!(shell(7), (true, "1".to_owned()));
    assert_eq!(python(7), (true, "2".to_owned()));
    assert_eq!(write(&store, "c", lease(Expect::Version(version(1)), 2, 8)), Ok(applied(2)));
    for (who, (fine, said)) in [("sqlite3", shell(7)), ("python", python(7))] {
        assert!(!fine && said.contains(OVER), "{who}: {said}");
    }
    assert_eq!(shell(8), (true, "3".to_owned()));
}

/// Runs a program with this input: whether it succeeded, and what it said.
fn run(command: &mut Command, input: &str) -> (bool, String) {
    use std::io::Write as _;
    use std::process::Stdio;
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    child.stdin.take().expect("an input").write_all(input.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    (output.status.success(), text.trim().to_owned())
}

#[test]
fn a_file_of_a_former_version_gets_the_fence_when_it_is_opened() {
    let (place, store, application) = scene();
    let former = "DROP TRIGGER incumbent_assert_insert; DROP VIEW incumbent_assert";
    application.execute_batch(former).expect("a former version");
    // The program that has it open goes on, before and after.
    assert_eq!(write(&store, "c", create("k", 5)), Ok(applied(5)));
    assert!(application.execute(ASSERT, ("c", "scheduler", 7)).is_err());
    let newer = place.store();
    application.execute(ASSERT, ("c", "scheduler", 7)).expect("it is held");
    assert_eq!(write(&store, "c", create("l", 6)), Ok(applied(6)));
    assert_eq!(write(&newer, "c", create("m", 7)), Ok(applied(7)));
    let sql = newer.assertion().expect("a database").statement;
    application.execute(&sql, ("c", "scheduler", 7)).expect("it is held");
}

#[test]
fn a_fence_of_a_former_version_is_replaced_and_a_newer_one_stays() {
    let (place, store, application) = scene();
    // It lets everybody pass, so that one can tell.
    let pass = "DROP TRIGGER incumbent_assert_insert; CREATE TRIGGER incumbent_assert_insert \
                INSTEAD OF INSERT ON incumbent_assert BEGIN SELECT 1; END;";
    let first = format!("{pass} DELETE FROM incumbent_meta WHERE name = 'assert'");
    application.execute_batch(&first).expect("the first version");
    application.execute(ASSERT, ("c", "scheduler", 6)).expect("the former one lets pass");
    let newer = place.store();
    assert!(application.execute(ASSERT, ("c", "scheduler", 6)).is_err(), "it was replaced");
    application.execute(ASSERT, ("c", "scheduler", 7)).expect("it is held");
    // The program that was there before goes on beside the newer one.
    assert_eq!(write(&store, "c", create("k", 5)), Ok(applied(5)));
    assert_eq!(write(&newer, "c", create("l", 6)), Ok(applied(6)));

    let newest = format!("{pass} UPDATE incumbent_meta SET value = 99 WHERE name = 'assert'");
    application.execute_batch(&newest).expect("a version to come");
    drop(place.store());
    application.execute(ASSERT, ("c", "scheduler", 6)).expect("a newer one is left alone");
}
