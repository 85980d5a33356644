//! Several processes on one file, and one that is killed.
#![allow(clippy::panic, clippy::expect_used)] // A test fails by panicking, its helpers too.

mod common;

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use common::{Place, applied, beat, child, create, find, role, send, version, write};
use incumbent_core::store::{Found, Key, Lane, Outcome, Read};
use incumbent_sqlite::SqliteStore;

#[test]
fn what_a_killed_writer_was_acknowledged_is_there() {
    for round in 0..3 {
        let place = Place::new();
        let mut writer = child("writer", &place).stdout(Stdio::piped()).spawn().expect("a child");
        let mut lines = BufReader::new(writer.stdout.take().expect("its output")).lines();
        let mut acknowledged = Vec::new();
        let mut next = || {
            let line = lines.next()?.expect("a line");
            Some(line.strip_prefix("acknowledged ").map(ToOwned::to_owned))
        };
        while acknowledged.len() < 50 + round * 37 {
            acknowledged.extend(next().expect("the writer goes on"));
        }
        writer.kill().expect("a kill");
        // What is in the pipe was acknowledged too.
        while let Some(line) = next() {
            acknowledged.extend(line);
        }
        writer.wait().expect("its end");
        let store = place.store();
        for key in &acknowledged {
            assert!(find(&store, "c", key).is_some(), "{key} of {} is lost", acknowledged.len());
        }
        assert_eq!(write(&store, "c", create("after", 1)), Ok(applied(1)));
    }
}

#[test]
fn processes_that_start_on_a_new_file_at_once_all_get_in() {
    let place = Place::new();
    let children: Vec<_> =
        (0..8).map(|_| child("opener", &place).spawn().expect("a child")).collect();
    for mut child in children {
        assert!(child.wait().expect("its end").success());
    }
    let reads = vec![Read::Prefix(Key::new("opener/"))];
    let reply = send(&place.store(), "c", Lane::Watch, vec![], reads).expect("a read");
    let Some(Found::Records(records)) = reply.reads.first() else { panic!("a list") };
    assert_eq!(records.len(), 8);
}

#[test]
fn increments_by_several_processes_are_neither_lost_nor_doubled() {
    let place = Place::new();
    let children: Vec<_> =
        (0..4).map(|_| child("counter", &place).spawn().expect("a child")).collect();
    for mut child in children {
        assert!(child.wait().expect("its end").success());
    }
    let record = find(&place.store(), "c", "counter").expect("a record");
    assert_eq!(String::from_utf8(record.value).expect("text"), (4 * INCREMENTS).to_string());
}

const INCREMENTS: u64 = 50;

#[test]
#[ignore = "the other tests run it as another process"]
fn child_process() {
    let (role, path) = role().expect("to be run by another test");
    let store = SqliteStore::open(path).expect("the store opens");
    match role.as_str() {
        "writer" => keep_writing(&store),
        "opener" => {
            let key = format!("opener/{}", std::process::id());
            assert_eq!(write(&store, "c", create(&key, 1)), Ok(applied(1)));
            assert_eq!(write(&store, "c", beat(&key, 1, 2)), Ok(applied(2)));
            assert_eq!(find(&store, "c", &key).expect("a record").version, version(2));
        }
        "counter" => count_up(&store),
        other => panic!("no role {other}"),
    }
}

fn keep_writing(store: &SqliteStore) {
    for attempt in 1.. {
        let key = format!("key{attempt}");
        assert_eq!(write(store, "c", create(&key, attempt)), Ok(applied(attempt)));
        println!("\nacknowledged {key}");
    }
}

/// Adds one, many times, by compare-and-swap.
fn count_up(store: &SqliteStore) {
    use incumbent_core::store::{Expect, Put, Write};
    let (mut done, mut attempt) = (0, 0);
    while done < INCREMENTS {
        attempt += 1;
        let found = find(store, "c", "counter");
        let number = found.as_ref().map_or(0, |record| {
            String::from_utf8_lossy(&record.value).parse::<u64>().expect("a number")
        });
        let put = Put {
            key: Key::new("counter"),
            expect: found.map_or(Expect::Absent, |record| Expect::Version(record.version)),
            value: (number + 1).to_string().into_bytes(),
            stamp: common::stamp(attempt),
            hint: true,
            durable: true,
        };
        match write(store, "c", Write::Put(put)) {
            Ok(Outcome::Applied(_)) => done += 1,
            Ok(Outcome::Refused) => {}
            other => panic!("{other:?}"),
        }
    }
}
