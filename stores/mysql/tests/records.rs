//! Records of every size, number and name.
#![allow(clippy::panic, clippy::expect_used, clippy::indexing_slicing)] // A test fails by panicking, its helpers too.

mod common;

use common::{
    application, applied, assert_says, block_on, change, connect, create, find, find_in, prefix,
    put, read, run, send, shared, version, with_value, write,
};
use incumbent_core::store::{
    ErrorKind, Exchange, Expect, Found, Key, Lane, Outcome, Put, Read, Store, Version, Write,
};
use mysql_async::prelude::Queryable;

const EVIL: [&str; 10] = [
    "'; DROP TABLE incumbent_records; --",
    "\\'; SELECT SLEEP(9); #",
    "` OR 1=1 -- ",
    "a\0b",
    "\u{1a}\n\r\t\u{8}",
    "%",
    "_",
    "trailing ",
    "🦀\u{202e}",
    "x'00' UNION SELECT 1",
];

/// For exchanges that are large, on machines that may be slow.
fn patient() -> String {
    format!("{}&timeout=120000", shared())
}

#[test]
fn hostile_names_and_values_stay_what_they_are() {
    block_on(async {
        let store = connect(&shared()).await;
        let mut attempt = 0;
        for cluster in EVIL {
            for key in EVIL {
                attempt += 1;
                let value = format!("{cluster} {key}");
                let put = with_value(key, Expect::Absent, attempt, &value);
                let exchange = Exchange { writes: vec![put], reads: vec![read(key)] };
                let reply = store.exchange(cluster, Lane::Change, exchange).await;
                assert_eq!(reply.expect("an exchange").writes, [applied(attempt)]);
                let found = find_in(&store, cluster, key).await.expect("the record");
                assert_eq!(found.value, value.as_bytes());
            }
            let all = vec![Read::Prefix(Key::new(""))];
            let exchange = Exchange { writes: vec![], reads: all };
            let reply = store.exchange(cluster, Lane::Watch, exchange).await.expect("a read");
            let [Found::Records(records)] = &reply.reads[..] else { panic!("{reply:?}") };
            let mut keys: Vec<_> = records.iter().map(|record| record.key.as_str()).collect();
            assert!(keys.is_sorted(), "{keys:?}");
            keys.sort_unstable();
            let mut evil = EVIL;
            evil.sort_unstable();
            assert_eq!(keys, evil);
        }
        // A version from outside is compared and nothing else.
        for version in EVIL {
            let put = put(EVIL[0], Expect::Version(Version::new(version)), 9999);
            let exchange = Exchange { writes: vec![put], reads: vec![] };
            let reply = store.exchange(EVIL[0], Lane::Change, exchange).await.expect("a swap");
            assert_eq!(reply.writes, [Outcome::Refused]);
        }
    });
}

#[test]
fn clusters_of_any_length_stay_apart() {
    block_on(async {
        let store = connect(&shared()).await;
        let long = "é".repeat(2000);
        let clusters = [long.clone(), format!("{long}x"), "é".repeat(127), "é".repeat(128)];
        for (number, cluster) in (1..).zip(&clusters) {
            let exchange = Exchange { writes: vec![create("k", number)], reads: vec![] };
            let reply = store.exchange(cluster, Lane::Change, exchange).await.expect("a write");
            assert_eq!(reply.writes, [applied(number)]);
        }
        for (number, cluster) in (1..).zip(&clusters) {
            let found = find_in(&store, cluster, "k").await.expect("a record");
            assert_eq!(found.version, version(number));
        }
    });
}

#[test]
fn what_can_t_be_stored_is_refused_before_anything_is_sent() {
    block_on(async {
        let store = connect(&shared()).await;
        let broken = Write::Put(Put {
            key: Key::new("k"),
            expect: Expect::Absent,
            value: vec![0xff, 0xfe],
            stamp: common::stamp(1),
            hint: false,
            durable: true,
        });
        let writes = vec![create("other", 2), broken];
        let error = send(&store, Lane::Change, writes, vec![]).await.expect_err("no text");
        assert_says(&error, ErrorKind::Rejected, &["UTF-8", "k"]);
        let most = store.capabilities().max_value;
        let large = with_value("k", Expect::Absent, 3, &"x".repeat(most + 1));
        let error = write(&store, large).await.expect_err("too large");
        assert_says(&error, ErrorKind::Rejected, &["max_allowed_packet"]);
        let error = write(&store, create(&"k".repeat(256), 4)).await.expect_err("too long");
        assert_says(&error, ErrorKind::Rejected, &["255"]);
        assert_eq!(find(&store, "other").await, None);
    });
}

#[test]
fn ten_thousand_records_go_in_one_exchange() {
    block_on(async {
        let store = connect(&patient()).await;
        let key = |number: u64| format!("lease/{number:05}");
        let creations = (0..10_000).map(|number| create(&key(number), number)).collect();
        let reply = send(&store, Lane::Change, creations, vec![]).await.expect("creations");
        assert!(reply.writes.into_iter().eq((0..10_000).map(applied)));
        let changes = (0..10_000).map(|n| change(&key(n), n, n + 10_000)).collect();
        let reply = send(&store, Lane::Change, changes, vec![]).await.expect("changes");
        assert!(reply.writes.into_iter().eq((10_000..20_000).map(applied)));
        let asks = (0..10_000).map(|number| read(&key(number))).collect();
        let reply = send(&store, Lane::Watch, vec![], asks).await.expect("reads");
        for (number, found) in (10_000..).zip(&reply.reads) {
            let Found::Record(record) = found else { panic!("{number}: {found:?}") };
            assert_eq!(record.version, version(number));
        }
        let all = vec![Read::Prefix(Key::new("lease/"))];
        let reply = send(&store, Lane::Watch, vec![], all).await.expect("a read");
        let [Found::Records(records)] = &reply.reads[..] else { panic!("no records") };
        assert_eq!(records.len(), 10_000);
    });
}

#[test]
fn more_than_a_packet_takes_is_sent_in_several() {
    block_on(async {
        let store = connect(&patient()).await;
        let value = format!("\"{}\"", "x".repeat(1_000_000));
        let put =
            |number: u64| with_value(&format!("lease/{number:02}"), Expect::Absent, number, &value);
        let reads = vec![Read::Prefix(Key::new("lease/"))];
        let reply = send(&store, Lane::Change, (0..20).map(put).collect(), reads).await;
        let reply = reply.expect("an exchange of 20 MB");
        assert!(reply.writes.into_iter().eq((0..20).map(applied)));
        let [Found::Records(records)] = &reply.reads[..] else { panic!("no records") };
        assert_eq!(records.len(), 20);
        assert!(records.iter().all(|record| record.value == value.as_bytes()));
    });
}

#[test]
fn a_refused_write_among_many_undoes_no_other() {
    block_on(async {
        let store = connect(&shared()).await;
        write(&store, create("b", 1)).await.expect("a record");
        let writes = vec![
            create("c", 2),
            create("b", 3),
            change("b", 1, 4),
            change("absent", 1, 5),
            Write::Delete(Key::new("gone")),
            create("a", 6),
            change("b", 1, 7),
        ];
        let reply = send(&store, Lane::Change, writes, vec![read("b")]).await.expect("writes");
        let [refused, deleted] = [Outcome::Refused, Outcome::Deleted];
        let expected = [
            applied(2),
            refused.clone(),
            applied(4),
            refused.clone(),
            deleted,
            applied(6),
            refused,
        ];
        assert_eq!(reply.writes, expected);
        assert_eq!(find(&store, "b").await.expect("b").version, version(4));
    });
}

#[test]
fn what_the_reader_has_isn_t_sent_again() {
    block_on(async {
        let store = connect(&shared()).await;
        write(&store, create("k", 1)).await.expect("a record");
        let unless =
            |attempt: u64| Read::Key { key: Key::new("k"), unless: Some(version(attempt)) };
        let reads = vec![unless(1), unless(2), read("k"), read("absent")];
        let reply = send(&store, Lane::Watch, vec![], reads).await.expect("reads");
        assert_eq!(reply.reads[0], Found::Unchanged);
        assert!(matches!(reply.reads[1], Found::Record(_)));
        assert!(matches!(reply.reads[2], Found::Record(_)));
        assert_eq!(reply.reads[3], Found::Absent);
        let reply = send(&store, Lane::Watch, vec![], vec![unless(1)]).await.expect("a read");
        assert_eq!(reply.reads, [Found::Unchanged]);
    });
}

#[test]
fn a_row_locked_by_the_application_refuses_a_change_and_delays_no_other_lane() {
    block_on(async {
        let url = shared();
        let store = connect(&url).await;
        write(&store, create("k", 1)).await.expect("a record");
        let mut application = application(&url).await;
        run(&mut application, "BEGIN").await;
        let lock = format!("SELECT * FROM {}records WHERE `key` = 'k' FOR UPDATE", prefix(&url));
        application.query_drop(lock).await.expect("a lock");
        assert_eq!(write(&store, change("k", 1, 2)).await, Ok(Outcome::Refused));
        let delete = Write::Delete(Key::new("k"));
        assert_eq!(write(&store, delete).await, Ok(Outcome::Refused));
        // A beat that had to wait was surely not applied, and is tried again by the core.
        let beat = send(&store, Lane::Beat, vec![change("k", 1, 3)], vec![]).await;
        assert_says(&beat.expect_err("locked"), ErrorKind::Unavailable, &["lock"]);
        for lane in [Lane::Beat, Lane::Watch] {
            let reply = send(&store, lane, vec![], vec![read("k")]).await.expect("a read");
            let Found::Record(record) = &reply.reads[0] else { panic!("{reply:?}") };
            assert_eq!(record.version, version(1));
        }
        run(&mut application, "COMMIT").await;
        assert_eq!(write(&store, change("k", 1, 4)).await, Ok(applied(4)));
    });
}

#[test]
fn opposite_orders_come_to_no_deadlock() {
    // F21: batches lock rows in the order of their keys, whatever the order they come in.
    block_on(async {
        let url = shared();
        let (one, two) = (connect(&url).await, connect(&url).await);
        let keys: Vec<_> = (0..50).map(|number| format!("lease/{number:02}")).collect();
        let creations = keys.iter().map(|key| create(key, 1)).collect();
        send(&one, Lane::Change, creations, vec![]).await.expect("creations");
        let changes = |round: u64, keys: Vec<&String>| -> Vec<Write> {
            keys.into_iter().map(|key| put(key, Expect::Version(version(1)), round)).collect()
        };
        for round in 2..30 {
            let forth = changes(round * 2, keys.iter().collect());
            let back = changes(round * 2 + 1, keys.iter().rev().collect());
            let (forth, back) = tokio::join!(
                send(&one, Lane::Change, forth, vec![]),
                send(&two, Lane::Change, back, vec![])
            );
            forth.expect("no deadlock");
            back.expect("no deadlock");
        }
    });
}
