//! Work that runs while a node leads: how it starts, ends and fails (F23).

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use common::{builder, join, memory, pause, soon, spawn, steady, until};
use incumbent::{CampaignError, Candidacy, Event, Finish, Loss, Term};

#[tokio::test]
async fn ok_frees_the_lease_and_stops_for_good() {
    let store = memory();
    let node = join(&store, "a").await;
    let runs = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&runs);
    let lead = node
        .lead("scheduler", move |term| {
            count.fetch_add(1, Ordering::SeqCst);
            async move {
                assert!(term.is_held());
                assert_eq!(term.fence().as_u64(), 1);
                Ok(())
            }
        })
        .unwrap();
    assert_eq!(soon(lead.finished()).await, Finish::Completed);
    assert!(!lead.is_leader() && !node.is_leader("scheduler"));
    assert_eq!(node.leader("scheduler").await.unwrap(), None, "it is free in the store too");
    pause(700).await;
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    soon(node.leave()).await.unwrap();
}

#[tokio::test]
async fn work_that_fails_or_panics_frees_the_lease_for_others() {
    for how in ["error", "panic"] {
        let store = memory();
        let sick = join(&store, "sick").await;
        let runs = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&runs);
        let lead = sick
            .lead("scheduler", move |_| {
                count.fetch_add(1, Ordering::SeqCst);
                async move {
                    assert!(how != "panic", "as planned");
                    Err("no licence".into())
                }
            })
            .unwrap();
        let healthy = join(&store, "healthy").await;
        let mut campaign = healthy.campaign("scheduler").unwrap();
        let leadership = soon(campaign.elected()).await.unwrap();
        assert!(leadership.is_held(), "F23: {how}");
        pause(300).await;
        let tries = runs.load(Ordering::SeqCst);
        assert!((1..=2).contains(&tries), "F23: it backs off, and ran {tries} times");
        drop(leadership);
        drop(campaign);
        until("it tries again", || runs.load(Ordering::SeqCst) > tries).await;
        soon(lead.stop()).await;
    }
}

#[tokio::test]
async fn a_closure_that_panics_before_its_future_exists_frees_the_lease() {
    let node = join(&memory(), "a").await;
    let mut notices = node.subscribe();
    let _lead = node
        .lead("scheduler", |term: Term| {
            assert!(term.number() != 1, "as planned");
            async { Ok(()) }
        })
        .unwrap();
    let lost = |event: &Event| matches!(event, Event::Freed { .. });
    assert!(matches!(common::next_event(&mut notices, lost).await, Event::Freed { term: 1, .. }));
}

#[tokio::test]
async fn work_that_stops_because_it_leads_no_more_is_not_done() {
    let store = memory();
    let node = join(&store, "a").await;
    let lead = node
        .lead("scheduler", |term| async move {
            while term.is_held() {
                pause(5).await;
            }
            Ok(())
        })
        .unwrap();
    until("it leads", || lead.is_leader()).await;
    let first = lead.term().unwrap();
    first.resign();
    assert_eq!(soon(first.lost()).await.why, Loss::Resigned);
    until("it leads again", || lead.is_leader()).await;
    assert!(lead.term().unwrap().number() > first.number());
    assert_eq!(soon(lead.stop()).await, Finish::Stopped);
    assert_eq!(node.leader("scheduler").await.unwrap(), None);
}

#[tokio::test]
async fn the_lease_is_freed_after_the_work_has_ended() {
    let store = memory();
    let node = builder("a").grace(Duration::from_secs(20)).join(&store).await.unwrap();
    let ended_at = Arc::new(AtomicU64::new(0));
    let ended = Arc::clone(&ended_at);
    let lead = node
        .lead("scheduler", move |term| {
            let ended = Arc::clone(&ended);
            async move {
                term.lost().await;
                assert!(term.trust_left() > Duration::ZERO, "there is time to end in order");
                // Longer than a ttl: trust goes on while the work ends in order.
                pause(1500).await;
                ended.store(incumbent::clock::now().as_nanos(), Ordering::SeqCst);
                Ok(())
            }
        })
        .unwrap();
    let other = join(&store, "b").await;
    let mut campaign = other.campaign("scheduler").unwrap();
    until("it leads", || lead.is_leader()).await;
    let stopping = spawn(async move { lead.stop().await });
    let _leadership = soon(campaign.elected()).await.unwrap();
    let elected_at = incumbent::clock::now().as_nanos();
    let ended_at = ended_at.load(Ordering::SeqCst);
    assert!(ended_at > 0 && ended_at < elected_at, "F10: work ends before its lease is freed");
    assert_eq!(soon(stopping).await.unwrap(), Finish::Stopped);
}

#[tokio::test]
async fn work_that_does_not_end_within_its_grace_is_aborted() {
    struct Fallen(Arc<AtomicUsize>);
    impl Drop for Fallen {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let node = join(&memory(), "a").await;
    let fallen = Arc::new(AtomicUsize::new(0));
    let witness = Arc::clone(&fallen);
    let candidacy = Candidacy::new("scheduler").grace(Duration::from_millis(100));
    let lead = node
        .lead(candidacy, move |_| {
            let guard = Fallen(Arc::clone(&witness));
            async move {
                let _guard = guard;
                std::future::pending::<()>().await;
                Ok(())
            }
        })
        .unwrap();
    until("it leads", || lead.is_leader()).await;
    assert_eq!(soon(lead.stop()).await, Finish::Stopped);
    assert_eq!(fallen.load(Ordering::SeqCst), 1);
    assert_eq!(node.leader("scheduler").await.unwrap(), None);
}

#[tokio::test]
async fn blocking_work_runs_on_a_thread_of_its_own() {
    let node = join(&memory(), "a").await;
    let lead = node
        .lead_blocking("scheduler", |term| {
            let name = std::thread::current().name().map(str::to_owned);
            assert_eq!(name.as_deref(), Some("incumbent: scheduler"));
            while term.is_held() {
                std::thread::park_timeout(Duration::from_millis(5));
            }
            Ok(())
        })
        .unwrap();
    until("it leads", || lead.is_leader()).await;
    assert_eq!(soon(lead.stop()).await, Finish::Stopped);
    assert_eq!(node.leader("scheduler").await.unwrap(), None);
}

#[tokio::test]
async fn standing_twice_for_one_lease_is_refused_and_does_not_stack() {
    let node = join(&memory(), "a").await;
    let mut campaign = node.campaign("scheduler").unwrap();
    let leadership = soon(campaign.elected()).await.unwrap();
    let refused = node.lead("scheduler", |_| async { Ok(()) });
    assert!(matches!(refused, Err(CampaignError::Duplicate { .. })), "F19");
    drop(leadership);
    drop(campaign);
    let again = node.campaign("scheduler");
    assert!(again.is_ok(), "F19: one release frees it");
}

#[tokio::test]
async fn names_that_will_not_do_are_refused() {
    let node = join(&memory(), "a").await;
    for name in ["", "incumbent/leader", "a\nb"] {
        let refused = node.lead(name, |_| async { Ok(()) });
        assert!(matches!(refused, Err(CampaignError::Name(_))), "{name:?}");
    }
    let huge = Candidacy::new("scheduler").payload("x".repeat(20_000_000));
    assert!(matches!(node.campaign(huge), Err(CampaignError::Payload { .. })));
    soon(node.leave()).await.unwrap();
    assert!(matches!(node.campaign("scheduler"), Err(CampaignError::Left)));
}

#[test]
fn work_whose_runtime_is_shut_down_frees_the_lease() {
    let store = memory();
    let application = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let (node, lead) = application.block_on(async {
        let node = join(&store, "a").await;
        let lead = node
            .lead("scheduler", |_| async {
                std::future::pending::<()>().await;
                Ok(())
            })
            .unwrap();
        until("it leads", || lead.is_leader()).await;
        (node, lead)
    });
    drop(application);
    assert_eq!(pollster::block_on(lead.finished()), Finish::RuntimeGone);
    assert_eq!(pollster::block_on(node.leader("scheduler")).unwrap(), None);
    pollster::block_on(node.leave()).unwrap();
}

#[tokio::test]
async fn each_start_of_work_gets_a_clone_of_what_it_needs() {
    let node = soon(steady("a").join(&memory())).await.unwrap();
    let (started, mut starts) = tokio::sync::mpsc::unbounded_channel();
    let state = (Arc::new(AtomicUsize::new(0)), started);
    let count = Arc::clone(&state.0);
    let lead = node
        .lead_with("scheduler", state, |(count, started), term| async move {
            let before = count.fetch_add(1, Ordering::SeqCst);
            started.send((before, term.number()))?;
            if before < 2 {
                return Err("once more".into());
            }
            Ok(())
        })
        .unwrap();
    assert_eq!(soon(lead.finished()).await, Finish::Completed);
    let mut terms = Vec::new();
    while let Ok((_, term)) = starts.try_recv() {
        terms.push(term);
    }
    assert_eq!((count.load(Ordering::SeqCst), terms), (3, vec![1, 2, 3]));
    // What captures nothing can be an async closure.
    let plain =
        node.lead("plain", async |term| if term.is_held() { Ok(()) } else { Err("".into()) });
    assert_eq!(soon(plain.unwrap().finished()).await, Finish::Completed);
}
