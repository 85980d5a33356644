//! The store that fails on purpose fails in the way it was asked to.

#![allow(clippy::unwrap_used, reason = "what these tests' own helpers find out they assert")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use incumbent_core::store::{
    ErrorKind, Exchange, Expect, Found, Key, Lane, Outcome, Put, Read, Reply, Stamp, Store,
    StoreError, Version, Write,
};
use incumbent_testkit::{Fault, Faults, FaultyStore, ModelStore};

const CLUSTER: &str = "orders";

fn put(key: &str, expect: Expect, attempt: u64) -> Exchange {
    let (key, value) = (Key::new(key), format!("{{\"n\":{attempt}}}").into_bytes());
    let stamp = Stamp { writer: 1, attempt };
    Exchange {
        writes: vec![Write::Put(Put { key, expect, value, stamp, hint: true, durable: true })],
        reads: vec![],
    }
}

async fn send(store: &dyn Store, exchange: Exchange) -> Result<Reply, StoreError> {
    store.exchange(CLUSTER, Lane::Change, exchange).await
}

async fn version(store: &dyn Store, key: &str) -> Option<Version> {
    let read = Read::Key { key: Key::new(key), unless: None };
    let exchange = Exchange { writes: vec![], reads: vec![read] };
    let reply = store.exchange(CLUSTER, Lane::Watch, exchange).await.unwrap();
    match reply.reads.into_iter().next() {
        Some(Found::Record(record)) => Some(record.version),
        _ => None,
    }
}

fn stores(faults: Faults) -> (ModelStore, FaultyStore) {
    let inner = ModelStore::sound();
    let faulty = FaultyStore::new(Arc::new(inner.clone()), faults);
    (inner, faulty)
}

#[tokio::test(start_paused = true)]
async fn each_fault_does_what_it_says() {
    for (fault, kind, applied) in [
        (Fault::Unavailable, ErrorKind::Unavailable, false),
        (Fault::Unsent, ErrorKind::Unknown, false),
        (Fault::Unacknowledged, ErrorKind::Unknown, true),
        (Fault::Silent, ErrorKind::Unknown, true),
    ] {
        let (inner, faulty) = stores(Faults::none(1));
        faulty.fail_next(fault);
        let error = send(&faulty, put("lease/a", Expect::Absent, 1)).await.unwrap_err();
        assert_eq!(error.kind, kind, "{fault:?}");
        assert_eq!(version(&inner, "lease/a").await.is_some(), applied, "{fault:?}");
        assert_eq!(faulty.count(fault), 1);
        assert!(send(&faulty, put("lease/b", Expect::Absent, 2)).await.is_ok(), "once only");
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_write_lands_after_its_error() {
    let (inner, faulty) = stores(Faults::none(5).delay(Duration::from_secs(3)));
    faulty.fail_next(Fault::Late);
    let error = send(&faulty, put("lease/a", Expect::Absent, 1)).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unknown);
    assert_eq!(
        version(&inner, "lease/a").await,
        None,
        "a read that doesn't show it proves nothing"
    );
    faulty.quiet().await;
    assert!(version(&inner, "lease/a").await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_repeated_swap_is_harmless() {
    let (inner, faulty) = stores(Faults::none(1));
    send(&faulty, put("lease/a", Expect::Absent, 1)).await.unwrap();
    let first = version(&inner, "lease/a").await.unwrap();
    faulty.fail_next(Fault::Repeated);
    let reply = send(&faulty, put("lease/a", Expect::Version(first), 2)).await.unwrap();
    let [Outcome::Applied(second)] = reply.writes.as_slice() else { panic!("{reply:?}") };
    assert_eq!(version(&inner, "lease/a").await.as_ref(), Some(second));
}

#[tokio::test(start_paused = true)]
async fn a_held_exchange_is_overtaken() {
    let (inner, faulty) = stores(Faults::none(1).delay(Duration::from_secs(10)));
    faulty.fail_next(Fault::Reordered);
    let held = put("lease/a", Expect::Absent, 1);
    let overtaker = async {
        tokio::task::yield_now().await;
        send(&faulty, put("lease/a", Expect::Absent, 2)).await
    };
    let (held, overtaker) = tokio::join!(send(&faulty, held), overtaker);
    assert_eq!(held.unwrap().writes, [Outcome::Refused]);
    assert!(matches!(overtaker.unwrap().writes.as_slice(), [Outcome::Applied(_)]));
    assert!(version(&inner, "lease/a").await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_cut_store_is_out_of_reach() {
    let (inner, faulty) = stores(Faults::none(1));
    let beside = faulty.beside(Arc::new(inner.clone()));
    let woken = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&woken);
    let wake = Arc::new(move || {
        count.fetch_add(1, Ordering::SeqCst);
    });
    let _guard = beside.hints(CLUSTER, wake).unwrap();
    faulty.cut(true);
    for attempt in 0..10 {
        assert!(send(&beside, put("lease/a", Expect::Absent, attempt)).await.is_err());
    }
    send(&inner, put("lease/b", Expect::Absent, 10)).await.unwrap();
    assert_eq!(version(&inner, "lease/a").await, None);
    assert_eq!((faulty.count(Fault::Cut), woken.load(Ordering::SeqCst)), (10, 0));
    faulty.cut(false);
    assert!(send(&beside, put("lease/a", Expect::Absent, 11)).await.is_ok());
    assert_eq!(woken.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_cut_loses_the_replies_under_way() {
    let (inner, faulty) = stores(Faults::none(1).delay(Duration::from_secs(1)));
    faulty.fail_next(Fault::Silent);
    let cutting = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        faulty.cut(true);
    };
    let (answer, ()) = tokio::join!(send(&faulty, put("lease/a", Expect::Absent, 1)), cutting);
    assert_eq!(answer.unwrap_err().kind, ErrorKind::Unknown);
    assert!(version(&inner, "lease/a").await.is_some());
}

#[tokio::test(start_paused = true)]
async fn hints_are_lost_and_repeated() {
    for (fault, expected) in [(Fault::HintLost, 0), (Fault::HintRepeated, 2)] {
        let (_, faulty) = stores(Faults::none(1).with(fault, 1.0));
        let woken = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&woken);
        let wake = Arc::new(move || {
            count.fetch_add(1, Ordering::SeqCst);
        });
        let _guard = faulty.hints(CLUSTER, wake).unwrap();
        send(&faulty, put("lease/a", Expect::Absent, 1)).await.unwrap();
        assert_eq!(woken.load(Ordering::SeqCst), expected, "{fault:?}");
        assert_eq!(faulty.count(fault), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_script_may_name_the_lane() {
    let (_, faulty) = stores(Faults::none(1));
    faulty.fail_next_on(Lane::Beat, Fault::Unavailable);
    assert!(send(&faulty, Exchange::default()).await.is_ok());
    assert!(faulty.exchange(CLUSTER, Lane::Beat, Exchange::default()).await.is_err());
    assert!(faulty.exchange(CLUSTER, Lane::Beat, Exchange::default()).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_fails_the_same() {
    let mut runs = Vec::new();
    for _ in 0..2 {
        let (_, faulty) = stores(Faults::mixed(9));
        for attempt in 0..300 {
            let _ = send(&faulty, put("lease/a", Expect::Absent, attempt)).await;
        }
        faulty.quiet().await;
        runs.push(faulty.counts());
    }
    assert_eq!(runs[0], runs[1]);
    assert!(runs[0].len() >= 8, "{:?}", runs[0]);
}
