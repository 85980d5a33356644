//! How duties start, end by themselves and are stopped.
#![allow(clippy::unwrap_used, reason = "this is test code, also where it is no test")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use common::ledger::Ledger;
use common::{join, memory, next_event, pause, soon, steady, until};
use incumbent::{
    Event, Family, Loss, MemberState, Node, OnDone, OpenStore, Overdue, Strictness, family,
};

const SHORT: Duration = Duration::from_millis(20);

fn one() -> Family {
    family("f").duties(["one"]).restart_pause(SHORT, Duration::from_secs(10)).grace(SHORT * 10)
}

fn about_duty(event: &Event) -> bool {
    matches!(
        event,
        Event::DutyStarted { .. }
            | Event::DutyFailed { .. }
            | Event::DutyDone { .. }
            | Event::DutyStopped { .. }
    )
}

/// A node that records what it runs.
async fn recording(store: &OpenStore, name: &str, ledger: &Ledger) -> Node {
    let node = soon(steady(name).join(store)).await.unwrap();
    let (ledger, name) = (ledger.clone(), name.to_owned());
    let work = one().run(move |duty| ledger.clone().run(name.clone(), duty));
    node.serve(work).unwrap();
    node
}

#[tokio::test]
async fn a_duty_that_is_done_stays_down_while_its_node_has_it() {
    let store = memory();
    let node = join(&store, "a").await;
    let mut notices = node.subscribe();
    let runs = Arc::new(AtomicUsize::new(0));
    let count = |runs: &Arc<AtomicUsize>| {
        let runs = Arc::clone(runs);
        one().run(move |_| {
            runs.fetch_add(1, Ordering::SeqCst);
            async { Ok(()) }
        })
    };
    let _serving = node.serve(count(&runs)).unwrap();
    let started = next_event(&mut notices, about_duty).await;
    assert!(matches!(started, Event::DutyStarted { term: 1, .. }), "{started:?}");
    let done = next_event(&mut notices, about_duty).await;
    assert!(matches!(done, Event::DutyDone { term: 1, .. }), "{done:?}");
    pause(500).await;
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    soon(node.leave()).await.unwrap();
    let stopped = next_event(&mut notices, about_duty).await;
    assert!(matches!(stopped, Event::DutyStopped { why: Loss::Leaving, .. }), "{stopped:?}");
    // Another node doesn't know, and starts it anew.
    let other = join(&store, "b").await;
    let _serving = other.serve(count(&runs)).unwrap();
    until("it runs again", || runs.load(Ordering::SeqCst) == 2).await;
}

#[tokio::test]
async fn a_duty_that_is_done_can_be_started_again() {
    let node = soon(steady("a").join(memory())).await.unwrap();
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let work = one().on_done(OnDone::RestartAfter(SHORT)).run(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        async { Ok(()) }
    });
    let _serving = node.serve(work).unwrap();
    until("it runs again and again", || runs.load(Ordering::SeqCst) >= 5).await;
}

#[tokio::test]
async fn failures_and_panics_are_told_in_order_and_the_duty_is_started_again() {
    let node = soon(steady("a").join(memory())).await.unwrap();
    let mut notices = node.subscribe();
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let work = one().run(move |duty| {
        let run = counted.fetch_add(1, Ordering::SeqCst);
        async move {
            match run {
                0 => Err("first".into()),
                1 => panic!("second"),
                2 => Err("third".into()),
                _ => {
                    duty.lost().await;
                    Ok(())
                }
            }
        }
    });
    let serving = node.serve(work).unwrap();
    let expected = [(1, "first", false), (2, "it panicked: second", false), (3, "third", true)];
    for (wanted, text, gives_up) in expected {
        let started = next_event(&mut notices, about_duty).await;
        assert!(matches!(started, Event::DutyStarted { .. }), "{started:?}");
        let failed = next_event(&mut notices, about_duty).await;
        let Event::DutyFailed { error, times, gave_up, .. } = failed else {
            panic!("{failed:?}");
        };
        assert_eq!((times, error.as_str(), gave_up), (wanted, text, gives_up));
    }
    // There is no other node, so it is tried here on; the leader may take it away and give it
    // back first.
    until("it runs", || runs.load(Ordering::SeqCst) >= 4).await;
    soon(serving.stop()).await;
}

#[tokio::test]
async fn a_duty_that_keeps_failing_moves_to_another_node() {
    // F41: elsewhere it never left the sick node that kept beating.
    let directory = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", directory.path().join("cluster.db").display());
    for store in [memory(), incumbent::open(&url).await.unwrap()] {
        let sick = join(&store, "sick").await;
        let _serving = sick.serve(one().run(|_| async { Err("as planned".into()) })).unwrap();
        let ledger = Ledger::default();
        let _well = recording(&store, "well", &ledger).await;
        ledger.spread(&[("well", 1)]).await;
    }
}

#[tokio::test]
async fn a_duty_that_never_says_ready_is_moved() {
    // F46: elsewhere it was acknowledged before it had started, and stayed for ever.
    let store = memory();
    let slow = join(&store, "slow").await;
    let (begun, dropped) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (begins, drops) = (Arc::clone(&begun), Arc::clone(&dropped));
    let work = one().waits_for_ready().acknowledge_timeout(SHORT).run(move |_| {
        begins.fetch_add(1, Ordering::SeqCst);
        let guard = Dropped(Arc::clone(&drops));
        async move {
            let _guard = guard;
            std::future::pending().await
        }
    });
    let _serving = slow.serve(work).unwrap();
    until("it begins", || begun.load(Ordering::SeqCst) >= 1).await;
    let ledger = Ledger::default();
    let _quick = recording(&store, "quick", &ledger).await;
    ledger.spread(&[("quick", 1)]).await;
    assert!(dropped.load(Ordering::SeqCst) >= 1, "its start was aborted before");
}

struct Dropped(Arc<AtomicUsize>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn a_duty_that_says_ready_in_time_stays() {
    let node = soon(steady("a").join(memory())).await.unwrap();
    let mut notices = node.subscribe();
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let work = one().waits_for_ready().run(move |duty| {
        counted.fetch_add(1, Ordering::SeqCst);
        async move {
            pause(200).await;
            duty.ready();
            duty.ready();
            duty.progress("at 3 of 7");
            duty.lost().await;
            Ok(())
        }
    });
    let serving = node.serve(work).unwrap();
    let started = next_event(&mut notices, about_duty).await;
    assert!(matches!(started, Event::DutyStarted { .. }));
    soon(serving.stop()).await;
    let stopped = next_event(&mut notices, about_duty).await;
    assert!(matches!(stopped, Event::DutyStopped { .. }), "ready twice is said once: {stopped:?}");
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_duty_is_told_to_stop_and_has_time_to() {
    let node = soon(steady("a").join(memory())).await.unwrap();
    let (ended, aborted) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (ends, aborts) = (Arc::clone(&ended), Arc::clone(&aborted));
    let work =
        family("f").duties(["kind", "stubborn"]).grace(Duration::from_secs(1)).run(move |duty| {
            let (ends, aborts) = (Arc::clone(&ends), Arc::clone(&aborts));
            async move {
                assert!(duty.is_held() && duty.deadline().is_none());
                duty.token().cancelled().await;
                assert!(!duty.is_held() && duty.deadline().is_some());
                if duty.name() == "stubborn" {
                    let _guard = Dropped(aborts);
                    std::future::pending::<()>().await;
                }
                pause(100).await;
                ends.fetch_add(1, Ordering::SeqCst);
                Ok(())
            }
        });
    let serving = node.serve(work).unwrap();
    until("both run", || serving.running() == 2).await;
    pause(100).await;
    soon(node.leave()).await.unwrap();
    assert_eq!(ended.load(Ordering::SeqCst), 1);
    assert_eq!(aborted.load(Ordering::SeqCst), 1, "what does not stop is aborted");
}

/// Blocks until it is let go, whatever it is told.
fn blocking(
    overdue: Overdue,
    free: &Arc<AtomicBool>,
    runs: &Arc<AtomicUsize>,
) -> incumbent::FamilyWork {
    let (free, runs) = (Arc::clone(free), Arc::clone(runs));
    one().on_overdue(overdue).run_blocking(move |_| {
        runs.fetch_add(1, Ordering::SeqCst);
        while !free.load(Ordering::SeqCst) {
            std::thread::park_timeout(Duration::from_millis(5));
        }
        Ok(())
    })
}

/// A node that runs a duty which blocks, and another that is told to run it instead.
async fn stuck(overdue: Overdue, free: &Arc<AtomicBool>, ledger: &Ledger) -> (Node, Node) {
    let store = memory();
    let ttl = Duration::from_secs(if overdue == Overdue::Evict { 3 } else { 12 });
    let stuck = soon(steady("stuck").ttl(ttl).join(&store)).await.unwrap();
    let runs = Arc::new(AtomicUsize::new(0));
    stuck.serve(blocking(overdue, free, &runs)).unwrap();
    until("it blocks", || runs.load(Ordering::SeqCst) == 1).await;
    let other = recording(&store, "other", ledger).await;
    (stuck, other)
}

async fn move_to_other(node: &Node) {
    let asked = soon(node.cluster().pin("f/one", "other", Strictness::Required)).await.unwrap();
    assert_eq!(asked.intents.len(), 1);
}

#[tokio::test]
async fn blocking_work_that_does_not_stop_is_waited_for() {
    let (free, ledger) = (Arc::new(AtomicBool::new(false)), Ledger::default());
    let (_stuck, other) = stuck(Overdue::Wait, &free, &ledger).await;
    move_to_other(&other).await;
    pause(2500).await;
    assert!(ledger.running().is_empty(), "it still runs where it was");
    free.store(true, Ordering::SeqCst);
    ledger.spread(&[("other", 1)]).await;
}

#[tokio::test]
async fn blocking_work_may_overlap_where_that_is_chosen() {
    let (free, ledger) = (Arc::new(AtomicBool::new(false)), Ledger::default());
    let (_stuck, other) = stuck(Overdue::Overlap, &free, &ledger).await;
    move_to_other(&other).await;
    ledger.spread(&[("other", 1)]).await;
    free.store(true, Ordering::SeqCst);
}

#[tokio::test]
async fn a_member_whose_work_does_not_stop_is_evicted_where_that_is_chosen() {
    let (free, ledger) = (Arc::new(AtomicBool::new(false)), Ledger::default());
    let (stuck, other) = stuck(Overdue::Evict, &free, &ledger).await;
    let mut notices = stuck.subscribe();
    move_to_other(&other).await;
    let evicted = Loss::Closed(MemberState::Evicted);
    let ended = |event: &Event| matches!(event, Event::Ended { why, .. } if *why == evicted);
    next_event(&mut notices, ended).await;
    ledger.spread(&[("other", 1)]).await;
    free.store(true, Ordering::SeqCst);
}
