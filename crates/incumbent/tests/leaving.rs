//! Leaving: work, then leases, then the member; in order or not, but always within bounds.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::{Moody, builder, join, memory, next_event, pause, soon, until};
use incumbent::{Attempt, Event, Finish, LeaveError, Loss, MemberState, OpenStore};

#[tokio::test]
async fn work_ends_then_leases_are_freed_then_the_member_leaves() {
    let store = memory();
    let node = join(&store, "a").await;
    let id = node.member().unwrap();
    let mut notices = node.subscribe();
    let ended = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&ended);
    let lead = node
        .lead("scheduler", move |term| {
            let ended = Arc::clone(&flag);
            async move {
                assert_eq!(term.lost().await.why, Loss::Leaving);
                pause(200).await;
                ended.store(true, Ordering::SeqCst);
                Ok(())
            }
        })
        .unwrap();
    until("it leads", || lead.is_leader()).await;
    soon(node.leave()).await.unwrap();
    assert!(ended.load(Ordering::SeqCst), "F10");
    assert_eq!(soon(lead.finished()).await, Finish::NodeLeft);
    let lost = |event: &Event| matches!(event, Event::Lost { .. } | Event::Ended { .. });
    assert!(matches!(next_event(&mut notices, lost).await, Event::Lost { why: Loss::Leaving, .. }));
    next_event(&mut notices, |event| *event == Event::Left).await;
    assert!(soon(notices.recv()).await.is_none(), "nothing comes after it has left");
    let members = soon(node.cluster().members()).await.unwrap();
    let left = members.iter().find(|member| member.id == id).unwrap();
    assert_eq!(left.state, MemberState::Left);
    soon(node.leave()).await.unwrap();
    assert!(node.try_lead("scheduler").await.is_err());
}

#[tokio::test]
async fn others_take_over_at_once_after_an_orderly_departure() {
    let store = memory();
    let slow = builder("slow").ttl(Duration::from_secs(60)).join(&store).await.unwrap();
    let lead = slow
        .lead("scheduler", |term| async move {
            term.lost().await;
            Ok(())
        })
        .unwrap();
    until("it leads", || lead.is_leader()).await;
    let heir = join(&store, "heir").await;
    let mut campaign = heir.campaign("scheduler").unwrap();
    pause(50).await;
    soon(slow.leave()).await.unwrap();
    assert_eq!(soon(campaign.elected()).await.unwrap().number(), 2, "long before the ttl of 60 s");
}

#[tokio::test]
async fn dropping_the_last_handle_leaves_in_the_background() {
    let store = memory();
    let node = builder("a").ttl(Duration::from_secs(60)).join(&store).await.unwrap();
    let cluster = node.cluster().clone();
    let lead = node
        .lead("scheduler", |term| async move {
            term.lost().await;
            Ok(())
        })
        .unwrap();
    until("it leads", || lead.is_leader()).await;
    drop(node);
    pause(100).await;
    assert!(lead.is_leader(), "the lead is a handle too");
    drop(lead);
    soon(async {
        loop {
            let members = cluster.members().await.unwrap();
            if members.iter().all(|member| member.state == MemberState::Left) {
                return;
            }
            pause(10).await;
        }
    })
    .await;
    assert_eq!(soon(cluster.leader("scheduler")).await.unwrap(), None);
}

#[tokio::test]
async fn a_node_that_is_dropped_while_it_joins_leaves_no_live_member() {
    let store = memory();
    let cluster = incumbent::Cluster::new(&store, "test").unwrap();
    for micros in 0..40 {
        let joining = builder("a").join(&store);
        let _ = tokio::time::timeout(Duration::from_micros(micros * 10), joining).await;
    }
    soon(async {
        while soon(cluster.members()).await.unwrap().iter().any(|member| member.is_alive()) {
            pause(10).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_that_will_not_end_is_left_behind() {
    let store = memory();
    let node = builder("a").grace(Duration::from_millis(200)).join(&store).await.unwrap();
    let release = Arc::new(AtomicBool::new(false));
    let released = Arc::clone(&release);
    let lead = node
        .lead_blocking("scheduler", move |_| {
            while !released.load(Ordering::SeqCst) {
                std::thread::park_timeout(Duration::from_millis(5));
            }
            Ok(())
        })
        .unwrap();
    until("it leads", || lead.is_leader()).await;
    let term = lead.term().unwrap();
    let Err(LeaveError::WorkStillRuns { leases, .. }) = soon(node.leave()).await else {
        panic!("the work still runs");
    };
    assert_eq!(leases.len(), 1);
    assert!(!term.is_held(), "nothing is trusted any more");
    // Others wait for the ttl, because nobody knows when the work ends.
    let heir = join(&store, "heir").await;
    let attempt = soon(heir.try_lead("scheduler")).await.unwrap();
    assert!(matches!(attempt, Attempt::OtherLeader(_)), "{attempt:?}");
    let mut campaign = heir.campaign("scheduler").unwrap();
    assert!(soon(campaign.elected()).await.is_ok());
    release.store(true, Ordering::SeqCst);
}

#[tokio::test]
async fn a_store_that_is_away_does_not_hold_up_a_departure() {
    let store = Moody::new();
    let node = join(&OpenStore::from(store.clone()), "a").await;
    store.hang();
    assert_eq!(soon(node.leave()).await, Err(LeaveError::Unconfirmed));
}

#[tokio::test]
async fn a_leadership_that_is_kept_is_told_and_then_left_behind() {
    let store = memory();
    let node = builder("a").grace(Duration::from_millis(100)).join(&store).await.unwrap();
    let mut campaign = node.campaign("scheduler").unwrap();
    let leadership = soon(campaign.elected()).await.unwrap();
    assert!(matches!(soon(node.leave()).await, Err(LeaveError::WorkStillRuns { .. })));
    assert!(!leadership.is_held());
    assert_eq!(soon(leadership.lost()).await.why, Loss::Leaving);
    assert!(soon(campaign.elected()).await.is_err(), "the node has left");
}
