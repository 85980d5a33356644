//! Deploys: nodes of two versions side by side. Nothing that runs stands still for a new version,
//! and what fails on one comes back (O15, O16).
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code, also where it is no test")]

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::ledger::Ledger;
use common::{builder, memory, pause, soon, steady, until};
use incumbent::{
    Basis, Builder, Canary, Cluster, DutyDescription, Family, MemoryStore, Node, OpenStore,
    RolloutStanding, RolloutState, Serving, family,
};
use incumbent_testkit::{Faults, FaultyStore};
use tokio::sync::Semaphore;

/// A family whose duties are listed as a version that its node can run.
fn shards(version: &str, count: usize) -> Family {
    let shard = |at| DutyDescription::named(format!("shard-{at:02}")).version(version);
    family("shard").version(version).duties((0..count).map(shard))
}

/// A node whose reports come soon, and whose trust a busy machine hardly ends.
fn quick(name: &str) -> Builder {
    builder(name).ttl(Duration::from_secs(3))
}

async fn join(
    store: &OpenStore,
    builder: Builder,
    ledger: &Ledger,
    family: Family,
) -> (Node, Serving) {
    let node = soon(builder.join(store)).await.unwrap();
    let (ledger, name) = (ledger.clone(), node.name().to_owned());
    let serving = node.serve(family.run(move |duty| ledger.clone().run(name.clone(), duty)));
    let serving = serving.unwrap();
    (node, serving)
}

async fn rollout(cluster: &Cluster) -> RolloutStanding {
    soon(cluster.rollouts()).await.unwrap().into_iter().next().unwrap()
}

/// Waits until the rollout is as wanted.
async fn until_rollout(cluster: &Cluster, what: &str, wanted: impl Fn(&RolloutStanding) -> bool) {
    let mut last = None;
    for _ in 0..1200 {
        let standing = rollout(cluster).await;
        if wanted(&standing) {
            return;
        }
        last = Some(standing);
        pause(50).await;
    }
    panic!("never came true: {what}: {last:?}");
}

#[tokio::test]
async fn a_new_node_takes_what_it_has_room_for_and_nothing_stands_still() {
    // Seen: 32 shards, room for 10 a node; one node of version 2 joined, and 22 stood still.
    let (store, ledger) = (memory(), Ledger::default());
    let mut old = Vec::new();
    for name in ["old-1", "old-2", "old-3", "old-4"] {
        old.push(join(&store, steady(name).capacity(10), &ledger, shards("1", 32)).await);
    }
    until("all run", || ledger.running().len() == 32).await;
    let new = join(&store, steady("new-1").capacity(10), &ledger, shards("2", 32)).await;
    until("the new node is full", || ledger.loads().get("new-1") == Some(&10)).await;
    until("and all run", || ledger.running().len() == 32).await;
    pause(1_000).await;
    assert_eq!((ledger.running().len(), ledger.loads()["new-1"]), (32, 10), "it stays so");
    let cluster = new.0.cluster();
    let standing = rollout(cluster).await;
    assert_eq!((standing.state, standing.listed), (RolloutState::NoRoom, 32));
    let explained = soon(cluster.explain("shard/shard-31")).await.unwrap().unwrap().to_string();
    assert!(explained.contains("the newest version is 2, by semantic version"), "{explained}");
    ledger.check();
}

#[tokio::test]
async fn what_fails_on_the_new_version_comes_back_and_stays() {
    // Seen: one broken node of version 2 took all 32 and kept failing, drained or not.
    let (store, ledger) = (memory(), Ledger::default());
    let _old = join(&store, quick("old"), &ledger, shards("1", 8)).await;
    ledger.spread(&[("old", 8)]).await;
    let broken = soon(quick("new").join(&store)).await.unwrap();
    let hasty = Duration::from_millis(5);
    let family = shards("2", 8).give_up_after(2).restart_pause(hasty, hasty);
    let serving = broken.serve(family.run(|_| async { Err("no such table: shards_v2".into()) }));
    let _serving = serving.unwrap();
    let cluster = broken.cluster();
    until_rollout(cluster, "all came back", |it| it.versions[0].returned.len() == 8).await;
    ledger.spread(&[("old", 8)]).await;
    pause(1_000).await;
    assert_eq!(ledger.loads().get("old"), Some(&8), "and none tries it again");
    let standing = rollout(cluster).await;
    assert!(standing.state.to_string().contains("no such table"), "{:?}", standing.state);
    let moves = soon(cluster.moves()).await.unwrap();
    let back = moves.iter().any(|it| it.why.contains("back from version 2: it failed"));
    assert!(back, "{moves:?}");
    let again = join(&store, quick("newer"), &ledger, shards("3", 8)).await;
    ledger.spread(&[("newer", 8)]).await;
    drop(again);
    ledger.check();
}

#[tokio::test]
async fn what_ends_its_process_comes_back_too() {
    // Seen: 17 crashes of version 2, each soon after the start, and version 1 looked on.
    let (inner, ledger) = (MemoryStore::new(), Ledger::default());
    let store = OpenStore::from(inner.clone());
    let (old, _serving) = join(&store, builder("old"), &ledger, shards("1", 2)).await;
    ledger.spread(&[("old", 2)]).await;
    let mut crashed = Vec::new();
    let came_back = async || rollout(old.cluster()).await.versions[0].returned.len() == 2;
    'crashes: loop {
        assert!(crashed.len() < 8, "it is tried on and on");
        let path = FaultyStore::new(Arc::new(inner.clone()), Faults::none(1));
        let name = format!("new-{}", crashed.len());
        let node = soon(builder(&name).join(OpenStore::from(path.clone()))).await.unwrap();
        let family = shards("2", 2).run(|duty| async move {
            duty.token().cancelled().await;
            Ok(())
        });
        let serving = node.serve(family).unwrap();
        for _ in 0..500 {
            if came_back().await {
                break 'crashes;
            }
            if serving.running() == 2 {
                break;
            }
            pause(20).await;
        }
        // As if its process had ended.
        path.cut(true);
        crashed.push((node, serving));
        pause(1_500).await;
    }
    assert!(crashed.len() >= 3, "after {}", crashed.len());
    ledger.spread(&[("old", 2)]).await;
}

#[tokio::test]
async fn an_operator_promotes_what_came_back() {
    let (store, ledger) = (memory(), Ledger::default());
    let _old = join(&store, quick("old"), &ledger, shards("1", 3)).await;
    ledger.spread(&[("old", 3)]).await;
    let new = soon(quick("new").join(&store)).await.unwrap();
    let mended = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (works, record) = (Arc::clone(&mended), ledger.clone());
    let hasty = Duration::from_millis(5);
    let family = shards("2", 3).give_up_after(1).restart_pause(hasty, hasty).run(move |duty| {
        let (works, record) = (Arc::clone(&works), record.clone());
        async move {
            if !works.load(std::sync::atomic::Ordering::SeqCst) {
                return Err("not yet".into());
            }
            record.run("new".to_owned(), duty).await
        }
    });
    let _serving = new.serve(family).unwrap();
    let cluster = new.cluster();
    until_rollout(cluster, "all came back", |it| it.versions[0].returned.len() == 3).await;
    ledger.spread(&[("old", 3)]).await;
    mended.store(true, std::sync::atomic::Ordering::SeqCst);
    soon(cluster.promote("shard")).await.unwrap();
    ledger.spread(&[("new", 3)]).await;
    soon(cluster.abort_rollout("shard")).await.unwrap();
    ledger.spread(&[("old", 3)]).await;
    until_rollout(cluster, "aborted", |it| it.state.as_str() == "aborted").await;
    assert!(soon(cluster.promote("unknown")).await.unwrap().intents.is_empty());
    ledger.check();
}

#[tokio::test]
async fn the_old_one_runs_until_the_new_one_is_prepared() {
    let (store, ledger) = (memory(), Ledger::default());
    let _old = join(&store, quick("old"), &ledger, shards("1", 4)).await;
    ledger.spread(&[("old", 4)]).await;
    let gate = Arc::new(Semaphore::new(0));
    let hook = Arc::clone(&gate);
    let family = shards("2", 4).prepare(move |duty| {
        let hook = Arc::clone(&hook);
        async move {
            assert!(duty.name().starts_with("shard-"));
            hook.acquire().await?.forget();
            Ok(())
        }
    });
    let new = join(&store, quick("new"), &ledger, family).await;
    let cluster = new.0.cluster();
    until_rollout(cluster, "all prepare", |it| it.versions[0].preparing.len() == 4).await;
    pause(500).await;
    assert_eq!(ledger.loads().get("old"), Some(&4), "nothing was told to stop");
    gate.add_permits(1);
    until("one changes over", || ledger.loads().get("new") == Some(&1)).await;
    assert_eq!(rollout(cluster).await.state, RolloutState::Moving);
    gate.add_permits(3);
    ledger.spread(&[("new", 4)]).await;
    until_rollout(cluster, "settled", |it| it.state == RolloutState::Settled).await;
    ledger.check();
}

#[tokio::test]
async fn a_hook_that_hangs_on_one_node_holds_up_nothing() {
    let (store, ledger) = (memory(), Ledger::default());
    let _old = join(&store, quick("old"), &ledger, shards("1", 2)).await;
    ledger.spread(&[("old", 2)]).await;
    let new = || shards("2", 2).acknowledge_timeout(Duration::from_millis(200));
    let hangs = new().prepare(|_| std::future::pending());
    let hanging = join(&store, quick("hangs"), &ledger, hangs).await;
    let cluster = hanging.0.cluster();
    until_rollout(cluster, "both prepare", |it| it.versions[0].preparing.len() == 2).await;
    let works = new().prepare(|_| async { Ok(()) });
    let _works = join(&store, quick("works"), &ledger, works).await;
    ledger.spread(&[("works", 2)]).await;
    ledger.check();
}

#[tokio::test]
async fn a_hook_that_hangs_everywhere_speaks_against_its_version() {
    let (store, ledger) = (memory(), Ledger::default());
    let _old = join(&store, builder("old"), &ledger, shards("1", 2)).await;
    ledger.spread(&[("old", 2)]).await;
    let family = shards("2", 2).acknowledge_timeout(Duration::from_millis(200));
    let family = family.prepare(|_| std::future::pending());
    let hanging = join(&store, builder("hangs"), &ledger, family).await;
    let cluster = hanging.0.cluster();
    until_rollout(cluster, "both came back", |it| it.versions[0].returned.len() == 2).await;
    let why = rollout(cluster).await.state.to_string();
    assert!(why.contains("preparing for it did not end in time"), "{why}");
    assert_eq!(ledger.loads().get("old"), Some(&2));
    ledger.check();
}

#[tokio::test]
async fn a_canary_goes_first_and_the_rest_follows_when_it_is_well() {
    let (store, ledger) = (memory(), Ledger::default());
    let _old = join(&store, quick("old"), &ledger, shards("1", 6)).await;
    ledger.spread(&[("old", 6)]).await;
    let canary = Canary::percent(30, Duration::from_secs(3600));
    let new = join(&store, quick("new"), &ledger, shards("2", 6).canary(canary)).await;
    ledger.spread(&[("old", 4), ("new", 2)]).await;
    let cluster = new.0.cluster();
    until_rollout(cluster, "on trial", |it| it.state == RolloutState::OnTrial).await;
    let asked = Canary::duties(3, Duration::from_millis(10));
    soon(cluster.set_canary("shard", Some(asked))).await.unwrap();
    ledger.spread(&[("new", 6)]).await;
    until_rollout(cluster, "promoted", |it| it.versions[0].promoted).await;
    ledger.check();
}

#[tokio::test]
async fn held_families_stay_until_they_are_resumed() {
    let (store, ledger) = (memory(), Ledger::default());
    let (old, _serving) = join(&store, quick("old"), &ledger, shards("1", 4)).await;
    ledger.spread(&[("old", 4)]).await;
    let cluster = old.cluster();
    soon(cluster.hold_rollout("shard")).await.unwrap();
    let _new = join(&store, quick("new"), &ledger, shards("2", 4)).await;
    until_rollout(cluster, "held", |it| it.state == RolloutState::Held).await;
    pause(500).await;
    assert_eq!(ledger.loads().get("old"), Some(&4));
    soon(cluster.resume_rollout("shard")).await.unwrap();
    ledger.spread(&[("new", 4)]).await;
    ledger.check();
}

#[tokio::test]
async fn hashes_go_by_appearance_or_by_a_declared_order() {
    let (store, ledger) = (memory(), Ledger::default());
    let (first, serving) = join(&store, quick("first"), &ledger, shards("f00d123", 4)).await;
    ledger.spread(&[("first", 4)]).await;
    let _second = join(&store, quick("second"), &ledger, shards("0badcaf", 4)).await;
    ledger.spread(&[("second", 4)]).await;
    let cluster = first.cluster();
    let standing = rollout(cluster).await;
    assert_eq!(standing.basis, Basis::Appearance);
    assert_eq!(standing.versions[0].version.as_deref(), Some("0badcaf"));
    // A roll-back to the earlier hash is new again, once its last node has gone.
    drop(serving);
    soon(first.leave()).await.unwrap();
    until_rollout(cluster, "one version", |it| it.versions.len() == 1).await;
    let order = ["f00d123", "0badcaf"];
    let back = join(&store, quick("back"), &ledger, shards("f00d123", 4)).await;
    ledger.spread(&[("back", 4)]).await;
    // And an order that a node declares comes before that.
    let declared = shards("0badcaf", 4).versions_in_order(order);
    let _third = join(&store, quick("third"), &ledger, declared).await;
    until_rollout(cluster, "declared", |it| it.basis == Basis::Declared).await;
    until("they go to the newest again", || !ledger.loads().contains_key("back")).await;
    drop(back);
    ledger.check();
}
