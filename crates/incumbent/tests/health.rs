//! What a node says about itself and its store, without asking anybody.

mod common;

use std::sync::atomic::Ordering;
use std::time::Duration;

use common::{Moody, builder, memory, next_event, soon, steady, until};
use incumbent::{Event, OpenStore, Standing, State, StoreHealth};

#[tokio::test]
async fn a_node_that_is_well_says_so_without_asking_the_store() {
    let store = Moody::new();
    let node = soon(steady("a").join(OpenStore::from(store.clone()))).await.unwrap();
    let ttl = node.timing().ttl;
    let health = node.health();
    assert_eq!((health.standing, &health.store), (Standing::Member, &StoreHealth::Answers));
    assert!(health.last_beat < ttl, "{health:?}");
    assert!(!health.trust_left.is_zero() && health.trust_left < ttl, "{health:?}");
    assert!(health.last_turn < Duration::from_secs(10), "{health:?}");
    let trust = node.timing().trust();
    until("trust lasts from the last beat on", || {
        let health = node.health();
        health.last_beat + health.trust_left == trust
    })
    .await;
    let exchanges = || store.mood().exchanges.load(Ordering::SeqCst);
    let before = exchanges();
    for _ in 0..10_000 {
        assert_eq!(node.health().standing, Standing::Member);
    }
    assert!(exchanges() - before < 100, "nobody is asked");
    soon(node.leave()).await.unwrap();
    until("it has left", || node.health().standing == Standing::Left).await;
    assert!(node.health().trust_left.is_zero());
}

#[tokio::test]
async fn each_outage_is_told_once_and_so_is_its_end() {
    let store = Moody::new();
    // Long enough for no request to time out because the machine is busy.
    let builder = builder("a").ttl(Duration::from_secs(6));
    let node = soon(builder.join(OpenStore::from(store.clone()))).await.unwrap();
    let mut notices = node.subscribe();
    store.fail();
    let told =
        |event: &Event| matches!(event, Event::StoreFails { .. } | Event::StoreAnswers { .. });
    let fails = next_event(&mut notices, told).await;
    assert!(
        matches!(&fails, Event::StoreFails { error } if error.contains("the store is away")),
        "{fails:?}"
    );
    until("trust is over", || node.health().standing == Standing::Rejoining).await;
    let health = node.health();
    assert!(health.trust_left.is_zero(), "{health:?}");
    assert!(
        matches!(&health.store, StoreHealth::Fails { error, .. } if error.contains("is away")),
        "{health:?}"
    );
    assert!(health.last_turn < Duration::from_secs(10), "the thread goes on: {health:?}");
    let mut late = node.subscribe();
    let Some(Event::State(State { store_error: Some(error), .. })) =
        soon(late.recv()).await.map(|notice| notice.event)
    else {
        panic!("who comes during the outage is told of it");
    };
    assert!(error.contains("the store is away"), "{error}");

    store.recover();
    let answers = next_event(&mut notices, told).await;
    assert!(matches!(answers, Event::StoreAnswers { .. }), "once each: {answers:?}");
    assert_eq!(node.health().store, StoreHealth::Answers);
    until("it is a member again", || node.health().standing == Standing::Member).await;
    assert!(!node.health().trust_left.is_zero());

    store.hang();
    let fails = next_event(&mut notices, told).await;
    assert!(matches!(fails, Event::StoreFails { .. }), "the next outage is told too: {fails:?}");
}

#[tokio::test]
async fn the_trust_that_is_left_is_that_of_the_terms() {
    let node = soon(steady("a").join(memory())).await.unwrap();
    let mut campaign = node.campaign("scheduler").unwrap();
    let leadership = soon(campaign.elected()).await.unwrap();
    let (before, left) = (leadership.trust_left(), node.health().trust_left);
    let after = leadership.trust_left();
    // Unless a beat came in between, it lies between the two.
    assert!(before >= left && left >= after || after > before, "{before:?} {left:?} {after:?}");
}
