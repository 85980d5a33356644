//! Who is woken, by what, and after what.
#![allow(clippy::panic, clippy::expect_used)] // A test fails by panicking, its helpers too.

mod common;

use common::{
    Hints, Server, applied, beat, block_on, change, connect, create, eventually, fresh, http,
    pause, put, send, server, shared, through, until_readable,
};
use incumbent_core::store::{Expect, Lane};
use incumbent_proving::{Mood, Proxy, Wire};

#[test]
fn a_change_wakes_other_stores_and_a_beat_nobody() {
    block_on(async {
        let url = shared();
        let (writer, waiter) = (connect(&url).await, connect(&url).await);
        let hints = Hints::of(&waiter, "c").ready().await;
        let elsewhere = Hints::of(&waiter, "another").ready().await;
        let mut version = applied(&writer, put("k", Expect::Absent, "0", true)).await;
        eventually("the hint", || hints.count() == 2).await;
        for round in 0..20 {
            version = applied(&writer, beat("k", &version, &round.to_string())).await;
        }
        // A refused write wakes nobody either.
        let refused = put("k", Expect::Absent, "0", true);
        let _ = send(&writer, Lane::Change, vec![refused], vec![]).await.expect("a refusal");
        applied(&writer, change("k", &version, "last")).await;
        eventually("the hint", || hints.count() == 3).await;
        pause(300).await;
        assert_eq!((hints.count(), elsewhere.count()), (3, 1));
    });
}

#[test]
fn several_hinted_writes_of_one_exchange_wake() {
    block_on(async {
        let url = shared();
        let (writer, waiter) = (connect(&url).await, connect(&url).await);
        applied(&writer, create("k0", "0")).await;
        let hints = Hints::of(&waiter, "c").ready().await;
        let writes = (0..5).map(|n| put(&format!("k{n}"), Expect::Absent, "1", true)).collect();
        send(&writer, Lane::Change, writes, vec![]).await.expect("writes");
        eventually("the hint", || hints.count() >= 2).await;
    });
}

#[test]
fn listeners_share_a_watch_and_the_last_one_ends_it() {
    block_on(async {
        let server = Server::start(&[]);
        let store = connect(&server.fresh_url()).await;
        let streams = || http::metric(server.port(), "etcd_debugging_mvcc_watcher_total");
        let (one, two) = (Hints::of(&store, "c").ready().await, Hints::of(&store, "c"));
        eventually("one watch", || streams() == 1).await;
        let other = Hints::of(&store, "d").ready().await;
        eventually("two watches", || streams() == 2).await;
        drop(one);
        applied(&store, put("k", Expect::Absent, "0", true)).await;
        eventually("the hint", || two.count() >= 1).await;
        drop(two);
        eventually("one watch", || streams() == 1).await;
        // What outlives the store wakes no more, and does no harm.
        drop(store);
        eventually("no watch", || streams() == 0).await;
        drop(other);
    });
}

#[test]
fn after_a_lost_connection_everyone_is_woken_once_and_hints_come_again() {
    block_on(async {
        let proxy = Proxy::over(Wire::ETCD, server::shared_port()).await;
        let prefix = fresh();
        let writer = connect(&format!("etcd://127.0.0.1:{}{prefix}", server::shared_port())).await;
        let waiter = connect(&through(&proxy, &prefix)).await;
        let hints = Hints::of(&waiter, "c").ready().await;
        for round in 1..=3 {
            let before = hints.count();
            proxy.cut();
            eventually("the wake-up", || hints.count() > before).await;
            pause(300).await;
            assert_eq!(hints.count(), before + 1, "round {round}");
            applied(&writer, put(&format!("k{round}"), Expect::Absent, "0", true)).await;
            eventually("the hint", || hints.count() == before + 2).await;
        }
    });
}

#[test]
fn hints_come_again_after_a_restart_and_a_compaction() {
    block_on(async {
        let server = Server::start(&[]);
        let store = connect(&server.fresh_url()).await;
        let hints = Hints::of(&store, "c").ready().await;
        let mut version = applied(&store, put("k", Expect::Absent, "0", true)).await;
        for round in 0..50 {
            version = applied(&store, change("k", &version, &round.to_string())).await;
        }
        let json = format!("{{\"revision\":{}}}", version.as_str());
        http::post(server.port(), "/v3/kv/compaction", &json);
        version = applied(&store, change("k", &version, "after compaction")).await;
        eventually("hints", || hints.count() > 3).await;
        pause(200).await;
        let before = hints.count();
        server.kill();
        server.resume();
        until_readable(&store).await;
        eventually("the wake-up", || hints.count() > before).await;
        let before = hints.count();
        applied(&store, change("k", &version, "after restart")).await;
        eventually("the hint", || hints.count() > before).await;
    });
}

#[test]
fn a_watch_whose_path_swallows_everything_is_taken_up_elsewhere() {
    block_on(async {
        // The first endpoint hangs, the second doesn't.
        let port = server::shared_port();
        let (one, two) = (Proxy::over(Wire::ETCD, port).await, Proxy::over(Wire::ETCD, port).await);
        let prefix = fresh();
        let url = format!("etcd://127.0.0.1:{},127.0.0.1:{}{prefix}", one.port(), two.port());
        let waiter = connect(&url).await;
        let hints = Hints::of(&waiter, "c").ready().await;
        let before = hints.count();
        one.set(Mood::Silent);
        two.set(Mood::Silent);
        pause(100).await;
        two.set(Mood::Fine);
        let writer = connect(&format!("etcd://127.0.0.1:{port}{prefix}")).await;
        // Found out by a ping after at most 15 s, unless it was the path that goes on.
        applied(&writer, put("k", Expect::Absent, "0", true)).await;
        eventually("the wake-up", || hints.count() > before).await;
    });
}
