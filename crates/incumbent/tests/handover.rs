//! Giving a lease up: to whoever comes (F30), to a named node, and who goes first.

mod common;

use std::time::Duration;

use common::{builder, join, memory, pause, soon, spawn, until};
use incumbent::{Candidacy, ClusterError, Loss};

#[tokio::test]
async fn who_resigns_does_not_win_again_at_once() {
    let store = memory();
    let first = join(&store, "first").await;
    let second = join(&store, "second").await;
    let mut mine = first.campaign("scheduler").unwrap();
    let leadership = soon(mine.elected()).await.unwrap();
    let mut theirs = second.campaign("scheduler").unwrap();
    pause(100).await;
    soon(leadership.release()).await.unwrap();
    let next = soon(theirs.elected()).await.unwrap();
    assert_eq!(next.number(), 2, "F30: the other wins, and nobody in between");
    assert!(!first.is_leader("scheduler"));
}

#[tokio::test]
async fn who_resigns_alone_leads_again_after_a_while() {
    let node = join(&memory(), "a").await;
    let mut campaign = node.campaign("scheduler").unwrap();
    soon(soon(campaign.elected()).await.unwrap().release()).await.unwrap();
    assert_eq!(soon(campaign.elected()).await.unwrap().number(), 2);
}

#[tokio::test]
async fn a_transfer_reaches_the_node_that_it_names() {
    let store = memory();
    let leader = join(&store, "leader").await;
    let mut mine = leader.campaign("scheduler").unwrap();
    let leadership = soon(mine.elected()).await.unwrap();
    let mut others = Vec::new();
    for name in ["b", "c", "d"] {
        let node = join(&store, name).await;
        let campaign = node.campaign("scheduler").unwrap();
        others.push((node, campaign));
    }
    pause(100).await;
    let Err((leadership, error)) = soon(leadership.release_to("nobody")).await else {
        panic!("nobody is called that");
    };
    assert!(matches!(error, ClusterError::NoSuchMember { .. }));
    assert!(leadership.is_held(), "nothing was changed");
    soon(leadership.release_to("c")).await.unwrap();
    let (_, campaign) = others.get_mut(1).unwrap();
    let next = soon(campaign.elected()).await.unwrap();
    assert_eq!(next.number(), 2);
    assert_eq!(leader.leader("scheduler").await.unwrap().unwrap().node, "c");
}

/// O49: who resigned stands back, but not once the lease is given to it by name.
#[tokio::test]
async fn a_transfer_reaches_who_has_just_resigned() {
    let store = memory();
    let mut nodes = Vec::new();
    for name in ["a", "b", "c"] {
        let node = join(&store, name).await;
        let campaign = node.campaign("scheduler").unwrap();
        nodes.push((node, campaign));
        if name == "a" {
            until("a leads", || nodes.iter().any(|(node, _)| node.is_leader("scheduler"))).await;
        }
    }
    let [(_a, mine), (_b, theirs), _other] = nodes.as_mut_slice() else { panic!("three") };
    let leadership = soon(mine.elected()).await.unwrap();
    pause(100).await;
    soon(leadership.release_to("b")).await.unwrap();
    let leadership = soon(theirs.elected()).await.unwrap();
    soon(leadership.release_to("a")).await.unwrap();
    let next = soon(mine.elected()).await.unwrap();
    assert_eq!(next.number(), 3, "another took it in between");
}

#[tokio::test]
async fn work_can_hand_over_from_inside() {
    let store = memory();
    let a = join(&store, "a").await;
    let b = join(&store, "b").await;
    let lead = a
        .lead("scheduler", |term| async move {
            term.transfer("b").await?;
            assert!(matches!(term.lost().await.why, Loss::Resigned));
            Ok(())
        })
        .unwrap();
    let mut campaign = b.campaign("scheduler").unwrap();
    let leadership = soon(campaign.elected()).await.unwrap();
    assert!(leadership.is_held() && !lead.is_leader());
}

#[tokio::test]
async fn the_favourite_goes_first_and_a_dead_one_delays_nobody_for_long() {
    let store = memory();
    let holder = join(&store, "holder").await;
    let mut mine = holder.campaign("scheduler").unwrap();
    let leadership = soon(mine.elected()).await.unwrap();
    let (low, high) = (join(&store, "low").await, join(&store, "high").await);
    let mut low_campaign = low.campaign(Candidacy::new("scheduler").priority(0)).unwrap();
    let mut high_campaign = high.campaign(Candidacy::new("scheduler").priority(255)).unwrap();
    pause(100).await;
    drop(mine);
    drop(leadership);
    let won = soon(high_campaign.elected()).await.unwrap();
    assert!(won.is_held());
    soon(high.leave()).await.unwrap_err();
    assert!(soon(low_campaign.elected()).await.unwrap().is_held());
    drop(won);
}

#[tokio::test]
async fn the_longest_running_goes_first() {
    let store = memory();
    let old = join(&store, "old").await;
    let holder = join(&store, "holder").await;
    let mut mine = holder.campaign("scheduler").unwrap();
    let leadership = soon(mine.elected()).await.unwrap();
    pause(3000).await;
    let young = join(&store, "young").await;
    let candidacy = Candidacy::new("scheduler").prefer_longest_running();
    let mut old_campaign = old.campaign(candidacy.clone()).unwrap();
    let _young_campaign = young.campaign(candidacy).unwrap();
    pause(100).await;
    drop(mine);
    drop(leadership);
    assert!(soon(old_campaign.elected()).await.unwrap().is_held());
}

#[tokio::test]
async fn a_node_that_is_not_electable_never_leads() {
    let store = memory();
    let watcher = join(&store, "watcher").await;
    let candidacy = Candidacy::new("scheduler").follow_only();
    let mut campaign = watcher.campaign(candidacy).unwrap();
    let waiting = tokio::time::timeout(Duration::from_millis(2500), campaign.elected()).await;
    assert!(waiting.is_err(), "it would have been elected");
    assert_eq!(watcher.leader("scheduler").await.unwrap(), None);
}

#[tokio::test]
async fn the_payload_and_address_of_the_leader_can_be_read() {
    let store = memory();
    let node = builder("a").address("10.0.0.7:80").join(&store).await.unwrap();
    let candidacy = Candidacy::new("scheduler").payload("queue=7");
    let mut campaign = node.campaign(candidacy).unwrap();
    let leadership = soon(campaign.elected()).await.unwrap();
    let leader = node.leader("scheduler").await.unwrap().unwrap();
    assert_eq!(leader.address.as_deref(), Some("10.0.0.7:80"));
    assert_eq!(leader.payload.as_deref(), Some("queue=7"));
    assert_eq!((leader.node.as_str(), leader.term), ("a", leadership.number()));
    assert!(leader.since_ms.is_some());
}

#[tokio::test]
async fn an_evicted_leader_is_followed_and_joins_anew() {
    let store = memory();
    let doomed = builder("doomed").join(&store).await.unwrap();
    let mut campaign = doomed.campaign("scheduler").unwrap();
    let leadership = soon(campaign.elected()).await.unwrap();
    let heir = join(&store, "heir").await;
    let mut theirs = heir.campaign("scheduler").unwrap();
    let evicted = heir.cluster().evict("doomed").await.unwrap();
    assert_eq!(Some(evicted), doomed.member().or(Some(leadership.member().clone())));
    let waiting = spawn(async move { theirs.elected().await });
    assert_eq!(soon(leadership.lost()).await.why, Loss::Closed(incumbent::MemberState::Evicted));
    drop(leadership);
    assert!(soon(waiting).await.unwrap().is_ok());
    until("it joined anew", || doomed.member().is_some()).await;
}
