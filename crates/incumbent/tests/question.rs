//! "Am I the leader?" asks no store (F26), and is right about the end of trust.

mod common;

use std::sync::atomic::Ordering;
use std::time::Duration;

use common::{Moody, builder, join, soon, until};
use incumbent::{Attempt, Loss, OpenStore};

#[tokio::test]
async fn a_hanging_store_costs_no_answer_and_trust_ends_in_time() {
    let store = Moody::new();
    let node = join(&OpenStore::from(store.clone()), "a").await;
    let mut campaign = node.campaign("scheduler").unwrap();
    let leadership = soon(campaign.elected()).await.unwrap();
    store.hang();
    let hung = incumbent::clock::now();
    let mut asked = 0_u64;
    let mut slowest = Duration::ZERO;
    while leadership.is_held() {
        let before = incumbent::clock::now();
        assert!(node.is_leader("scheduler") || !leadership.is_held());
        slowest = slowest.max(incumbent::clock::now().since(before));
        asked += 1;
        if asked.is_multiple_of(1000) {
            tokio::task::yield_now().await;
        }
    }
    let lasted = incumbent::clock::now().since(hung);
    assert!(
        lasted < Duration::from_millis(1000),
        "trust ends before the ttl, not after {lasted:?}"
    );
    assert!(asked > 1000 && slowest < Duration::from_millis(500), "F26: {asked}, {slowest:?}");
    assert!(!node.is_leader("scheduler") && !leadership.is_held(), "a no is final");
    assert_eq!(soon(leadership.lost()).await.why, Loss::CannotTell);
}

#[tokio::test]
async fn asking_touches_no_store() {
    let store = Moody::new();
    let node = join(&OpenStore::from(store.clone()), "a").await;
    let mut campaign = node.campaign("scheduler").unwrap();
    let leadership = soon(campaign.elected()).await.unwrap();
    until("it is quiet", || {
        let before = store.mood().exchanges.load(Ordering::SeqCst);
        std::thread::park_timeout(Duration::from_millis(20));
        before == store.mood().exchanges.load(Ordering::SeqCst)
    })
    .await;
    let before = store.mood().exchanges.load(Ordering::SeqCst);
    for _ in 0..100_000 {
        assert!(leadership.is_held() && node.is_leader("scheduler"));
    }
    let after = store.mood().exchanges.load(Ordering::SeqCst);
    assert!(after - before < 100, "F26: {} exchanges for 100,000 questions", after - before);
}

#[tokio::test]
async fn confirm_asks_the_store() {
    let store = Moody::new();
    let node = join(&OpenStore::from(store.clone()), "a").await;
    let mut campaign = node.campaign("scheduler").unwrap();
    let leadership = soon(campaign.elected()).await.unwrap();
    assert_eq!(soon(leadership.confirm()).await, Ok(true));
    store.fail();
    assert!(soon(leadership.confirm()).await.is_err(), "the store can't say");
    store.recover();
    let term = leadership.term();
    drop(leadership);
    assert_eq!(soon(term.confirm()).await, Ok(false));
}

#[tokio::test]
async fn a_node_that_lost_its_member_is_unavailable_and_comes_back() {
    let store = Moody::new();
    let node = builder("a").join(store.clone()).await.unwrap();
    store.fail();
    until("it is no member", || node.member().is_none()).await;
    let attempt = soon(node.try_lead("scheduler")).await.unwrap();
    assert!(matches!(attempt, Attempt::Unavailable { .. }), "{attempt:?}");
    store.recover();
    until("it is a member again", || node.member().is_some()).await;
    let attempt = soon(node.try_lead("scheduler")).await.unwrap();
    assert!(matches!(attempt, Attempt::Elected(_)), "{attempt:?}");
}
