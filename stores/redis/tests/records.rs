//! What ends up in Redis, and what a person may have done to it.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // A test fails by panicking, its helpers too.

mod common;

use std::time::Duration;

use common::{
    Server, applied, beat, create, find, list, open, operator, read, send, shared, version, write,
};
use incumbent_core::store::{ErrorKind, Exchange, Expect, Found, Key, Lane, Outcome, Put, Read};
use incumbent_core::store::{Stamp, Store, Write};
use incumbent_redis::RedisStore;
use redis::Value;

#[tokio::test]
async fn records_are_readable_with_redis_cli() {
    let server = Server::start(&[]);
    let store = open(&server.url()).await;
    write(&store, create("lease/scheduler", 1)).await.unwrap();
    let value = server.command(&["HGET", "{incumbent:c}:records", "lease/scheduler"]);
    assert_eq!(value, Value::BulkString(b"{\"format\":1,\"attempt\":1}".to_vec()));
    let Value::BulkString(stamp) =
        server.command(&["HGET", "{incumbent:c}:records", "lease/scheduler@"])
    else {
        panic!("no stamp")
    };
    let stamp = String::from_utf8(stamp).unwrap();
    let (stamp, written) = stamp.split_once(' ').unwrap();
    assert_eq!(stamp, version(1).as_str());
    assert!(written.parse::<u64>().unwrap() > 1_500_000_000_000);
    assert_eq!(server.command(&["ZCARD", "{incumbent:c}:keys"]), Value::Int(1));
    // A cluster whose records are gone leaves nothing behind.
    write(&store, Write::Delete(Key::new("lease/scheduler"))).await.unwrap();
    assert_eq!(server.command(&["DBSIZE"]), Value::Int(0));
}

#[tokio::test]
async fn refused_writes_undo_nothing_and_reads_come_after_writes() {
    let store = open(&shared()).await;
    let writes = vec![create("a", 1), beat("b", 7, 2), create("a", 3), create("c", 4)];
    let reads = vec![
        read("a"),
        read("b"),
        Read::Key { key: Key::new("c"), unless: Some(version(4)) },
        Read::Prefix(Key::new("")),
    ];
    let reply = send(&store, Lane::Change, writes, reads).await.unwrap();
    assert_eq!(reply.writes, [applied(1), Outcome::Refused, Outcome::Refused, applied(4)]);
    let [Found::Record(a), Found::Absent, Found::Unchanged, Found::Records(all)] =
        reply.reads.as_slice()
    else {
        panic!("{reply:?}")
    };
    assert_eq!((&a.version, all.len()), (&version(1), 2));
}

#[tokio::test]
async fn ten_thousand_records_are_written_and_read_in_order() {
    let store = open(&shared()).await;
    let most = store.capabilities().max_operations;
    let keys: Vec<String> = (0..10_000).map(|number| format!("lease/{number:05}")).collect();
    for (round, some) in keys.chunks(most).enumerate() {
        let writes = some.iter().map(|key| create(key, round as u64 + 1)).collect();
        let reply = send(&store, Lane::Change, writes, vec![]).await.unwrap();
        assert!(reply.writes.iter().all(|outcome| *outcome == applied(round as u64 + 1)));
    }
    // Whoever ignores the limit is served all the same.
    let writes = keys.iter().map(|key| create(key, 99)).collect();
    let reads = keys.iter().map(|key| read(key)).collect();
    let reply = send(&store, Lane::Change, writes, reads).await.unwrap();
    assert!(reply.writes.iter().all(|outcome| *outcome == Outcome::Refused));
    assert!(reply.reads.iter().all(|found| matches!(found, Found::Record(_))));
    let found = list(&store, "lease/").await;
    assert!(found.iter().map(|record| record.key.as_str()).eq(keys.iter().map(String::as_str)));
    assert_eq!(list(&store, "lease/0999").await.len(), 10);
}

#[tokio::test]
async fn hostile_names_reach_nothing_but_their_own_keys() {
    let server = Server::start(&[]);
    let store = open(&server.url()).await;
    server.command(&["SET", "application", "untouched"]);
    let put = |key: &str| {
        Write::Put(Put {
            key: Key::new(key),
            expect: Expect::Absent,
            value: b"\0\r\n$1\r\n*'); redis.call('FLUSHALL')".to_vec(),
            stamp: Stamp { writer: 1, attempt: 1 },
            hint: true,
            durable: true,
        })
    };
    let clusters =
        ["a}b", "{a", "a:records", "*", "a\r\nFLUSHALL\r\n", "é", " ", "'; FLUSHALL", "\0", ""];
    for cluster in clusters {
        let writes = vec![put("lease/a"), put("'..redis.call('FLUSHALL')..'"), put("[x"), put("+")];
        let exchange = Exchange { writes, reads: vec![Read::Prefix(Key::new(""))] };
        let reply = store.exchange(cluster, Lane::Change, exchange).await.unwrap();
        assert!(reply.writes.iter().all(|one| matches!(one, Outcome::Applied(_))), "{cluster:?}");
        let [Found::Records(records)] = reply.reads.as_slice() else { panic!("{reply:?}") };
        assert_eq!(records.len(), 4, "{cluster:?}");
    }
    assert_eq!(server.command(&["GET", "application"]), Value::BulkString(b"untouched".to_vec()));
    let Value::Int(size) = server.command(&["DBSIZE"]) else { panic!("no size") };
    assert_eq!(usize::try_from(size).unwrap(), clusters.len() * 2 + 1);
    // The name of a stamp is no key.
    for key in ["lease/a@", "@"] {
        let error = write(&store, put(key)).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Rejected, "{error}");
    }
    for prefix in ["{a}", "a%20b", "a*", "%0d%0aFLUSHALL", ""] {
        let refused = RedisStore::connect(&format!("{}?prefix={prefix}", server.url())).await;
        assert_eq!(refused.unwrap_err().kind, ErrorKind::Rejected, "{prefix:?}");
    }
}

#[tokio::test]
async fn what_a_person_changed_is_never_taken_for_absent() {
    let server = Server::start(&[]);
    let store = open(&server.url()).await;
    for key in ["stampless", "valueless", "defaced"] {
        write(&store, create(key, 1)).await.unwrap();
    }
    server.command(&["HDEL", "{incumbent:c}:records", "stampless@"]);
    server.command(&["HDEL", "{incumbent:c}:records", "valueless"]);
    server.command(&["HSET", "{incumbent:c}:records", "defaced@", "no time here"]);
    for key in ["stampless", "valueless", "defaced"] {
        let found = find(&store, key).await.expect("still there");
        assert_eq!(write(&store, create(key, 2)).await, Ok(Outcome::Refused), "{key}");
        let repair = Write::Put(Put {
            key: Key::new(key),
            expect: Expect::Version(found.version),
            value: b"{}".to_vec(),
            stamp: common::stamp(3),
            hint: false,
            durable: true,
        });
        assert_eq!(write(&store, repair).await, Ok(applied(3)), "{key}");
        assert_eq!(find(&store, key).await.unwrap().value, b"{}");
    }
    assert_eq!(list(&store, "").await.len(), 3);
}

#[tokio::test]
async fn keys_that_hold_something_else_are_named_and_nothing_is_written() {
    let server = Server::start(&[]);
    let store = open(&server.url()).await;
    for name in ["records", "keys"] {
        let key = format!("{{incumbent:c}}:{name}");
        server.command(&["SET", &key, "mine"]);
        let error = write(&store, create("lease/a", 1)).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Rejected, "{name}: {error}");
        assert!(error.message.contains("prefix="), "{name}: {error}");
        assert_eq!(server.command(&["DBSIZE"]), Value::Int(1), "{name}");
        server.command(&["DEL", &key]);
    }
}

#[tokio::test]
async fn ages_come_from_the_server() {
    let store = open(&shared()).await;
    write(&store, create("member/a", 1)).await.unwrap();
    common::pause(300).await;
    let age = find(&store, "member/a").await.unwrap().age.unwrap();
    assert!(age >= Duration::from_millis(290) && age < Duration::from_secs(20), "{age:?}");
}

#[tokio::test]
async fn databases_and_prefixes_are_apart() {
    let server = Server::start(&[]);
    let urls = ["", "/1", "?prefix=other", "/1?prefix=other"];
    for (place, url) in urls.iter().enumerate() {
        let store = open(&format!("{}{url}", server.url())).await;
        assert_eq!(write(&store, create("a", place as u64)).await, Ok(applied(place as u64)));
    }
    let missing = RedisStore::connect(&format!("{}/99", server.url())).await.unwrap_err();
    assert_eq!(missing.kind, ErrorKind::Rejected);
    assert!(missing.message.contains("Name a database"), "{missing}");
    assert!(operator(&server.url(), &["PING"]).is_ok());
}
