//! What the store promises, asked from outside.
#![allow(clippy::expect_used, clippy::panic)] // A test fails by panicking, its helpers too.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use incumbent_core::store::{
    Exchange, Expect, Found, Key, Lane, Outcome, Put, Read, Reply, Stamp, Store, Version, Write,
};
use incumbent_memory::MemoryStore;

/// The store answers at the first poll, so the tests need no runtime.
fn exchange(store: &MemoryStore, cluster: &str, writes: Vec<Write>, reads: Vec<Read>) -> Reply {
    let mut answer = pin!(store.exchange(cluster, Lane::Change, Exchange { writes, reads }));
    match answer.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(reply) => reply.expect("the memory store never fails"),
        Poll::Pending => panic!("the memory store answers at once"),
    }
}

fn put(key: &str, expect: Expect, attempt: u64) -> Write {
    put_hinting(key, expect, attempt, false)
}

fn put_hinting(key: &str, expect: Expect, attempt: u64, hint: bool) -> Write {
    Write::Put(Put {
        key: Key::new(key),
        expect,
        value: format!("{key} {attempt}").into_bytes(),
        stamp: stamp(attempt),
        hint,
        durable: true,
    })
}

fn stamp(attempt: u64) -> Stamp {
    Stamp { writer: 0xfeed, attempt }
}

fn version(attempt: u64) -> Version {
    stamp(attempt).version()
}

fn read(key: &str) -> Read {
    Read::Key { key: Key::new(key), unless: None }
}

fn stored_version(store: &MemoryStore, cluster: &str, key: &str) -> Option<Version> {
    match exchange(store, cluster, vec![], vec![read(key)]).reads.remove(0) {
        Found::Record(record) => Some(record.version),
        Found::Absent => None,
        other => panic!("unexpected {other:?}"),
    }
}

#[test]
fn a_write_applies_only_to_what_it_expects() {
    let store = MemoryStore::new();
    let applied = |attempt| Outcome::Applied(version(attempt));
    let one = |write| exchange(&store, "c", vec![write], vec![]).writes.remove(0);

    assert_eq!(one(put("k", Expect::Version(version(9)), 1)), Outcome::Refused);
    assert_eq!(one(put("k", Expect::Absent, 2)), applied(2));
    assert_eq!(one(put("k", Expect::Absent, 3)), Outcome::Refused);
    assert_eq!(one(put("k", Expect::Version(version(3)), 4)), Outcome::Refused);
    assert_eq!(one(put("k", Expect::Version(version(2)), 5)), applied(5));
    assert_eq!(stored_version(&store, "c", "k"), Some(version(5)));
}

#[test]
fn a_refused_write_undoes_no_other() {
    let store = MemoryStore::new();
    let writes = vec![
        put("a", Expect::Absent, 1),
        put("b", Expect::Version(version(7)), 2),
        put("c", Expect::Absent, 3),
    ];
    let reply = exchange(&store, "c", writes, vec![]);
    assert_eq!(
        reply.writes,
        [Outcome::Applied(version(1)), Outcome::Refused, Outcome::Applied(version(3))]
    );
    assert_eq!(stored_version(&store, "c", "c"), Some(version(3)));
    assert_eq!(stored_version(&store, "c", "b"), None);
}

#[test]
fn a_deleted_record_is_absent_and_deleting_it_again_succeeds() {
    let store = MemoryStore::new();
    exchange(&store, "c", vec![put("k", Expect::Absent, 1)], vec![]);
    for _ in 0..2 {
        let reply = exchange(&store, "c", vec![Write::Delete(Key::new("k"))], vec![]);
        assert_eq!(reply.writes, [Outcome::Deleted]);
        assert_eq!(stored_version(&store, "c", "k"), None);
    }
}

#[test]
fn a_known_version_is_unchanged_until_it_is_not() {
    let store = MemoryStore::new();
    exchange(&store, "c", vec![put("k", Expect::Absent, 1)], vec![]);
    let known = || vec![Read::Key { key: Key::new("k"), unless: Some(version(1)) }];
    assert_eq!(exchange(&store, "c", vec![], known()).reads, [Found::Unchanged]);

    exchange(&store, "c", vec![put("k", Expect::Version(version(1)), 2)], vec![]);
    let Found::Record(record) = exchange(&store, "c", vec![], known()).reads.remove(0) else {
        panic!("the record changed");
    };
    assert_eq!((record.version, record.value), (version(2), b"k 2".to_vec()));
}

#[test]
fn a_prefix_gives_its_records_in_key_order_and_no_others() {
    let store = MemoryStore::new();
    let keys = ["member0", "member/b", "member/a", "membe", "lease/x", "member/", "member/a/1"];
    for (attempt, key) in (1..).zip(keys) {
        exchange(&store, "c", vec![put(key, Expect::Absent, attempt)], vec![]);
    }
    exchange(&store, "other", vec![put("member/z", Expect::Absent, 99)], vec![]);
    let reads = vec![Read::Prefix(Key::new("member/")), Read::Prefix(Key::new("nothing"))];
    let reply = exchange(&store, "c", vec![], reads);
    let Some(Found::Records(records)) = reply.reads.first() else { panic!("a list") };
    let found: Vec<_> = records.iter().map(|record| record.key.as_str()).collect();
    assert_eq!(found, ["member/", "member/a", "member/a/1", "member/b"]);
    assert_eq!(reply.reads[1], Found::Records(vec![]));
}

#[test]
fn clones_share_records_and_clusters_do_not() {
    let store = MemoryStore::new();
    exchange(&store, "c", vec![put("k", Expect::Absent, 1)], vec![]);
    assert_eq!(stored_version(&store.clone(), "c", "k"), Some(version(1)));
    assert_eq!(stored_version(&store, "d", "k"), None);
    assert_eq!(stored_version(&MemoryStore::new(), "c", "k"), None);
}

#[test]
fn only_applied_writes_that_ask_for_it_wake_only_their_cluster() {
    let store = MemoryStore::new();
    let woken = Arc::new(AtomicUsize::new(0));
    let count = || woken.load(Ordering::SeqCst);
    let guard = store.hints("c", {
        let (woken, store) = (Arc::clone(&woken), store.clone());
        // The wake comes back into the store, as it may.
        Arc::new(move || {
            exchange(&store, "c", vec![], vec![read("k")]);
            woken.fetch_add(1, Ordering::SeqCst);
        })
    });
    let send = |cluster: &str, write| exchange(&store, cluster, vec![write], vec![]);

    send("c", put("k", Expect::Absent, 1));
    send("other", put_hinting("k", Expect::Absent, 2, true));
    send("c", put_hinting("k", Expect::Absent, 3, true));
    assert_eq!(count(), 0, "a beat, another cluster and a refused write don't hint");
    send("c", put_hinting("k", Expect::Version(version(1)), 4, true));
    assert_eq!(count(), 1);
    drop(guard);
    send("c", put_hinting("k", Expect::Version(version(4)), 5, true));
    assert_eq!(count(), 1, "nobody listens any more");
}

#[test]
fn one_of_many_racing_writers_wins_each_version() {
    let store = MemoryStore::new();
    exchange(&store, "c", vec![put("k", Expect::Absent, 0)], vec![]);
    let won: usize = std::thread::scope(|scope| {
        let writers: Vec<_> = (1..=8_u64)
            .map(|writer| {
                let store = &store;
                scope.spawn(move || {
                    let write = put("k", Expect::Version(version(0)), writer);
                    let reply = exchange(store, "c", vec![write], vec![]);
                    usize::from(reply.writes != [Outcome::Refused])
                })
            })
            .collect();
        writers.into_iter().map(|writer| writer.join().expect("no panic")).sum()
    });
    assert_eq!(won, 1);
}
