//! What happens when the file, its disk or the application is in the way.
#![allow(clippy::panic, clippy::expect_used, clippy::indexing_slicing)] // A test fails by panicking, its helpers too.

mod common;

use std::fs;
use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use common::{
    Place, applied, assert_done, block_on, change, child_after, child_with_mounts, create,
    eventually, find, read, role, send, version, write,
};
use incumbent_core::store::{
    ErrorKind, Exchange, Expect, Found, Key, Lane, Outcome, Put, Read, Store, StoreError, Write,
};
use incumbent_sqlite::SqliteStore;

fn assert_says(error: &StoreError, kind: ErrorKind, words: &[&str]) {
    assert_eq!(error.kind, kind, "{error}");
    for word in words {
        assert!(error.message.contains(word), "no {word:?} in: {error}");
    }
}

/// O54: SQLite maps the index. Touching what was cut off ends the process, this one too.
#[test]
fn an_index_that_was_cut_off_kills_nobody() {
    let place = Place::new();
    let store = place.store();
    let hints = store.hints("c", std::sync::Arc::new(|| {}));
    for length in [0, 1, 4096, 8192] {
        for lane in [Lane::Beat, Lane::Change, Lane::Watch] {
            eventually("a read", || send(&store, "c", lane, vec![], vec![read("k")]).is_ok());
        }
        let index = place.path().with_file_name("app.db-shm");
        let file = fs::OpenOptions::new().write(true).open(&index).expect("the index");
        file.set_len(length).expect("it is cut off");
        // Closed with the process: with it go the locks that SQLite has in this process.
        std::mem::forget(file);
        let attempt = length + 1;
        let written = || write(&store, "c", create(&format!("after-{length}"), attempt)).is_ok();
        eventually("a write", written);
        assert!(find(&store, "c", &format!("after-{length}")).is_some());
    }
    drop(hints);
}

#[test]
fn a_write_behind_a_long_transaction_is_unavailable_and_not_applied() {
    let place = Place::new();
    let options = place.options().busy(Duration::from_millis(200));
    let store = SqliteStore::open(options).expect("the store opens");
    write(&store, "c", create("k", 1)).expect("a write");
    let application = place.application();
    application.execute_batch("BEGIN IMMEDIATE").expect("the application's transaction");
    for lane in [Lane::Beat, Lane::Change] {
        let error = send(&store, "c", lane, vec![create("new", 2)], vec![]).expect_err("locked");
        assert_says(&error, ErrorKind::Unavailable, &["app.db", "locked", "busy="]);
    }
    // Reads don't wait for a writer, on any lane.
    for lane in [Lane::Beat, Lane::Change, Lane::Watch] {
        let reply = send(&store, "c", lane, vec![], vec![read("k")]).expect("a read");
        assert!(matches!(reply.reads[0], Found::Record(_)));
    }
    application.execute_batch("COMMIT").expect("the application's commit");
    assert_eq!(find(&store, "c", "new"), None);
    let reply = send(&store, "c", Lane::Beat, vec![create("new", 3)], vec![]).expect("a beat");
    assert_eq!(reply.writes, [applied(3)]);
}

#[test]
fn a_change_that_waits_for_the_lock_delays_no_other_lane() {
    let place = Place::new();
    let options = place.options().busy(Duration::from_secs(60));
    let store = SqliteStore::open(options).expect("the store opens");
    write(&store, "c", create("k", 1)).expect("a write");
    let application = place.application();
    application.execute_batch("BEGIN IMMEDIATE").expect("the application's transaction");
    block_on(async {
        let exchange = Exchange { writes: vec![change("k", 1, 2)], reads: vec![] };
        let mut waiting = pin!(store.exchange("c", Lane::Change, exchange));
        // From the first poll on it is in the queue, ahead of all that follows.
        let poll = tokio::time::timeout(Duration::from_millis(50), &mut waiting).await;
        assert!(poll.is_err(), "it waits: {poll:?}");
        for lane in [Lane::Beat, Lane::Watch] {
            let exchange = Exchange { writes: vec![], reads: vec![read("k")] };
            let answer = store.exchange("c", lane, exchange);
            let reply = tokio::time::timeout(Duration::from_secs(10), answer).await;
            let reply = reply.expect("it doesn't wait").expect("a read");
            let Found::Record(record) = &reply.reads[0] else { panic!("{reply:?}") };
            assert_eq!(record.version, version(1));
        }
        application.execute_batch("COMMIT").expect("the application's commit");
        assert_eq!(waiting.await.expect("a write").writes, [applied(2)]);
    });
}

#[test]
fn opening_waits_for_a_short_transaction_and_gives_up_on_a_long_one() {
    let place = Place::new();
    let application = place.application();
    application.execute_batch("CREATE TABLE t(x); BEGIN EXCLUSIVE").expect("a transaction");
    let options = || place.options().busy(Duration::from_millis(300));
    let error = SqliteStore::open(options()).expect_err("locked");
    assert_says(&error, ErrorKind::Unavailable, &["app.db", "locked", "file of its own"]);
    application.execute_batch("COMMIT").expect("the application's commit");
    let store = SqliteStore::open(options()).expect("the store opens");
    assert_eq!(write(&store, "c", create("k", 1)), Ok(applied(1)));
}

#[test]
fn a_file_that_is_no_database_is_rejected_and_left_as_it_is() {
    let place = Place::new();
    let text = "To whom it may concern: this is a letter. ".repeat(100);
    fs::write(place.path(), &text).expect("a file");
    let error = SqliteStore::open(place.options()).expect_err("no database");
    assert_says(&error, ErrorKind::Rejected, &["app.db", "not a database", "another file"]);
    assert_eq!(fs::read_to_string(place.path()).expect("the file"), text);
}

#[test]
fn a_damaged_database_is_rejected() {
    let place = Place::new();
    let store = place.store();
    let writes = (1..=2000).map(|attempt| create(&format!("k{attempt:04}"), attempt)).collect();
    send(&store, "c", Lane::Change, writes, vec![]).expect("writes");
    drop(store);
    place.wait_until_closed();
    let mut bytes = fs::read(place.path()).expect("the file");
    let size = bytes.len();
    assert!(size > 100_000, "{size}");
    // The tables' definitions are on the first page and stay.
    bytes[16_384..].fill(0xa5);
    fs::write(place.path(), bytes).expect("a damaged file");
    let everything = vec![Read::Prefix(Key::new(""))];
    let error = SqliteStore::open(place.options())
        .and_then(|store| send(&store, "c", Lane::Watch, vec![], everything).map(|_| ()))
        .expect_err("damaged");
    assert_says(&error, ErrorKind::Rejected, &["app.db", "malformed", "restore it"]);
}

#[test]
fn a_directory_or_a_missing_one_is_rejected() {
    let place = Place::new();
    let here = place.directory.path();
    let error = SqliteStore::open(here).expect_err("a directory");
    assert_says(&error, ErrorKind::Rejected, &["is a directory", "Name a file"]);
    let error = SqliteStore::open(here.join("no/app.db")).expect_err("no directory");
    assert_says(&error, ErrorKind::Rejected, &["no directory", "Make it"]);
    let error = SqliteStore::open(place.options().create(false)).expect_err("no file");
    assert_says(&error, ErrorKind::Rejected, &["no such file", "create=no"]);
    assert!(!place.path().exists());
    let error = SqliteStore::open(":memory:").expect_err("memory");
    assert_says(&error, ErrorKind::Rejected, &["memory: or solo:"]);
}

#[test]
fn a_newer_format_is_rejected_and_another_prefix_is_the_way_out() {
    let place = Place::new();
    drop(place.store());
    let application = place.application();
    let set = |format: &str| {
        application
            .execute_batch(&format!("UPDATE incumbent_meta SET value = {format}"))
            .expect("another format");
    };
    set("2");
    let error = SqliteStore::open(place.options()).expect_err("too new");
    assert_says(&error, ErrorKind::Rejected, &["app.db", "format 2", "Upgrade", "prefix="]);
    set("'soon'");
    let error = SqliteStore::open(place.options()).expect_err("no format");
    assert_says(&error, ErrorKind::Rejected, &["app.db", "format nothing", "prefix="]);
    assert!(SqliteStore::open(place.options().prefix("other_")).is_ok());
    set("1");
    assert!(SqliteStore::open(place.options()).is_ok());
}

#[test]
fn tables_of_somebody_else_are_rejected() {
    let place = Place::new();
    place
        .application()
        .execute_batch("CREATE TABLE incumbent_records(id INTEGER PRIMARY KEY, song TEXT)")
        .expect("the application's table");
    let error = SqliteStore::open(place.options())
        .and_then(|store| write(&store, "c", create("k", 1)).map(|_| ()))
        .expect_err("not our table");
    assert_says(&error, ErrorKind::Rejected, &["app.db", "column", "prefix="]);
}

#[test]
fn tables_dropped_underneath_are_made_again() {
    let place = Place::new();
    let store = place.store();
    write(&store, "c", create("k", 1)).expect("a write");
    place.application().execute_batch("DROP TABLE incumbent_records").expect("a drop");
    let error = write(&store, "c", change("k", 1, 2)).expect_err("no table");
    assert_says(&error, ErrorKind::Rejected, &["no such table"]);
    assert_eq!(write(&store, "c", change("k", 1, 3)), Ok(Outcome::Refused));
    assert_eq!(find(&store, "c", "k"), None);
}

#[test]
fn a_deleted_database_is_noticed_by_whichever_lane_comes_first_and_made_anew() {
    let lanes = [Lane::Beat, Lane::Change, Lane::Watch];
    for first in lanes {
        let place = Place::new();
        let store = place.store();
        write(&store, "c", create("k", 1)).expect("a write");
        for lane in lanes {
            let reply = send(&store, "c", lane, vec![], vec![read("k")]).expect("a read");
            assert!(matches!(reply.reads[0], Found::Record(_)));
        }
        place.remove_files();
        let error = send(&store, "c", first, vec![change("k", 1, 2)], vec![]).expect_err("deleted");
        assert_says(&error, ErrorKind::Unavailable, &["app.db", "deleted or replaced", "Stop all"]);
        assert!(!place.path().exists());
        // No lane shows what was in the old file.
        for lane in lanes {
            let reply = send(&store, "c", lane, vec![], vec![read("k")]).expect("a read");
            assert_eq!(reply.reads, [Found::Absent]);
        }
        assert_eq!(write(&store, "c", change("k", 1, 3)), Ok(Outcome::Refused));
        assert_eq!(write(&store, "c", create("k", 4)), Ok(applied(4)));
        assert_eq!(find(&place.store(), "c", "k").expect("a record").version, version(4));
    }
}

#[test]
fn a_deleted_database_is_not_made_anew_against_the_options() {
    let place = Place::new();
    drop(place.store());
    let store = SqliteStore::open(place.options().create(false)).expect("the store opens");
    write(&store, "c", create("k", 1)).expect("a write");
    place.remove_files();
    write(&store, "c", create("l", 2)).expect_err("deleted");
    let error = write(&store, "c", create("l", 3)).expect_err("deleted");
    assert_says(&error, ErrorKind::Rejected, &["no such file", "create=no"]);
    assert!(!place.path().exists());
}

#[test]
fn two_stores_never_go_on_with_different_files() {
    // Each of these leaves the first store with files that a second one doesn't see.
    let replace = |place: &Place, how: &str| match how {
        "database" => place.remove_files(),
        "log" => fs::remove_file(place.log()).expect("the log"),
        "index" => fs::remove_file(place.directory.path().join("app.db-shm")).expect("the index"),
        "renamed" => {
            let spare = place.directory.path().join("spare.db");
            let application = rusqlite::Connection::open(&spare).expect("a spare file");
            application.execute_batch("CREATE TABLE t(x)").expect("a table");
            drop(application);
            fs::rename(spare, place.path()).expect("a rename");
        }
        other => panic!("{other}"),
    };
    for how in ["database", "log", "index", "renamed"] {
        let place = Place::new();
        let one = place.store();
        write(&one, "c", create("k", 1)).expect("a write");
        replace(&place, how);
        let error = write(&one, "c", change("k", 1, 2)).expect_err(how);
        assert_says(&error, ErrorKind::Unavailable, &["deleted or replaced"]);
        // SQLite lets nobody of this process in until the last connection to the old log closed.
        let mut two = None;
        eventually("the old files' end", || {
            two = SqliteStore::open(place.options()).ok();
            two.is_some()
        });
        let two = two.expect("the store opened");
        assert_eq!(write(&two, "c", create("new", 3)), Ok(applied(3)), "{how}");
        assert_eq!(write(&one, "c", create("new", 4)), Ok(Outcome::Refused), "{how}");
    }
}

/// O52: SQLite would take the index for one that nobody uses, and cut it off under those who do.
#[test]
#[cfg(target_os = "linux")]
fn a_backup_beside_the_old_index_is_not_opened_while_the_old_file_is() {
    let place = Place::new();
    let store = place.store();
    assert_eq!(write(&store, "c", create("k", 1)), Ok(applied(1)));
    let backup = place.path().with_file_name("backup.db");
    let into = backup.to_str().expect("a path in UTF-8");
    place.application().execute("VACUUM INTO ?1", [into]).expect("a backup");
    fs::rename(&backup, place.path()).expect("it is moved into place");
    for _ in 0..3 {
        let error = SqliteStore::open(place.options()).expect_err("the old index is beside it");
        assert_says(&error, ErrorKind::Unavailable, &["app.db", "-shm", "Stop all nodes"]);
    }
    write(&store, "c", create("k", 2)).expect_err("its file was replaced");
    for suffix in ["-wal", "-shm"] {
        fs::remove_file(format!("{}{suffix}", place.path().display())).expect("it was left there");
    }
    let mut other = None;
    eventually("the new file is opened", || {
        other = SqliteStore::open(place.options()).ok();
        other.is_some()
    });
    eventually("the first uses it too", || write(&store, "c", create("new", 1)).is_ok());
    let other = other.expect("it was opened");
    assert_eq!(find(&other, "c", "new").map(|record| record.version), Some(version(1)));
    assert_eq!(find(&other, "c", "k").map(|record| record.version), Some(version(1)));
}

#[test]
#[cfg(unix)]
fn a_link_that_is_turned_elsewhere_counts_as_a_replaced_file() {
    let place = Place::new();
    let here = place.directory.path();
    let link = here.join("link.db");
    std::os::unix::fs::symlink(here.join("one.db"), &link).expect("a link");
    let store = SqliteStore::open(&link).expect("the store opens");
    write(&store, "c", create("k", 1)).expect("a write");
    assert!(here.join("one.db-wal").exists());
    fs::remove_file(&link).expect("the link");
    std::os::unix::fs::symlink(here.join("two.db"), &link).expect("a link");
    let error = write(&store, "c", change("k", 1, 2)).expect_err("another file");
    assert_says(&error, ErrorKind::Unavailable, &["link.db", "deleted or replaced"]);
    assert_eq!(find(&SqliteStore::open(&link).expect("the store opens"), "c", "k"), None);
}

#[test]
fn a_full_disk_is_unavailable_and_passes() {
    run_with_mounts("full", "mount -t tmpfs -o size=512k none .");
}

#[test]
fn a_file_system_mounted_for_reading_alone_is_rejected() {
    let place = Place::new();
    write(&place.store(), "c", create("k", 1)).expect("a write");
    place.wait_until_closed();
    run_in(&place, "read-only", "mount --bind . . && mount -o remount,bind,ro . && cd .");
}

#[test]
#[cfg(unix)]
fn a_commit_that_fails_in_the_middle_is_unknown() {
    // A limit on the size of files makes a write fail with another error than a full disk.
    let place = Place::new();
    let output = child_after("trap '' XFSZ; ulimit -f 400", "limited", &place).output();
    assert_done("limited", &output.expect("a child"));
}

fn run_with_mounts(role: &str, mounts: &str) {
    run_in(&Place::new(), role, mounts);
}

fn run_in(place: &Place, role: &str, mounts: &str) {
    let Some(mut command) = child_with_mounts(mounts, role, place) else {
        eprintln!("skipped: this process may not mount anything, so {role} can't be tried");
        return;
    };
    assert_done(role, &command.output().expect("a child"));
}

#[test]
#[ignore = "the other tests run it as another process"]
fn child_process() {
    let (role, path) = role().expect("to be run by another test");
    match role.as_str() {
        "full" => on_a_full_disk(&path),
        "read-only" => {
            let error = SqliteStore::open(&path).expect_err("read only");
            assert_says(&error, ErrorKind::Rejected, &["app.db", "mounted for writing"]);
            let error = SqliteStore::open(path.with_file_name("new.db")).expect_err("read only");
            assert_says(&error, ErrorKind::Rejected, &["new.db", "may write there"]);
        }
        "limited" => with_a_limited_log(&path),
        other => panic!("no role {other}"),
    }
    println!("done: {role}");
}

fn with_a_limited_log(path: &Path) {
    let store = SqliteStore::open(path).expect("the store opens");
    write(&store, "c", create("small", 1)).expect("a write");
    let error = write(&store, "c", large("large", 300_000, 2)).expect_err("too large for the log");
    assert_says(&error, ErrorKind::Unknown, &["app.db", "I/O", "(SQLite error", "disk"]);
    // It may have been applied, but here it wasn't, and the store goes on.
    assert_eq!(find(&store, "c", "large"), None);
    assert_eq!(write(&store, "c", change("small", 1, 3)), Ok(applied(3)));
    let fresh = SqliteStore::open(path).expect("the store opens");
    assert_eq!(find(&fresh, "c", "small").expect("a record").version, version(3));
    assert_eq!(find(&fresh, "c", "large"), None);
}

fn large(key: &str, size: usize, attempt: u64) -> Write {
    Write::Put(Put {
        key: Key::new(key),
        expect: Expect::Absent,
        value: vec![b'x'; size],
        stamp: common::stamp(attempt),
        hint: true,
        durable: true,
    })
}

fn on_a_full_disk(path: &Path) {
    let ballast = path.with_file_name("ballast");
    let store = SqliteStore::open(path).expect("the store opens");
    fs::write(&ballast, vec![0; 100_000]).expect("room for some ballast");
    write(&store, "c", create("small", 1)).expect("a write");
    let large = |attempt| large(&format!("large{attempt}"), 20_000, attempt);
    let mut attempt = 1;
    let error = loop {
        attempt += 1;
        assert!(attempt < 1000, "the disk never fills");
        match write(&store, "c", large(attempt)) {
            Ok(outcome) => assert_eq!(outcome, applied(attempt)),
            Err(error) => break error,
        }
    };
    assert!(attempt > 3, "{attempt}");
    assert_says(&error, ErrorKind::Unavailable, &["app.db", "full", "Free some space"]);
    assert_eq!(find(&store, "c", &format!("large{attempt}")), None);
    for earlier in 2..attempt {
        assert!(find(&store, "c", &format!("large{earlier}")).is_some(), "{earlier} is lost");
    }
    fs::remove_file(ballast).expect("the ballast");
    assert_eq!(write(&store, "c", large(attempt + 1)), Ok(applied(attempt + 1)));
    // What was unavailable stays unapplied, also for those who come later.
    assert_eq!(find(&store, "c", &format!("large{attempt}")), None);
    let exchange = Exchange { writes: vec![], reads: vec![read("small")] };
    let reply = block_on(store.exchange("c", Lane::Beat, exchange)).expect("a read");
    assert!(matches!(reply.reads[0], Found::Record(_)));
}
