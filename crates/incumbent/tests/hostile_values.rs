//! Errors and panics of the application's that harm whoever shows or drops them (O3, O8).
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "this is test code, although not all of it is a test"
)]

mod common;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::{builder, join, memory, next_event, soon, until};
use incumbent::{DutyDescription, Event, Family, WorkResult, family};

/// Fails the way it is told to.
#[derive(Clone, Copy, Debug)]
enum Hostile {
    SlowToShow,
    PanicsWhenShown,
    SlowToDrop,
    PanicsWhenDropped,
}

impl fmt::Display for Hostile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SlowToShow => std::thread::park_timeout(Duration::from_secs(3)),
            Self::PanicsWhenShown => panic!("as planned"),
            Self::SlowToDrop | Self::PanicsWhenDropped => {}
        }
        f.write_str("hostile")
    }
}

#[derive(Debug)]
struct Failure(Hostile);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Failure {}

impl Drop for Failure {
    fn drop(&mut self) {
        match self.0 {
            Hostile::SlowToDrop => std::thread::park_timeout(Duration::from_secs(3)),
            Hostile::PanicsWhenDropped => panic!("as planned"),
            Hostile::SlowToShow | Hostile::PanicsWhenShown => {}
        }
    }
}

fn fail(how: Hostile) -> WorkResult {
    Err(Box::new(Failure(how)))
}

fn one(version: &str) -> Family {
    let pause = Duration::from_millis(20);
    let duty = DutyDescription::named("one").version(version);
    family("work").version(version).duties([duty]).restart_pause(pause, pause).give_up_after(20)
}

/// A duty changes over to a node whose hook fails once, while that node leads something else.
async fn prepares_after(hook: fn() -> WorkResult) {
    let store = memory();
    let (old, new) = (join(&store, "old").await, join(&store, "new").await);
    let mut notices = old.subscribe();
    let _old = old.serve(one("1").run(|duty| async move {
        duty.lost().await;
        Ok(())
    }));
    next_event(&mut notices, |event| matches!(event, Event::DutyStarted { .. })).await;
    let mut campaign = new.campaign("scheduler").unwrap();
    let leadership = soon(campaign.elected()).await.unwrap();
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let prepared = one("2").prepare(move |_| {
        let call = counted.fetch_add(1, Ordering::SeqCst);
        async move { if call == 0 { hook() } else { Ok(()) } }
    });
    let mut notices = new.subscribe();
    let _new = new.serve(prepared.run(|duty| async move {
        duty.lost().await;
        Ok(())
    }));
    next_event(&mut notices, |event| matches!(event, Event::DutyStarted { .. })).await;
    assert!(calls.load(Ordering::SeqCst) > 1, "it is tried again");
    assert!(leadership.is_held(), "O3: the lease was lost meanwhile");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn o3_a_hook_whose_error_is_slow_to_show_costs_nobody_a_lease() {
    prepares_after(|| fail(Hostile::SlowToShow)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn o3_a_hook_whose_error_is_slow_to_drop_costs_nobody_a_lease() {
    prepares_after(|| fail(Hostile::SlowToDrop)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn o3_a_hook_whose_panic_is_slow_to_drop_costs_nobody_a_lease() {
    prepares_after(|| std::panic::panic_any(Failure(Hostile::SlowToDrop))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn o8_a_hook_whose_error_panics_is_tried_again() {
    prepares_after(|| fail(Hostile::PanicsWhenShown)).await;
    prepares_after(|| fail(Hostile::PanicsWhenDropped)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o8_blocking_work_whose_error_panics_has_failed() {
    for how in [Hostile::PanicsWhenShown, Hostile::PanicsWhenDropped] {
        let node = join(&memory(), "a").await;
        let mut notices = node.subscribe();
        let serving = node.serve(one("1").run_blocking(move |_| fail(how))).unwrap();
        for wanted in 1..4 {
            let again = |event: &Event| matches!(event, Event::DutyFailed { times, .. } if *times == wanted);
            next_event(&mut notices, again).await;
        }
        soon(serving.stop()).await;
        let starts = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&starts);
        let _lead = node
            .lead_blocking("scheduler", move |_| {
                counted.fetch_add(1, Ordering::SeqCst);
                fail(how)
            })
            .unwrap();
        until("it is started again", || starts.load(Ordering::SeqCst) > 1).await;
        common::pause(400).await;
        assert!(starts.load(Ordering::SeqCst) < 4, "O8: it stands back after a failure");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o8_an_observer_whose_panic_panics_is_called_again() {
    let node = soon(builder("a").join(&memory())).await.unwrap();
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let _observer = node.on_notice(move |_| {
        if counted.fetch_add(1, Ordering::SeqCst) == 0 {
            std::panic::panic_any(Failure(Hostile::PanicsWhenDropped));
        }
    });
    until("it is called", || calls.load(Ordering::SeqCst) > 0).await;
    let _campaign = node.campaign("scheduler").unwrap();
    until("it is called again", || calls.load(Ordering::SeqCst) > 1).await;
}

#[tokio::test]
async fn a_family_that_is_stopped_twice_frees_its_claim_once() {
    let node = join(&memory(), "a").await;
    let work = || one("1").run(|_| std::future::pending());
    let first = node.serve(work()).unwrap();
    soon(first.stop()).await;
    let _second = node.serve(work()).unwrap();
    first.stop().await;
    assert!(node.serve(work()).is_err(), "it is served already");
}
