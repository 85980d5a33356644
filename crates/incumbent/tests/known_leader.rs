//! Who leads, from memory.

mod common;

use std::sync::atomic::Ordering;
use std::time::Duration;

use common::{Moody, builder, join, memory, next_event, soon, steady, until};
use incumbent::{Candidacy, Event, Leader, Node, OpenStore, State};

/// The node that leads as far as this one knows.
fn known(node: &Node) -> Option<String> {
    Some(node.known_leader("scheduler")?.leader?.node)
}

fn follower() -> Candidacy {
    Candidacy::new("scheduler").follow_only()
}

#[tokio::test]
async fn candidates_and_followers_know_who_leads_and_hear_of_each_new_leader() {
    let store = Moody::new();
    let open = || OpenStore::from(store.clone());
    let a = soon(steady("a").address("here:1").join(open())).await.unwrap();
    let b = soon(steady("b").join(open())).await.unwrap();
    let c = soon(steady("c").join(open())).await.unwrap();
    let candidacy = Candidacy::new("scheduler").payload("come in");
    let mut first = a.campaign(candidacy).unwrap();
    let leadership = soon(first.elected()).await.unwrap();
    let mut notices = c.subscribe();
    let mut second = b.campaign("scheduler").unwrap();
    let _follows = c.campaign(follower()).unwrap();
    let changed = |event: &Event| matches!(event, Event::LeaderChanged { .. });
    let Event::LeaderChanged { lease, leader: Some(leader) } =
        next_event(&mut notices, changed).await
    else {
        panic!("somebody leads");
    };
    assert_eq!((lease.as_str(), leader.node.as_str(), leader.term), ("scheduler", "a", 1));
    assert_eq!(leader.address.as_deref(), Some("here:1"));
    assert_eq!(leader.payload.as_deref(), Some("come in"));
    assert_eq!(Some(&leader.member), a.member().as_ref());
    until("all know", || [&a, &b, &c].iter().all(|node| known(node).as_deref() == Some("a"))).await;
    assert_eq!(a.known_leader("scheduler").unwrap().age, Duration::ZERO);
    assert!(c.known_leader("other").is_none(), "nobody follows that");
    let Some(Event::State(State { leaders, .. })) =
        soon(c.subscribe().recv()).await.map(|notice| notice.event)
    else {
        panic!("the state comes first");
    };
    assert_eq!(
        leaders.first().map(|(lease, it)| (lease.as_str(), &it.member)),
        Some(("scheduler", &leader.member))
    );

    let exchanges = || store.mood().exchanges.load(Ordering::SeqCst);
    let before = exchanges();
    for _ in 0..10_000 {
        assert_eq!(known(&b).as_deref(), Some("a"));
    }
    assert!(exchanges() - before < 100, "nobody is asked");

    soon(leadership.release()).await.unwrap();
    assert_ne!(known(&a).as_deref(), Some("a"), "it knows first that it doesn't lead");
    let _leadership = soon(second.elected()).await.unwrap();
    let b_leads = |event: &Event| matches!(event, Event::LeaderChanged { leader: Some(Leader { node, term: 2, .. }), .. } if node == "b");
    next_event(&mut notices, b_leads).await;
    until("all know", || [&a, &b, &c].iter().all(|node| known(node).as_deref() == Some("b"))).await;
    drop(first);
    until("who doesn't follow it knows nothing", || a.known_leader("scheduler").is_none()).await;
}

#[tokio::test]
async fn what_is_known_ages_while_the_store_is_away() {
    let store = Moody::new();
    let path = store.beside();
    let a = soon(steady("a").join(store)).await.unwrap();
    let b = soon(steady("b").join(path.clone())).await.unwrap();
    let mut campaign = a.campaign("scheduler").unwrap();
    let _leadership = soon(campaign.elected()).await.unwrap();
    let _follows = b.campaign(follower()).unwrap();
    until("b knows", || known(&b).as_deref() == Some("a")).await;
    path.fail();
    let age = || b.known_leader("scheduler").unwrap().age;
    until("it is older than a look takes", || age() > Duration::from_secs(7)).await;
    assert_eq!(known(&b).as_deref(), Some("a"), "that is the last that was heard");
    path.recover();
    until("it is fresh again", || age() < Duration::from_secs(5)).await;
    assert_eq!(known(&b).as_deref(), Some("a"));
}

#[tokio::test]
async fn f55_a_leader_that_died_is_not_named_for_ever_by_one_that_only_follows() {
    let store = Moody::new();
    let path = store.beside();
    let a = soon(builder("a").join(path.clone())).await.unwrap();
    let mut campaign = a.campaign("scheduler").unwrap();
    let leadership = soon(campaign.elected()).await.unwrap();
    let c = soon(builder("c").without_membership().join(store)).await.unwrap();
    let _follows = c.campaign(follower()).unwrap();
    until("c knows", || known(&c).as_deref() == Some("a")).await;
    // As good as dead, and nobody is there to close it.
    path.fail();
    soon(leadership.lost()).await;
    assert_eq!(known(&a), None, "it doesn't name itself");
    until("its ttl is over", || known(&c).is_none()).await;
    assert!(c.known_leader("scheduler").is_some(), "c still looks");
}

#[tokio::test]
async fn who_ends_its_work_does_not_go_on_naming_itself() {
    let node = join(&memory(), "a").await;
    let mut notices = node.subscribe();
    let lead = node.lead("scheduler", |_| async { Ok(()) }).unwrap();
    let named = |event: &Event| matches!(event, Event::LeaderChanged { leader: Some(_), .. });
    next_event(&mut notices, named).await;
    let nobody = |event: &Event| matches!(event, Event::LeaderChanged { leader: None, .. });
    next_event(&mut notices, nobody).await;
    soon(lead.finished()).await;
    assert_eq!(known(&node), None);
    let mut campaign = node.campaign("scheduler").unwrap();
    let leadership = soon(campaign.elected()).await.unwrap();
    assert_eq!(known(&node).as_deref(), Some("a"));
    drop(campaign);
    soon(leadership.lost()).await;
    drop(leadership);
    until("what was withdrawn is forgotten", || node.known_leader("scheduler").is_none()).await;
    soon(node.leave()).await.unwrap();
    assert!(node.known_leader("scheduler").is_none());
}
