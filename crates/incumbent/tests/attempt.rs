//! One attempt to lead, and how it went. What is cancelled is given back (F18), and nothing
//! stacks (F19).

mod common;

use std::time::Duration;

use common::{Moody, builder, join, memory, pause, soon, until};
use incumbent::{Attempt, Candidacy, OpenStore};

#[tokio::test]
async fn each_outcome_has_its_name() {
    let store = memory();
    let a = builder("a").address("here:1").join(&store).await.unwrap();
    let b = join(&store, "b").await;
    let Attempt::Elected(leadership) = soon(a.try_lead("scheduler")).await.unwrap() else {
        panic!("it is free");
    };
    let again = soon(a.try_lead("scheduler")).await.unwrap();
    assert!(matches!(again, Attempt::AlreadyLeader { term: 1 }), "F19: {again:?}");
    let Attempt::OtherLeader(other) = soon(b.try_lead("scheduler")).await.unwrap() else {
        panic!("a leads");
    };
    assert_eq!((other.node.as_str(), other.term), ("a", 1));
    assert_eq!(other.address.as_deref(), Some("here:1"));
    assert!(other.since_ms.is_some() && other.due.is_some_and(|due| due <= Duration::from_secs(1)));
    drop(leadership);
    pause(50).await;
    let next = soon(b.try_lead("scheduler")).await.unwrap();
    assert!(matches!(&next, Attempt::Elected(it) if it.number() == 2), "{next:?}");
    drop(next);
    pause(50).await;
    let held_back = soon(b.try_lead("scheduler")).await.unwrap();
    drop(held_back);
    pause(50).await;
    // An attempt that fails leaves no candidacy behind.
    let other = soon(a.try_lead(Candidacy::new("scheduler").follow_only())).await.unwrap();
    assert!(matches!(other, Attempt::Conflict), "{other:?}");
    assert!(a.campaign("scheduler").is_ok());
}

#[tokio::test]
async fn dropping_an_elected_attempt_frees_the_lease_for_good() {
    let node = join(&memory(), "a").await;
    let elected = soon(node.try_lead("scheduler")).await.unwrap();
    assert!(matches!(elected, Attempt::Elected(_)) && node.is_leader("scheduler"));
    drop(elected);
    pause(1200).await;
    assert!(!node.is_leader("scheduler"), "one attempt is one attempt");
    assert_eq!(node.leader("scheduler").await.unwrap(), None);
}

#[tokio::test]
async fn cancelled_attempts_give_back_what_they_took() {
    let store = memory();
    let node = join(&store, "a").await;
    for micros in 0..60 {
        let attempt = node.try_lead("scheduler");
        let _ = tokio::time::timeout(Duration::from_micros(micros * 20), attempt).await;
    }
    let mut campaign = node.campaign("scheduler").unwrap();
    let _ = tokio::time::timeout(Duration::from_micros(50), campaign.elected()).await;
    drop(campaign);
    let other = join(&store, "b").await;
    let mut theirs = other.campaign("scheduler").unwrap();
    assert!(soon(theirs.elected()).await.is_ok(), "F18: taken by nobody");
    assert!(!node.is_leader("scheduler"));
}

#[tokio::test]
async fn an_election_that_nobody_claims_is_kept_for_the_next_call() {
    let store = Moody::new();
    let node = join(&OpenStore::from(store.clone()), "a").await;
    store.fail();
    let mut campaign = node.campaign("scheduler").unwrap();
    let patience = Duration::from_millis(20);
    assert!(tokio::time::timeout(patience, campaign.elected()).await.is_err());
    store.recover();
    until("it leads", || node.is_leader("scheduler")).await;
    assert_eq!(soon(campaign.elected()).await.unwrap().number(), 1);
}

#[tokio::test]
async fn one_call_runs_only_on_the_leader() {
    let store = memory();
    let (a, b) = (join(&store, "a").await, join(&store, "b").await);
    let mut campaign = a.campaign("scheduler").unwrap();
    let leadership = soon(campaign.elected()).await.unwrap();
    let term = soon(a.run_if_leader("scheduler", |term| async move { term.number() })).await;
    assert_eq!(term, Some(1));
    assert_eq!(soon(b.run_if_leader("scheduler", |_| async { 7 })).await, None);
    assert_eq!(b.leader("scheduler").await.unwrap().unwrap().node, "a", "b did not contend");

    // A call under way ends with the term, and the lease is freed after it.
    let long = a.run_if_leader("scheduler", |_| async { std::future::pending::<()>().await });
    let (ended, resigned) = tokio::join!(soon(long), async {
        pause(50).await;
        soon(leadership.release()).await
    });
    assert_eq!((ended, resigned), (None, Ok(())));
}
