//! What is stored and what is found, beyond the conformance kit.

#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // A test fails by panicking, its helpers too.

mod common;

use common::{
    Server, application, applied, beat, block_on, change, connect, create, find, find_in, read,
    send, shared, stamp, version, with_value, write,
};
use incumbent_core::store::{
    ErrorKind, Exchange, Expect, Found, Key, Lane, Outcome, Put, Read, Store, Write,
};

#[test]
fn writes_of_one_key_in_one_exchange_are_each_compared() {
    block_on(async {
        let store = connect(&shared()).await;
        let delete = || Write::Delete(Key::new("k"));
        let writes =
            vec![create("k", 1), create("k", 2), beat("k", 1, 3), delete(), create("k", 4)];
        let reply = send(&store, Lane::Change, writes, vec![]).await.expect("an exchange");
        // In any order at all; this store does them one after another.
        let expected = [applied(1), Outcome::Refused, applied(3), Outcome::Deleted, applied(4)];
        assert_eq!(reply.writes, expected);
        assert_eq!(find(&store, "k").await.expect("a record").version, version(4));
    });
}

#[test]
fn all_kinds_of_writes_and_reads_share_one_exchange() {
    block_on(async {
        let store = connect(&shared()).await;
        for (attempt, key) in (0..).zip(["old", "kept", "below/b", "below/a"]) {
            write(&store, create(key, attempt)).await.expect("a write");
        }
        let writes = vec![
            create("a", 12),
            beat("absent", 9, 13),
            Write::Delete(Key::new("old")),
            change("kept", 1, 14),
            create("below/a", 15),
            Write::Delete(Key::new("never")),
            create("z", 16),
        ];
        let unless =
            |key: &str, attempt| Read::Key { key: Key::new(key), unless: Some(version(attempt)) };
        let reads = vec![
            Read::Prefix(Key::new("below/")),
            read("never"),
            unless("below/a", 3),
            unless("below/b", 3),
            Read::Prefix(Key::new("nothing/")),
            read("below/a"),
            read("below/a"),
        ];
        let reply = send(&store, Lane::Change, writes, reads).await.expect("an exchange");
        let refused = || Outcome::Refused;
        let deleted = || Outcome::Deleted;
        let expected =
            [applied(12), refused(), deleted(), applied(14), refused(), deleted(), applied(16)];
        assert_eq!(reply.writes, expected);
        let [
            Found::Records(below),
            Found::Absent,
            Found::Unchanged,
            Found::Record(changed),
            Found::Records(nothing),
            Found::Record(one),
            Found::Record(two),
        ] = &*reply.reads
        else {
            panic!("{reply:?}")
        };
        let keys: Vec<_> = below.iter().map(|record| record.key.as_str()).collect();
        assert_eq!(keys, ["below/a", "below/b"]);
        assert_eq!(changed.version, version(2));
        assert!(nothing.is_empty());
        assert_eq!(one.version, two.version);
    });
}

#[test]
fn hostile_names_are_kept_apart_and_whole() {
    let names = incumbent_proving::store::HOSTILE;
    block_on(async {
        let store = connect(&shared()).await;
        let mut attempt = 0;
        let long = ["x".repeat(4096), format!("{}y", "x".repeat(4095))];
        let clusters: Vec<&str> =
            names.into_iter().chain([""]).chain(long.iter().map(String::as_str)).collect();
        for cluster in &clusters {
            let writes = names.map(|key| {
                attempt += 1;
                let value = format!("{}|{key}", cluster.len());
                with_value(key, Expect::Absent, attempt, true, &value)
            });
            let exchange = Exchange { writes: writes.to_vec(), reads: vec![] };
            let reply = store.exchange(cluster, Lane::Change, exchange).await.expect("writes");
            assert!(reply.writes.iter().all(|outcome| matches!(outcome, Outcome::Applied(_))));
        }
        for cluster in &clusters {
            for key in names {
                let record = find_in(&store, cluster, key).await.expect("it was written");
                assert_eq!(record.value, format!("{}|{key}", cluster.len()).into_bytes());
            }
            let everything = vec![Read::Prefix(Key::new(""))];
            let exchange = Exchange { writes: vec![], reads: everything };
            let reply = store.exchange(cluster, Lane::Watch, exchange).await.expect("a read");
            let Found::Records(records) = &reply.reads[0] else { panic!("{reply:?}") };
            assert_eq!(records.len(), names.len());
            assert!(records.is_sorted_by(|one, two| one.key < two.key));
        }
    });
}

#[test]
fn what_postgresql_can_t_store_is_rejected_before_anything_is_sent() {
    block_on(async {
        let store = connect(&shared()).await;
        for value in [vec![0], vec![0xff, 0xfe], b"a\0b".to_vec()] {
            let (key, expect) = (Key::new("k"), Expect::Absent);
            let put = Put { key, expect, value, stamp: stamp(1), hint: false, durable: true };
            let writes = vec![create("other", 2), Write::Put(put)];
            let error = send(&store, Lane::Change, writes, vec![]).await.expect_err("no text");
            assert_eq!(error.kind, ErrorKind::Rejected, "{error}");
            assert!(error.message.contains("the value of k"), "{error}");
        }
        assert_eq!(find(&store, "other").await, None);
        let exchange = Exchange { writes: vec![], reads: vec![read("a\0")] };
        let error = store.exchange("c", Lane::Watch, exchange).await.expect_err("no text");
        assert_eq!(error.kind, ErrorKind::Rejected);
        let exchange = Exchange { writes: vec![], reads: vec![read("a")] };
        let error = store.exchange("c\0", Lane::Watch, exchange).await.expect_err("no text");
        assert_eq!(error.kind, ErrorKind::Rejected);
    });
}

#[test]
fn ten_thousand_writes_fit_into_one_exchange_and_ten_thousand_reads() {
    block_on(async {
        let url = shared();
        let store = connect(&url).await;
        let most = store.capabilities().max_operations as u64;
        assert_eq!(most, 10_000);
        // The server counts a table of one row, and plans by that when it has ten thousand.
        write(&store, create("lease", 1)).await.expect("a write");
        let schema = url.split("schema=").nth(1).expect("a schema");
        let analyze = format!("ANALYZE {schema}.incumbent_records");
        application(&url).await.batch_execute(&analyze).await.expect("it counts");
        let key = |number: u64| format!("lease/{number:05}");
        let writes = (1..=most).map(|attempt| create(&key(attempt), attempt)).collect();
        let reply = send(&store, Lane::Change, writes, vec![]).await.expect("writes");
        assert!((1..).zip(&reply.writes).all(|(attempt, outcome)| *outcome == applied(attempt)));
        // Every other swap expects what isn't there.
        let writes = (1..=most)
            .map(|number| change(&key(number), number + number % 2, number + 20_000))
            .collect();
        let reply = send(&store, Lane::Change, writes, vec![]).await.expect("writes");
        assert!((1..).zip(&reply.writes).all(|(number, outcome)| match number % 2 {
            0 => *outcome == applied(number + 20_000),
            _ => *outcome == Outcome::Refused,
        }));
        let reads = (1..=most).map(|number| read(&key(number))).collect();
        let reply = send(&store, Lane::Watch, vec![], reads).await.expect("reads");
        assert_eq!(reply.reads.len(), 10_000);
        assert!(reply.reads.iter().all(|found| matches!(found, Found::Record(_))));
        let everything = vec![Read::Prefix(Key::new("lease/"))];
        let reply = send(&store, Lane::Watch, vec![], everything).await.expect("a read");
        assert!(matches!(&reply.reads[0], Found::Records(records) if records.len() == 10_000));
    });
}

#[test]
fn racing_batches_in_opposite_order_share_the_rows_without_a_deadlock() {
    block_on(async {
        let url = shared();
        let (one, two) = (connect(&url).await, connect(&url).await);
        let key = |number: u64| format!("lease/{number:03}");
        let creations = (0..200).map(|number| create(&key(number), number)).collect();
        send(&one, Lane::Change, creations, vec![]).await.expect("creations");
        let mut held: Vec<u64> = (0..200).collect();
        for round in 1..=20_u64 {
            let swaps = |start: u64| {
                let rows = (0..).zip(&held);
                rows.map(move |(number, held)| change(&key(number), *held, start + number))
            };
            let (forth, back) = (round * 1000, round * 1000 + 500);
            let (first, second) = tokio::join!(
                send(&one, Lane::Change, swaps(forth).collect(), vec![]),
                send(
                    &two,
                    Lane::Change,
                    swaps(back).collect::<Vec<_>>().into_iter().rev().collect(),
                    vec![]
                )
            );
            let (first, mut second) = (first.expect("a batch"), second.expect("a batch"));
            second.writes.reverse();
            for (number, held) in (0..).zip(&mut held) {
                let place = number as usize;
                *held = match (&first.writes[place], &second.writes[place]) {
                    (Outcome::Applied(_), Outcome::Refused) => forth + number,
                    (Outcome::Refused, Outcome::Applied(_)) => back + number,
                    other => panic!("round {round}, {}: {other:?}", key(number)),
                };
            }
        }
    });
}

#[test]
fn people_can_read_the_views() {
    block_on(async {
        let url = shared();
        let store = connect(&url).await;
        let json =
            |key: &str, attempt, value: &str| with_value(key, Expect::Absent, attempt, true, value);
        let lease = r#"{"format":1,"name":"scheduler","term":7,
            "holder":{"member":"m1","node":"billing-1","address":"10.0.0.1:80"}}"#;
        let member =
            r#"{"format":1,"id":"m1","state":"alive","beat":12,"ttl_ms":15000,"due_ms":5000}"#;
        let writes = vec![
            json("lease/scheduler", 1, lease),
            json("lease/broken", 2, "{not json"),
            json("lease/odd", 3, r#"{"term":"seven","name":"\u0000"}"#),
            json("member/m1", 4, member),
            json("view", 5, "{}"),
        ];
        send(&store, Lane::Change, writes, vec![]).await.expect("writes");
        let schema = url.split("schema=").nth(1).expect("a schema").to_owned();
        let application = application(&url).await;
        let row = async |sql: &str| {
            let sql = sql.replace("FROM ", &format!("FROM {schema}.incumbent_"));
            application.query_one(&sql, &[]).await.expect("a row").get::<_, String>(0)
        };
        let sql = "SELECT cluster || name || term || holder || member || address FROM leases \
                   WHERE name = 'scheduler'";
        assert_eq!(row(sql).await, "cscheduler7billing-1m110.0.0.1:80");
        assert_eq!(row("SELECT count(*) || '/' || count(term) FROM leases").await, "3/1");
        let sql = "SELECT id || state || beat || ttl_ms || due_ms FROM members";
        assert_eq!(row(sql).await, "m1alive12150005000");
        let sql = "SELECT count(*)::text FROM leases WHERE abs(extract(epoch from now() - changed)) < 600";
        assert_eq!(row(sql).await, "3");
        assert_eq!(row("SELECT value FROM records WHERE key = 'view'").await, "{}");
    });
}

#[test]
fn clones_share_the_connections_and_the_last_one_closes_them() {
    block_on(async {
        let url = format!("{}&application_name=counted", shared());
        let store = connect(&url).await;
        let clone = store.clone();
        let _guard = clone.hints("c", std::sync::Arc::new(|| ()));
        drop(store);
        for lane in [Lane::Beat, Lane::Change, Lane::Watch] {
            send(&clone, lane, vec![], vec![read("k")]).await.expect("a read");
        }
        let application = application(&url).await;
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'counted %'";
        let wait = async |wanted: i64| {
            for _ in 0..500 {
                let found = application.query_one(sql, &[]).await.expect("a row");
                if found.get::<_, i64>(0) == wanted {
                    return;
                }
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
            panic!("there never were {wanted} sessions");
        };
        wait(3).await;
        drop(clone);
        wait(0).await;
    });
}

#[test]
fn the_table_doesn_t_grow_without_end_under_beats() {
    block_on(async {
        // Transactions of others would keep old versions of the row.
        let server = Server::start(&["fsync=off"]);
        let url = server.fresh_url();
        let store = connect(&url).await;
        assert_eq!(write(&store, create("member/a", 0)).await, Ok(applied(0)));
        for attempt in 1..=3000 {
            let beats = vec![beat("member/a", attempt - 1, attempt)];
            let reply = send(&store, Lane::Beat, beats, vec![]).await.expect("a beat");
            assert_eq!(reply.writes, [applied(attempt)]);
        }
        let schema = url.split("schema=").nth(1).expect("a schema");
        let sql = format!("SELECT pg_total_relation_size('{schema}.incumbent_records')");
        let size = application(&url).await.query_one(&sql, &[]).await.expect("a row");
        let size = size.get::<_, i64>(0);
        // Each beat rewrites its row in the same page.
        assert!(size < 200_000, "{size} bytes");
    });
}
