//! Three etcd servers, of which one dies or hangs.
#![allow(clippy::panic, clippy::expect_used)] // A test fails by panicking, its helpers too.

mod common;

use std::time::Duration;

use common::{
    Hints, Server, beat, block_on, connect, create, eventually, find, fresh, pause, send,
};
use incumbent_core::store::{Lane, Outcome, Version};
use incumbent_etcd::EtcdStore;

fn url(servers: &[Server; 3]) -> String {
    let hosts: Vec<_> =
        servers.iter().map(|server| format!("127.0.0.1:{}", server.port())).collect();
    format!("etcd://{}{}?timeout=1500&connect_timeout=500", hosts.join(","), fresh())
}

/// Beats until it has worked three times in a row, as the core would, and says how often it
/// failed. No version is ever lost or taken twice.
async fn beats(store: &EtcdStore, version: &mut Version) -> u32 {
    let (mut good, mut failed, mut count) = (0, 0, 0);
    while good < 3 {
        count += 1;
        assert!(failed < 60, "no beat goes through any more");
        let value = format!("{count}");
        let beat = vec![beat("member/1", version, &value)];
        let sent = send(store, Lane::Beat, beat, vec![]);
        match tokio::time::timeout(Duration::from_secs(1), sent).await {
            Ok(Ok(reply)) => match reply.writes.into_iter().next() {
                Some(Outcome::Applied(now)) => {
                    *version = now;
                    good += 1;
                }
                // An earlier attempt whose outcome was unknown has landed.
                _ => {
                    good = 0;
                    if let Some(found) = find_patiently(store).await {
                        *version = found;
                    }
                }
            },
            Ok(Err(_)) | Err(_) => {
                good = 0;
                failed += 1;
                pause(100).await;
            }
        }
    }
    failed
}

async fn find_patiently(store: &EtcdStore) -> Option<Version> {
    for _ in 0..100 {
        let reads = vec![common::read("member/1")];
        if let Ok(reply) = send(store, Lane::Watch, vec![], reads).await {
            return match reply.reads.into_iter().next() {
                Some(incumbent_core::store::Found::Record(record)) => Some(record.version),
                _ => None,
            };
        }
        pause(100).await;
    }
    panic!("reads never worked again");
}

#[test]
fn one_member_killed_or_its_leader_stopped_costs_a_few_beats() {
    block_on(async {
        let servers = Server::three();
        let store = connect(&url(&servers)).await;
        let hints = Hints::of(&store, "c").ready().await;
        let mut version = common::applied(&store, create("member/1", "0")).await;
        assert_eq!(beats(&store, &mut version).await, 0);

        for killed in &servers {
            killed.kill();
            let failed = beats(&store, &mut version).await;
            println!("a killed member cost {failed} attempts");
            killed.resume();
            assert!(find(&store, "member/1").await.is_some_and(|found| found.version == version));
        }

        eventually("a leader", || servers.iter().any(Server::leads)).await;
        let leader = servers.iter().find(|server| server.leads()).expect("a leader");
        leader.pause(true);
        let failed = beats(&store, &mut version).await;
        println!("a stopped leader cost {failed} attempts");
        // Hints come too, over one of the others.
        let writer = store.clone();
        let before = hints.count();
        let mut woken = false;
        for round in 0..40 {
            let put = common::put(
                &format!("lease/{round}"),
                incumbent_core::store::Expect::Absent,
                "1",
                true,
            );
            let _ = send(&writer, Lane::Change, vec![put], vec![]).await;
            pause(500).await;
            if hints.count() > before {
                woken = true;
                break;
            }
        }
        assert!(woken, "no hint came while the old leader was stopped");
        leader.pause(false);
        pause(500).await;
        assert_eq!(beats(&store, &mut version).await, 0, "the old leader is back");
        let found = find_patiently(&store).await;
        assert_eq!(found.as_ref(), Some(&version));
    });
}
