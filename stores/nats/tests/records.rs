//! Records: many, deleted, by hand of an operator, and under hostile names.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // A test fails by panicking, its helpers too.

mod common;

use async_nats::HeaderMap;
use common::{
    Server, apply, beat, create, find, fresh, list, open, put, read, send, shared, write,
};
use incumbent_core::store::{
    ErrorKind, Exchange, Expect, Found, Key, Lane, Outcome, Read, Store as _, Write,
};

#[tokio::test]
async fn a_thousand_records_go_in_one_exchange_and_come_back_in_one() {
    let store = open(&shared()).await;
    let key = |number: usize| format!("lease/{number:05}");
    let writes = (0..1_500).map(|number| create(&key(number))).collect();
    let reply = send(&store, Lane::Change, writes, vec![]).await.unwrap();
    assert!(reply.writes.iter().all(|outcome| matches!(outcome, Outcome::Applied(_))));
    let reads = (0..1_500).map(|number| read(&key(number))).collect();
    let reply = send(&store, Lane::Watch, vec![], reads).await.unwrap();
    assert!(reply.reads.iter().all(|found| matches!(found, Found::Record(_))));
    let listed = list(&store, "lease/").await;
    assert!(listed.iter().map(|record| record.key.to_string()).eq((0..1_500).map(key)));
}

#[tokio::test]
async fn deleted_records_leave_nothing_behind() {
    let store = open(&shared()).await;
    let mut past = Vec::new();
    for _ in 0..5 {
        past.push(apply(&store, create("member/a")).await);
        let deleted = write(&store, Write::Delete(Key::new("member/a"))).await;
        assert_eq!(deleted, Ok(Outcome::Deleted));
        assert!(find(&store, "member/a").await.is_none());
        assert!(list(&store, "").await.is_empty());
    }
    past.dedup();
    assert_eq!(past.len(), 5, "versions never repeat");
    let deleted = write(&store, Write::Delete(Key::new("member/a"))).await;
    assert_eq!(deleted, Ok(Outcome::Deleted), "deleting what is absent succeeds");
}

#[tokio::test]
async fn what_an_operator_deleted_by_hand_is_absent_and_can_be_created() {
    let server = Server::start();
    let bucket = fresh();
    let store = open(&format!("{}?bucket={bucket}", server.url())).await;
    let operator = async_nats::connect(server.url()).await.unwrap();
    for (number, operation) in ["DEL", "PURGE"].into_iter().enumerate() {
        let key = format!("member/{number}");
        let old = apply(&store, create(&key)).await;
        let mut headers = HeaderMap::new();
        headers.insert("KV-Operation", operation);
        if operation == "PURGE" {
            headers.insert("Nats-Rollup", "sub");
        }
        let subject = format!("$KV.{bucket}.c.member.{number}");
        let answer = operator.request_with_headers(subject, headers, "".into()).await.unwrap();
        assert!(!answer.payload.windows(5).any(|part| part == b"error"), "{answer:?}");
        assert!(find(&store, &key).await.is_none());
        assert!(list(&store, &key).await.is_empty());
        assert_eq!(write(&store, beat(&key, &old, "{}")).await, Ok(Outcome::Refused));
        let new = apply(&store, create(&key)).await;
        assert_ne!(old, new);
        assert_eq!(write(&store, create(&key)).await, Ok(Outcome::Refused));
        assert_eq!(find(&store, &key).await.unwrap().version, new);
    }
}

#[tokio::test]
async fn hostile_clusters_stay_apart() {
    let store = open(&shared()).await;
    let long = "é".repeat(2_000);
    let longer = format!("{long}!");
    let clusters =
        ["*", ">", ".", "a.b", "a b", "a\r\nPUB x 0\r\n", "", "=", "$JS.API", &long, &longer];
    for (number, cluster) in clusters.iter().enumerate() {
        let value = number.to_string();
        let writes = vec![put("lease/a", Expect::Absent, &value, true)];
        let reply = store.exchange(cluster, Lane::Change, Exchange { writes, reads: vec![] }).await;
        assert!(matches!(reply.unwrap().writes[..], [Outcome::Applied(_)]), "{cluster:?}");
    }
    for (number, cluster) in clusters.iter().enumerate() {
        let reads = vec![Read::Prefix(Key::new(""))];
        let exchange = Exchange { writes: vec![], reads };
        let reply = store.exchange(cluster, Lane::Watch, exchange).await.unwrap();
        let Some(Found::Records(records)) = reply.reads.first() else { panic!("{reply:?}") };
        assert_eq!(records.len(), 1, "{cluster:?}");
        assert_eq!(records[0].value, number.to_string().as_bytes(), "{cluster:?}");
    }
}

#[tokio::test]
async fn keys_that_mean_something_to_the_server_are_rejected() {
    let store = open(&shared()).await;
    for key in ["", "a.b", "lease/*", ">", "a b", "a\r\nb"] {
        let error = write(&store, create(key)).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Rejected, "{error}");
    }
}

#[tokio::test]
async fn unchanged_records_are_not_sent_again() {
    let store = open(&shared()).await;
    let version = apply(&store, create("lease/a")).await;
    let ask = |unless| Read::Key { key: Key::new("lease/a"), unless: Some(unless) };
    let reply = send(&store, Lane::Watch, vec![], vec![ask(version.clone())]).await.unwrap();
    assert_eq!(reply.reads, [Found::Unchanged]);
    apply(&store, beat("lease/a", &version, "{}")).await;
    let reply = send(&store, Lane::Watch, vec![], vec![ask(version)]).await.unwrap();
    assert!(matches!(reply.reads[..], [Found::Record(_)]));
}
