//! Looking at a file: nothing is made, nothing is in the way, and nothing is missed (O36).

#![allow(clippy::expect_used, clippy::panic)] // A test fails by panicking, its helpers too.

mod common;

use std::path::Path;

use common::{Place, applied, create, find, write};
use incumbent_core::store::{Access, ErrorKind};
use incumbent_sqlite::SqliteStore;

fn look(place: &Place) -> SqliteStore {
    SqliteStore::open(place.options().access(Access::Look)).expect("it can be looked at")
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("a directory");
    let mut names: Vec<_> = entries
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
        .collect();
    names.sort();
    names
}

#[test]
fn o36_what_comes_and_goes_is_seen_by_one_who_looks() {
    let place = Place::new();
    let looker = look(&place);
    assert!(find(&looker, "c", "k").is_none(), "there is no file");
    assert_eq!(names(place.directory.path()), Vec::<String>::new());

    // One process may look and take part, in whatever order.
    let store = place.store();
    assert_eq!(write(&store, "c", create("k", 1)), Ok(applied(1)));
    assert!(find(&looker, "c", "k").is_some(), "in the log");
    drop(store);
    let store = place.store();
    assert_eq!(write(&store, "c", create("l", 2)), Ok(applied(2)));
    assert!(find(&looker, "c", "l").is_some());
    drop((store, looker));
    place.wait_until_closed();

    // Nobody has it open: all is in the file, and looking leaves it so.
    let looker = look(&place);
    assert!(find(&looker, "c", "l").is_some());
    assert_eq!(names(place.directory.path()), ["app.db"]);
    let store = place.store();
    assert_eq!(write(&store, "c", create("m", 3)), Ok(applied(3)));
    assert!(find(&looker, "c", "m").is_some(), "it is in use again");
}

#[test]
fn o36_a_log_that_a_dead_process_left_is_read() {
    let place = Place::new();
    let store = place.store();
    assert_eq!(write(&store, "c", create("k", 1)), Ok(applied(1)));
    // As if its process had been killed: the log stays, and nobody has it open.
    let left = copy(&place, &["", "-wal", "-shm"]);
    let before = names(left.directory.path());
    assert!(find(&look(&left), "c", "k").is_some());
    assert_eq!(names(left.directory.path()), before);

    let left = copy(&place, &["", "-wal"]);
    let refused = SqliteStore::open(left.options().access(Access::Look));
    let error = refused.expect_err("the log can't be read");
    assert_eq!(error.kind, ErrorKind::Rejected);
    assert!(error.message.contains("-shm") && error.message.contains("store init"), "{error}");
    // Who may write puts that right.
    assert!(find(&left.store(), "c", "k").is_some());
}

fn copy(place: &Place, suffixes: &[&str]) -> Place {
    let copy = Place::new();
    for suffix in suffixes {
        let name = format!("app.db{suffix}");
        let from = place.directory.path().join(&name);
        std::fs::copy(from, copy.directory.path().join(&name)).expect("a copy");
    }
    copy
}

#[test]
fn o36_one_who_looks_writes_nothing() {
    let place = Place::new();
    let store = place.store();
    let looker = look(&place);
    let error = write(&looker, "c", create("k", 1)).expect_err("it may only look");
    assert_eq!(error.kind, ErrorKind::Rejected, "{error}");
    assert!(find(&store, "c", "k").is_none());
}

#[test]
fn o40_a_store_that_was_dropped_can_be_waited_for() {
    let place = Place::new();
    for number in 1..=20 {
        let store = place.store();
        assert_eq!(write(&store, "c", create(&format!("k{number}"), number)), Ok(applied(number)));
        drop(store);
        assert!(incumbent_sqlite::until_closed(std::time::Duration::from_secs(60)));
        assert_eq!(names(place.directory.path()), ["app.db"], "neither a log nor its index");
    }
}
