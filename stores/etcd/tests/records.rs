//! What is written, how it is named, and how many requests that takes.
#![allow(clippy::panic, clippy::expect_used, clippy::indexing_slicing)] // A test fails by panicking, its helpers too.

mod common;

use std::time::Duration;

use common::{
    applied, assert_says, beat, block_on, change, connect, create, find, find_in, fresh, http, put,
    read, send, server, shared, through, write,
};
use incumbent_core::store::{
    ErrorKind, Exchange, Expect, Found, Key, Lane, Outcome, Read, Store, Version, Write,
};
use incumbent_etcd::EtcdStore;
use incumbent_proving::{Mood, Proxy, Wire};

#[test]
fn a_beat_is_exactly_one_request() {
    block_on(async {
        let proxy = Proxy::over(Wire::ETCD, server::shared_port()).await;
        let store = connect(&through(&proxy, &fresh())).await;
        let mut version = applied(&store, create("member/1", "{}")).await;
        send(&store, Lane::Beat, vec![], vec![read("board")]).await.expect("a read");
        let before = proxy.quiet().await;
        let rounds = 20;
        for round in 0..rounds {
            let writes = vec![beat("member/1", &version, &format!("{{\"beat\":{round}}}"))];
            let reads = vec![read("roster/1"), read("board")];
            let reply = send(&store, Lane::Beat, writes, reads).await.expect("a beat");
            let [Outcome::Applied(now)] = &reply.writes[..] else { panic!("{reply:?}") };
            version = now.clone();
        }
        let after = proxy.quiet().await;
        assert_eq!(after.requests - before.requests, rounds, "{before:?} {after:?}");
        assert_eq!(after.connections, before.connections);
        let bytes = after.bytes_up - before.bytes_up + after.bytes_down - before.bytes_down;
        assert!(bytes / rounds < 2_000, "{} bytes a beat", bytes / rounds);
    });
}

#[test]
fn each_lane_and_the_watches_have_a_connection_of_their_own() {
    block_on(async {
        let proxy = Proxy::over(Wire::ETCD, server::shared_port()).await;
        let store = connect(&through(&proxy, &fresh())).await;
        let hints = common::Hints::of(&store, "c").ready().await;
        for _ in 0..3 {
            for lane in [Lane::Beat, Lane::Change, Lane::Watch] {
                send(&store, lane, vec![], vec![read("x")]).await.expect("a read");
            }
        }
        assert_eq!(proxy.quiet().await.connections, 4);
        drop((hints, store));
    });
}

#[test]
fn a_write_is_sent_once_whatever_becomes_of_it() {
    block_on(async {
        let proxy = Proxy::over(Wire::ETCD, server::shared_port()).await;
        let prefix = fresh();
        let store = connect(&through(&proxy, &prefix)).await;
        let version = applied(&store, create("k", "1")).await;
        proxy.set(Mood::LoseAnswers);
        // Connections are made anew meanwhile, so the write is told by its size.
        let value = "2".repeat(100_000);
        let before = proxy.traffic().bytes_up;
        let error = write(&store, change("k", &version, &value)).await.expect_err("no answer");
        assert_says(&error, ErrorKind::Unknown, &["etcd at 127.0.0.1"]);
        let sent = proxy.quiet().await.bytes_up - before;
        assert!((100_000..150_000).contains(&sent), "{sent} bytes");
        proxy.set(Mood::Fine);
        // It had been applied, which nobody could know.
        assert_eq!(find(&store, "k").await.expect("a record").value, value.as_bytes());
        // What was read only is surely not written.
        proxy.set(Mood::LoseAnswers);
        let error = send(&store, Lane::Watch, vec![], vec![read("k")]).await.expect_err("cut");
        assert_eq!(error.kind, ErrorKind::Unavailable, "{error}");
    });
}

#[test]
fn one_exchange_holds_as_much_as_is_declared() {
    block_on(async {
        let proxy = Proxy::over(Wire::ETCD, server::shared_port()).await;
        let store = connect(&through(&proxy, &fresh())).await;
        let most = store.capabilities().max_operations;
        // All of them hinted, which takes most room inside.
        let writes =
            |count: usize| (0..count).map(|n| put(&format!("k{n}"), Expect::Absent, "{}", true));
        let all = send(&store, Lane::Change, writes(most).collect(), vec![]).await.expect("all");
        assert_eq!(all.writes.len(), most);
        let half = writes(most / 2).collect();
        let reads = (0..most - most / 2).map(|n| read(&format!("k{n}"))).collect();
        let before = proxy.quiet().await.requests;
        let reply = send(&store, Lane::Change, half, reads).await.expect("half and half");
        assert_eq!(proxy.quiet().await.requests - before, 1);
        assert!(reply.writes.iter().all(|outcome| *outcome == Outcome::Refused));
        assert!(reply.reads.iter().all(|found| matches!(found, Found::Record(_))));
        let more = writes(most + 3).collect();
        let error = send(&store, Lane::Change, more, vec![]).await.expect_err("too many");
        assert_says(&error, ErrorKind::Rejected, &["too many operations", "--max-txn-ops"]);
        // Whoever writes one key twice is told so before anything is sent.
        let twice = vec![create("a", "1"), Write::Delete(Key::new("a"))];
        let error = send(&store, Lane::Change, twice, vec![]).await.expect_err("twice");
        assert_says(&error, ErrorKind::Rejected, &["a is written twice"]);
    });
}

#[test]
fn more_bytes_than_a_request_holds_are_sent_in_several() {
    block_on(async {
        let store = connect(&shared()).await;
        let value = "x".repeat(300_000);
        let writes = (0..12).map(|n| create(&format!("k{n:02}"), &value)).collect();
        let everything = Read::Prefix(Key::new("k"));
        let reply = send(&store, Lane::Change, writes, vec![everything]).await.expect("all");
        assert!(reply.writes.iter().all(|outcome| matches!(outcome, Outcome::Applied(_))));
        let [Found::Records(records)] = &reply.reads[..] else { panic!("records") };
        assert_eq!(records.len(), 12);
        let large = create("large", &"x".repeat(1024 * 1024 + 1));
        let error = write(&store, large).await.expect_err("too large");
        assert_says(&error, ErrorKind::Rejected, &["large", "1048577"]);
    });
}

#[test]
fn versions_that_etcd_never_gave_match_nothing() {
    block_on(async {
        let store = connect(&shared()).await;
        let version = applied(&store, create("k", "1")).await;
        for text in ["0", "-1", "", "x", &format!("0{}", version.as_str())] {
            let swap = beat("k", &Version::new(text), "2");
            assert_eq!(write(&store, swap).await, Ok(Outcome::Refused), "{text:?}");
            // What is absent has no version at all.
            let swap = beat("absent", &Version::new(text), "2");
            assert_eq!(write(&store, swap).await, Ok(Outcome::Refused), "{text:?}");
        }
        assert_eq!(find(&store, "k").await.expect("a record").version, version);
        assert_eq!(find(&store, "absent").await, None);
        // A deleted record's version is gone for good.
        assert_eq!(write(&store, Write::Delete(Key::new("k"))).await, Ok(Outcome::Deleted));
        let again = applied(&store, create("k", "1")).await;
        assert_ne!(again, version);
        assert_eq!(write(&store, beat("k", &version, "2")).await, Ok(Outcome::Refused));
    });
}

#[test]
fn hostile_prefixes_and_clusters_stay_apart_and_can_be_read() {
    block_on(async {
        let base = shared();
        let mut stores = Vec::new();
        // As a URL would carry them.
        for suffix in
            ["", "/a", "%2Fb", "%20", "'%22;", "%C3%A9%F0%9F%A6%80", "/..", "/~hint", "/="]
        {
            let store = connect(&format!("{base}{suffix}")).await;
            stores.push((suffix, store));
        }
        let clusters = ["c", "a/b", "../c", "c~hint", "", "é\u{301}", "\0\n", "%2F", "*"];
        for (suffix, store) in &stores {
            for cluster in clusters {
                let writes =
                    vec![put("lease/x", Expect::Absent, &format!("{suffix}|{cluster}"), true)];
                let exchange = Exchange { writes, reads: vec![] };
                let reply = store.exchange(cluster, Lane::Change, exchange).await.expect("a write");
                assert!(matches!(reply.writes[..], [Outcome::Applied(_)]), "{suffix} {cluster}");
            }
        }
        for (suffix, store) in &stores {
            for cluster in clusters {
                let found = find_in(store, cluster, "lease/x").await.expect("a record");
                assert_eq!(found.value, format!("{suffix}|{cluster}").as_bytes());
                let everything = vec![Read::Prefix(Key::new(""))];
                let exchange = Exchange { writes: vec![], reads: everything };
                let reply = store.exchange(cluster, Lane::Watch, exchange).await.expect("a list");
                let [Found::Records(records)] = &reply.reads[..] else { panic!("records") };
                assert_eq!(records.len(), 1, "{suffix} {cluster}: {records:?}");
            }
        }
    });
}

#[test]
fn records_are_plain_json_under_readable_keys() {
    block_on(async {
        let url = shared();
        let prefix =
            url.rsplit_once('/').map(|(_, prefix)| format!("/{prefix}")).expect("a prefix");
        let store = connect(&url).await;
        applied(&store, create("lease/scheduler", "{\"term\":7}")).await;
        let key = format!("{prefix}/c/lease/scheduler");
        let question = format!("{{\"key\":\"{}\"}}", base64(key.as_bytes()));
        let body = http::post(server::shared_port(), "/v3/kv/range", &question);
        assert!(body.contains(&base64(b"{\"term\":7}")), "{key}: {body}");
    });
}

#[test]
fn nobody_at_the_other_end_is_unavailable() {
    block_on(async {
        let (one, two) =
            (incumbent_proving::server::free_port(), incumbent_proving::server::free_port());
        let url = format!("etcd://127.0.0.1:{one},127.0.0.1:{two}");
        let error = EtcdStore::connect(&url).await.expect_err("nobody");
        assert_says(&error, ErrorKind::Unavailable, &[&one.to_string(), &two.to_string()]);
        // The next endpoint is tried, in whatever order they stand.
        let port = server::shared_port();
        for hosts in [
            format!("127.0.0.1:{one},127.0.0.1:{port}"),
            format!("127.0.0.1:{port},127.0.0.1:{one}"),
        ] {
            let store = connect(&format!("etcd://{hosts}{}", fresh())).await;
            assert_eq!(find(&store, "x").await, None);
        }
    });
}

#[test]
fn a_server_that_speaks_something_else_is_no_store() {
    block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        tokio::runtime::Handle::current().spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                use tokio::io::AsyncWriteExt;
                let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
            }
        });
        let url = format!("etcd://127.0.0.1:{port}?timeout=1000");
        let answer = tokio::time::timeout(Duration::from_secs(10), EtcdStore::connect(&url)).await;
        let error = answer.expect("an end").expect_err("no etcd");
        assert_eq!(error.kind, ErrorKind::Unavailable, "{error}");
    });
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let number = chunk.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
        let number = number << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let digit = LETTERS[number >> (18 - 6 * place) & 63];
            text.push(if place > chunk.len() { '=' } else { char::from(digit) });
        }
    }
    text
}
