//! What ends with a term, and what doesn't count after it (O2, O9).

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use common::{Moody, join, memory, next_event, pause, soon, spawn, until};
use incumbent::{Event, OpenStore, Term, clock, family};

#[tokio::test]
async fn what_work_put_under_its_term_ends_with_it_and_before_the_lease_is_freed() {
    let store = memory();
    let node = join(&store, "a").await;
    let running = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&running);
    let lead = node
        .lead("scheduler", move |term: Term| {
            let running = Flag::raise(&flag);
            async move {
                let task = spawn(term.guard(async move {
                    let _running = running;
                    std::future::pending::<()>().await;
                }));
                term.lost().await;
                assert!(!task.is_finished(), "it goes on while the work ends in order");
                Ok(())
            }
        })
        .unwrap();
    until("it runs", || running.load(Ordering::SeqCst)).await;
    let other = join(&store, "b").await;
    let mut campaign = other.campaign("scheduler").unwrap();
    lead.term().unwrap().resign();
    let leadership = soon(campaign.elected()).await.unwrap();
    assert!(!running.load(Ordering::SeqCst), "the lease was freed while a task ran under it");
    drop(leadership);
    soon(lead.stop()).await;
}

#[tokio::test]
async fn a_guard_outlives_neither_its_leadership_nor_its_term() {
    let node = join(&memory(), "a").await;
    let mut campaign = node.campaign("scheduler").unwrap();
    let leadership = soon(campaign.elected()).await.unwrap();
    let term = leadership.term();
    assert_eq!(term.guard(async { 7 }).await, Some(7));
    let endless = spawn(term.guard(std::future::pending::<()>()));
    drop(leadership);
    assert_eq!(soon(endless).await.unwrap(), None);
    let polled = AtomicBool::new(false);
    assert_eq!(term.guard(async { polled.store(true, Ordering::SeqCst) }).await, None);
    assert!(!polled.load(Ordering::SeqCst), "nothing begins under a term that is over");
}

#[tokio::test]
async fn o2_what_a_call_put_under_its_term_ends_with_the_call() {
    let store = memory();
    let node = join(&store, "a").await;
    let mut campaign = node.campaign("scheduler").unwrap();
    let leadership = soon(campaign.elected()).await.unwrap();
    let spawns = |term: &Term| spawn(term.guard(std::future::pending::<()>()));
    let call = node.run_if_leader("scheduler", |term| async move { (spawns(&term), ()) });
    let (task, ()) = soon(call).await.unwrap();
    assert_eq!(soon(task).await.unwrap(), None, "the call has returned");

    let (sender, task) = tokio::sync::oneshot::channel();
    let dropped = node.run_if_leader("scheduler", |term| async move {
        let _ = sender.send(spawns(&term));
        std::future::pending::<()>().await;
    });
    assert!(tokio::time::timeout(Duration::from_millis(50), dropped).await.is_err());
    assert_eq!(soon(soon(task).await.unwrap()).await.unwrap(), None, "the call was dropped");
    assert!(leadership.is_held());
    drop(leadership);
    let other = join(&store, "b").await;
    let mut campaign = other.campaign("scheduler").unwrap();
    assert!(soon(campaign.elected()).await.unwrap().is_held(), "it was freed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o2_no_step_past_trust_whatever_the_store_does() {
    let store = Moody::new();
    let node = join(&OpenStore::from(store.clone()), "a").await;
    let (steps, late) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counts = (Arc::clone(&steps), Arc::clone(&late));
    let _lead = node
        .lead("scheduler", move |term: Term| {
            let (own, spawned) =
                (step(term.clone(), counts.clone()), step(term.clone(), counts.clone()));
            async move {
                let _task = spawn(term.guard(spawned));
                own.await;
                Ok(())
            }
        })
        .unwrap();
    for _ in 0..2 {
        until("it leads", || node.is_leader("scheduler")).await;
        store.hang();
        until("it leads no more", || !node.is_leader("scheduler")).await;
        pause(300).await;
        store.recover();
    }
    assert!(steps.load(Ordering::SeqCst) > 100, "hardly any steps");
    assert_eq!(late.load(Ordering::SeqCst), 0, "steps past the end of trust");
}

async fn step(term: Term, (steps, late): (Arc<AtomicUsize>, Arc<AtomicUsize>)) {
    loop {
        let until = term.trusted_until();
        steps.fetch_add(1, Ordering::SeqCst);
        if clock::now() >= until {
            late.fetch_add(1, Ordering::SeqCst);
        }
        pause(1).await;
    }
}

#[tokio::test]
async fn o9_an_error_after_the_loss_counts_for_nothing() {
    let node = join(&memory(), "a").await;
    let lead = node
        .lead("scheduler", |term: Term| async move {
            while term.is_held() {
                pause(2).await;
            }
            // As every program does whose last write was refused by a fence.
            Err("the fence is stale".into())
        })
        .unwrap();
    let began = clock::now();
    for _ in 0..6 {
        until("it leads", || lead.is_leader()).await;
        lead.term().unwrap().resign();
        until("it leads no more", || !lead.is_leader()).await;
    }
    until("it leads again", || lead.is_leader()).await;
    // It stands back for half a ttl each time; as failures these were 30 s at least.
    let lasted = clock::now().since(began);
    assert!(lasted < Duration::from_secs(15), "it stood back for {lasted:?}");
    soon(lead.stop()).await;
}

#[tokio::test]
async fn o9_a_duty_that_fails_after_it_was_lost_has_not_failed() {
    let store = Moody::new();
    let node = join(&OpenStore::from(store.clone()), "a").await;
    let mut notices = node.subscribe();
    let served = family("work").duties(["one"]).run(|duty| async move {
        while duty.is_held() {
            pause(1).await;
        }
        Err("the fence is stale".into())
    });
    let _serving = node.serve(served).unwrap();
    for _ in 0..3 {
        next_event(&mut notices, |event| matches!(event, Event::DutyStarted { .. })).await;
        store.hang();
        let ends =
            |event: &Event| matches!(event, Event::DutyStopped { .. } | Event::DutyFailed { .. });
        let end = next_event(&mut notices, ends).await;
        assert!(matches!(end, Event::DutyStopped { .. }), "{end:?}");
        store.recover();
    }
}

struct Flag(Arc<AtomicBool>);

impl Flag {
    fn raise(flag: &Arc<AtomicBool>) -> Self {
        flag.store(true, Ordering::SeqCst);
        Self(Arc::clone(flag))
    }
}

impl Drop for Flag {
    fn drop(&mut self) {
        // Whoever frees the lease before this is done has been too quick.
        std::thread::park_timeout(Duration::from_millis(50));
        self.0.store(false, Ordering::SeqCst);
    }
}
