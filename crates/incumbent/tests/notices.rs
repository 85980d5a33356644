//! Subscribers see each change once and in order, whatever others of them do (F25).

mod common;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::{Moody, join, memory, next_event, pause, soon, until};
use incumbent::{Event, OpenStore, State};

#[tokio::test]
async fn elected_and_lost_come_in_pairs_and_in_order() {
    let store = Moody::new();
    let node = join(&OpenStore::from(store.clone()), "a").await;
    let mut notices = node.subscribe();
    let _slow = node.subscribe();
    let called = Arc::new(AtomicUsize::new(0));
    let calls = Arc::clone(&called);
    let _panicking = node.on_notice(move |_| {
        calls.fetch_add(1, Ordering::SeqCst);
        panic!("as planned");
    });
    let mut campaign = node.campaign("scheduler").unwrap();
    // Resigned, dropped, lost by an outage, withdrawn.
    let leadership = soon(campaign.elected()).await.unwrap();
    soon(leadership.release()).await.unwrap();
    drop(soon(campaign.elected()).await.unwrap());
    let leadership = soon(campaign.elected()).await.unwrap();
    store.fail();
    soon(leadership.lost()).await;
    store.recover();
    drop(leadership);
    let leadership = soon(campaign.elected()).await.unwrap();
    drop(campaign);
    soon(leadership.lost()).await;
    drop(leadership);
    soon(node.leave()).await.unwrap();

    let mut held: Option<u64> = None;
    let mut last = 0;
    let mut pairs = 0;
    let mut seen = 0;
    let first = soon(notices.recv()).await.unwrap();
    assert!(matches!(first.event, Event::State(_)), "the state comes first: {first:?}");
    while let Some(notice) = soon(notices.recv()).await {
        seen += 1;
        assert!(notice.at_ms > 1_600_000_000_000);
        match notice.event {
            Event::State(_) => panic!("the state comes once"),
            Event::Elected { term, .. } => {
                assert_eq!(held, None, "F25: elected twice");
                assert!(term > last);
                (held, last) = (Some(term), term);
            }
            Event::Lost { term, .. } => {
                assert_eq!(held.take(), Some(term), "F25: lost without elected");
                pairs += 1;
            }
            _ => {}
        }
    }
    assert_eq!((held, pairs), (None, 4));
    until("the panicking observer saw all", || called.load(Ordering::SeqCst) == seen + 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_observer_holds_up_nobody() {
    let store = memory();
    let node = join(&store, "a").await;
    let mut fresh = true;
    node.on_notice(move |_| {
        if std::mem::take(&mut fresh) {
            std::thread::park_timeout(Duration::from_secs(3));
        }
    })
    .detach();
    let mut notices = node.subscribe();
    let began = incumbent::clock::now();
    let mut campaign = node.campaign("scheduler").unwrap();
    let _leadership = soon(campaign.elected()).await.unwrap();
    let elected = |event: &Event| matches!(event, Event::Elected { .. });
    next_event(&mut notices, elected).await;
    assert!(incumbent::clock::now().since(began) < Duration::from_secs(2));
}

#[tokio::test]
async fn a_late_subscriber_gets_the_state_first() {
    let store = memory();
    let node = join(&store, "a").await;
    let mut campaign = node.campaign("scheduler").unwrap();
    let leadership = soon(campaign.elected()).await.unwrap();
    until("the view is there", || node.members().len() == 1).await;
    let mut notices = node.subscribe();
    let Some(Event::State(State { member, leads, duties, members, .. })) =
        soon(notices.recv()).await.map(|notice| notice.event)
    else {
        panic!("the state comes first");
    };
    assert_eq!(member, node.member());
    assert_eq!(leads, [(leadership.lease().clone(), leadership.number())]);
    assert_eq!(members.len(), 1);
    assert!(duties.is_empty());
    drop(notices);
    drop(leadership);
    let mut again = node.subscribe();
    let freed = |event: &Event| matches!(event, Event::Freed { .. } | Event::State(_));
    next_event(&mut again, freed).await;
}

#[tokio::test]
async fn members_that_come_and_go_are_told() {
    let store = memory();
    let first = join(&store, "first").await;
    let mut notices = first.subscribe();
    let second = join(&store, "second").await;
    let id = second.member().unwrap();
    let joined = |event: &Event| matches!(event, Event::MemberJoined(it) if it.id == id);
    next_event(&mut notices, joined).await;
    soon(second.leave()).await.unwrap();
    let left = |event: &Event| matches!(event, Event::MemberLeft(it) if it.id == id);
    let Event::MemberLeft(member) = next_event(&mut notices, left).await else { unreachable!() };
    assert_eq!(member.state, incumbent::MemberState::Left);
    assert_eq!(member.node, "second");
    assert_eq!(first.members().len(), 2, "who left stays visible for a while");
    assert_eq!(first.metrics().members, 1, "and isn't counted as alive");
}

#[tokio::test]
async fn every_node_sees_the_same_members() {
    let store = memory();
    let mut nodes = Vec::new();
    for name in ["a", "b", "c"] {
        nodes.push(join(&store, name).await);
    }
    until("all see three", || nodes.iter().all(|node| node.members().len() == 3)).await;
    let mut leads = HashMap::new();
    pause(50).await;
    for node in &nodes {
        *leads.entry(node.leads_cluster()).or_insert(0) += 1;
    }
    assert_eq!(leads.get(&true), Some(&1), "one of them keeps the list");
}
