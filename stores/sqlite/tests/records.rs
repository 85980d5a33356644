//! Compare-and-swap, reads and names, through two stores on one file.
#![allow(clippy::panic)] // A test fails by panicking.

mod common;

use std::time::Duration;

use common::{
    Place, applied, beat, block_on, change, create, find, read, send, stamp, version, write,
};
use incumbent_core::store::{Exchange, Expect, Found, Key, Lane, Outcome, Put, Read, Store, Write};
use incumbent_sqlite::{SqliteOptions, SqliteStore};

#[test]
fn a_write_applies_only_to_what_it_expects_whichever_store_wrote_it() {
    let place = Place::new();
    let (one, two) = (place.store(), place.store());
    assert_eq!(write(&one, "c", beat("k", 9, 1)), Ok(Outcome::Refused));
    assert_eq!(write(&one, "c", create("k", 2)), Ok(applied(2)));
    assert_eq!(write(&two, "c", create("k", 3)), Ok(Outcome::Refused));
    assert_eq!(write(&two, "c", beat("k", 2, 4)), Ok(applied(4)));
    assert_eq!(write(&one, "c", beat("k", 2, 5)), Ok(Outcome::Refused));
    let record = find(&one, "c", "k").expect("it is there");
    assert_eq!(record.version, version(4));
    assert_eq!(record.value, b"{\"format\":1,\"attempt\":4}");
    let age = record.age.expect("the host has a clock");
    assert!(age < Duration::from_secs(600), "{age:?}");
}

#[test]
fn every_lane_sees_what_another_lane_wrote() {
    let place = Place::new();
    let (one, two) = (place.store(), place.store());
    let mut attempt = 0;
    for writer in [Lane::Beat, Lane::Change] {
        for reader in [Lane::Beat, Lane::Change, Lane::Watch] {
            attempt += 1;
            let key = format!("k{attempt}");
            let reply = send(&one, "c", writer, vec![create(&key, attempt)], vec![]);
            assert_eq!(reply.expect("a write").writes, [applied(attempt)]);
            let reply = send(&two, "c", reader, vec![], vec![read(&key)]).expect("a read");
            let Found::Record(record) = &reply.reads[0] else { panic!("{reply:?}") };
            assert_eq!(record.version, version(attempt));
        }
    }
}

#[test]
fn a_refused_write_undoes_no_other_and_all_are_answered_in_order() {
    let place = Place::new();
    let store = place.store();
    write(&store, "c", create("old", 1)).expect("a write");
    let writes = vec![
        create("a", 2),
        beat("absent", 9, 3),
        Write::Delete(Key::new("old")),
        create("z", 4),
        Write::Delete(Key::new("never")),
    ];
    let reads = vec![read("z"), read("never"), Read::Prefix(Key::new("a"))];
    let reply = send(&store, "c", Lane::Change, writes, reads).expect("an exchange");
    let refused = Outcome::Refused;
    assert_eq!(reply.writes, [applied(2), refused, Outcome::Deleted, applied(4), Outcome::Deleted]);
    assert_eq!(reply.reads.len(), 3);
    assert_eq!(reply.reads[1], Found::Absent);
    assert_eq!(find(&store, "c", "old"), None);
    assert!(find(&store, "c", "z").is_some() && find(&store, "c", "a").is_some());
}

#[test]
fn every_exchange_of_several_reads_sees_the_latest_commit() {
    let place = Place::new();
    let (one, two) = (place.store(), place.store());
    write(&two, "c", create("k", 0)).expect("a write");
    for attempt in 1..20 {
        write(&two, "c", change("k", attempt - 1, attempt)).expect("a write");
        for lane in [Lane::Beat, Lane::Change, Lane::Watch] {
            let reads = vec![read("absent"), read("k"), Read::Prefix(Key::new("k"))];
            let reply = send(&one, "c", lane, vec![], reads).expect("reads");
            let [Found::Absent, Found::Record(record), Found::Records(records)] = &*reply.reads
            else {
                panic!("{reply:?}")
            };
            assert_eq!(record.version, version(attempt));
            assert_eq!(records.len(), 1);
            assert_eq!(records[0].version, version(attempt));
        }
    }
}

#[test]
fn a_known_version_is_unchanged_until_it_is_not() {
    let place = Place::new();
    let store = place.store();
    let known = || vec![Read::Key { key: Key::new("k"), unless: Some(version(1)) }];
    let ask = || send(&store, "c", Lane::Watch, vec![], known()).expect("a read").reads.remove(0);
    assert_eq!(ask(), Found::Absent);
    write(&store, "c", create("k", 1)).expect("a write");
    assert_eq!(ask(), Found::Unchanged);
    write(&store, "c", beat("k", 1, 2)).expect("a write");
    let Found::Record(record) = ask() else { panic!("the record changed") };
    assert_eq!(record.version, version(2));
}

#[test]
fn a_prefix_gives_its_records_in_key_order_and_no_others() {
    let place = Place::new();
    let store = place.store();
    let keys = ["member0", "member/b", "member/a", "membe", "lease/x", "member/", "member/a/1"];
    let writes = (1..).zip(keys).map(|(attempt, key)| create(key, attempt)).collect();
    send(&store, "c", Lane::Change, writes, vec![]).expect("writes");
    write(&store, "other", create("member/z", 99)).expect("a write");
    let list = |prefix: &str| {
        let reads = vec![Read::Prefix(Key::new(prefix))];
        let reply = send(&store, "c", Lane::Watch, vec![], reads).expect("a read");
        let Some(Found::Records(records)) = reply.reads.into_iter().next() else {
            panic!("a list")
        };
        records.iter().map(|record| record.key.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(list("member/"), ["member/", "member/a", "member/a/1", "member/b"]);
    assert_eq!(list("nothing"), Vec::<String>::new());
    assert_eq!(list("").len(), keys.len());
    assert_eq!(list("member/%"), Vec::<String>::new());
}

#[test]
fn hostile_names_and_values_are_kept_apart_and_whole() {
    let names = [&incumbent_proving::store::HOSTILE[..], &["", "a\0b", "a\0c", "\0"]].concat();
    let names = names.as_slice();
    for encoding in ["UTF-8", "UTF-16le"] {
        let place = Place::new();
        let application = place.application();
        application
            .execute_batch(&format!("PRAGMA encoding = '{encoding}'; CREATE TABLE t(x)"))
            .expect("the application's table");
        let store = place.store();
        let mut attempt = 0;
        for cluster in names {
            for key in names {
                attempt += 1;
                let value = format!("{cluster}|{key}").into_bytes();
                let put = Put {
                    key: Key::new(key),
                    expect: Expect::Absent,
                    value,
                    stamp: stamp(attempt),
                    hint: true,
                    durable: true,
                };
                assert_eq!(write(&store, cluster, Write::Put(put)), Ok(applied(attempt)));
            }
        }
        for cluster in names {
            for key in names {
                let record = find(&store, cluster, key).expect("it was written");
                assert_eq!(record.key, Key::new(key));
                assert_eq!(record.value, format!("{cluster}|{key}").into_bytes(), "{encoding}");
            }
        }
    }
}

#[test]
fn a_value_of_any_bytes_comes_back_as_it_was() {
    let place = Place::new();
    let store = place.store();
    let values: [Vec<u8>; 5] =
        [vec![], vec![0], vec![0xff, 0xfe, 0], b"{}".to_vec(), vec![b'x'; 1 << 20]];
    for (attempt, value) in (1..).zip(values) {
        let key = Key::new(&attempt.to_string());
        let put = Put {
            key: key.clone(),
            expect: Expect::Absent,
            value: value.clone(),
            stamp: stamp(attempt),
            hint: false,
            durable: true,
        };
        assert_eq!(write(&store, "c", Write::Put(put)), Ok(applied(attempt)));
        assert_eq!(find(&store, "c", key.as_str()).map(|record| record.value), Some(value));
    }
}

#[test]
fn ten_thousand_writes_fit_into_one_exchange() {
    let place = Place::new();
    let store = place.store();
    let most = store.capabilities().max_operations as u64;
    assert_eq!(most, 10_000);
    let writes = (1..=most).map(|attempt| create(&format!("lease/{attempt:05}"), attempt));
    let reply = send(&store, "c", Lane::Change, writes.collect(), vec![]).expect("writes");
    assert!((1..).zip(&reply.writes).all(|(attempt, outcome)| *outcome == applied(attempt)));
    let reads = (1..=most).map(|attempt| read(&format!("lease/{attempt:05}"))).collect();
    let reply = send(&store, "c", Lane::Watch, vec![], reads).expect("reads");
    assert_eq!(reply.reads.len(), 10_000);
    assert!(reply.reads.iter().all(|found| matches!(found, Found::Record(_))));
}

#[test]
fn one_of_many_racing_stores_wins_each_version() {
    let place = Place::new();
    let stores: Vec<_> = (0..4).map(|_| place.store()).collect();
    write(&stores[0], "c", create("k", 0)).expect("a write");
    let mut held = 0;
    for round in 0..25_u64 {
        let outcomes: Vec<_> = std::thread::scope(|scope| {
            let racers: Vec<_> = (1..)
                .zip(&stores)
                .map(|(racer, store)| {
                    let attempt = round * 10 + racer;
                    scope.spawn(move || (attempt, write(store, "c", beat("k", held, attempt))))
                })
                .collect();
            racers.into_iter().map(|racer| racer.join().expect("no panic")).collect()
        });
        let won: Vec<_> = outcomes
            .iter()
            .filter(|(attempt, outcome)| *outcome == Ok(applied(*attempt)))
            .map(|(attempt, _)| *attempt)
            .collect();
        assert_eq!(won.len(), 1, "{outcomes:?}");
        held = won[0];
        assert_eq!(find(&stores[1], "c", "k").expect("a record").version, version(held));
    }
}

#[test]
fn the_application_s_own_tables_and_another_prefix_stay_untouched() {
    let place = Place::new();
    let application = place.application();
    application
        .execute_batch(
            "CREATE TABLE orders(id INTEGER PRIMARY KEY, what TEXT);
                        INSERT INTO orders(what) VALUES ('tea')",
        )
        .expect("the application's table");
    let one = place.store();
    let two = SqliteStore::open(place.options().prefix("Other")).expect("the store opens");
    assert_eq!(write(&one, "c", create("k", 1)), Ok(applied(1)));
    assert_eq!(find(&two, "c", "k"), None);
    assert_eq!(write(&two, "c", create("k", 2)), Ok(applied(2)));
    assert_eq!(find(&one, "c", "k").expect("a record").version, version(1));
    let orders: i64 = application
        .query_row("SELECT count(*) FROM orders", [], |row| row.get(0))
        .expect("a count");
    assert_eq!(orders, 1);
    let mode: String =
        application.query_row("PRAGMA journal_mode", [], |row| row.get(0)).expect("a mode");
    assert_eq!(mode, "wal");
}

#[test]
fn people_can_read_the_views() {
    let place = Place::new();
    let store = place.store();
    let json = |key: &str, attempt, value: &str| {
        Write::Put(Put {
            key: Key::new(key),
            expect: Expect::Absent,
            value: value.as_bytes().to_vec(),
            stamp: stamp(attempt),
            hint: true,
            durable: true,
        })
    };
    let lease = r#"{"format":1,"name":"scheduler","term":7,
        "holder":{"member":"m1","node":"billing-1","address":"10.0.0.1:80"}}"#;
    let member = r#"{"format":1,"id":"m1","state":"alive","beat":12,"ttl_ms":15000,"due_ms":5000}"#;
    let writes = vec![
        json("lease/scheduler", 1, lease),
        json("lease/broken", 2, "{not json"),
        json("member/m1", 3, member),
        json("view", 4, "{}"),
    ];
    send(&store, "c", Lane::Change, writes, vec![]).expect("writes");
    let application = place.application();
    let row =
        |sql: &str| application.query_row(sql, [], |row| row.get::<_, String>(0)).expect("a row");
    assert_eq!(
        row("SELECT cluster || name || term || holder || member || address
             FROM incumbent_leases WHERE name = 'scheduler'"),
        "cscheduler7billing-1m110.0.0.1:80"
    );
    assert_eq!(row("SELECT count(*) || count(term) FROM incumbent_leases"), "21");
    assert_eq!(
        row("SELECT id || state || beat || ttl_ms || due_ms FROM incumbent_members"),
        "m1alive12150005000"
    );
    assert_eq!(row("SELECT typeof(value) FROM incumbent_records WHERE key = 'view'"), "text");
    assert_eq!(
        row("SELECT count(*) || '' FROM incumbent_leases
             WHERE abs(unixepoch() - unixepoch(changed_utc)) < 600"),
        "2"
    );
}

#[test]
fn clones_share_the_connections_and_the_last_one_closes_them() {
    let place = Place::new();
    let store = place.store();
    let clone = store.clone();
    let guard = clone.hints("c", std::sync::Arc::new(|| ())).expect("the store pushes");
    drop(store);
    assert_eq!(write(&clone, "c", change("k", 0, 1)), Ok(Outcome::Refused));
    assert!(place.log().exists());
    drop(clone);
    // The threads end, also while somebody keeps a subscription.
    place.wait_until_closed();
    drop(guard);
}

#[test]
fn an_exchange_that_is_given_up_leaves_the_store_usable() {
    let place = Place::new();
    let store = place.store();
    block_on(async {
        for attempt in 1..50 {
            let exchange = Exchange { writes: vec![create("k", attempt)], reads: vec![] };
            let answer = store.exchange("c", Lane::Change, exchange);
            let _ = tokio::time::timeout(Duration::ZERO, answer).await;
        }
    });
    assert_eq!(write(&store, "c", create("other", 99)), Ok(applied(99)));
}

#[test]
fn the_log_doesn_t_grow_without_end_under_beats_alone() {
    let place = Place::new();
    let store = place.store();
    assert_eq!(write(&store, "c", create("member/a", 0)), Ok(applied(0)));
    for attempt in 1..=6000 {
        let beat = vec![beat("member/a", attempt - 1, attempt)];
        let reply = send(&store, "c", Lane::Beat, beat, vec![]).expect("a beat");
        assert_eq!(reply.writes, [applied(attempt)]);
        if attempt % 300 == 0 {
            // Waits until the other lane has done what the beat left to it.
            send(&store, "c", Lane::Change, vec![], vec![read("member/a")]).expect("a read");
        }
    }
    let size = std::fs::metadata(place.log()).expect("the log").len();
    // 6000 beats write at least 6000 pages of 4096 bytes.
    assert!(size < 12_000_000, "{size} bytes");
}

#[test]
fn options_can_be_given_in_any_form() {
    let place = Place::new();
    let path = place.path();
    let text = path.to_str().expect("a plain path");
    for store in [
        SqliteStore::open(text),
        SqliteStore::open(text.to_owned()),
        SqliteStore::open(&path),
        SqliteStore::open(path.as_path()),
        SqliteStore::open(SqliteOptions::new(&path)),
        SqliteStore::open_url(&format!("sqlite:{text}?busy=100")),
    ] {
        let store = store.expect("the store opens");
        assert_eq!(store.path(), path);
        assert!(store.capabilities().durable);
    }
    let fast = SqliteStore::open_url(&format!("sqlite:{text}?synchronous=normal"));
    assert!(!fast.expect("the store opens").capabilities().durable);
}
