//! Work that lives and does nothing is ended, and somebody else has its lease (F50).
#![allow(clippy::unwrap_used, reason = "test code, also where it is no test")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use common::{join, memory, next_event, pause, soon, steady, until};
use incumbent::{Candidacy, Event, Loss, family};

/// So long may work be silent: longer than a busy machine keeps a timer waiting.
const PATIENCE: Duration = Duration::from_millis(1_500);

fn watched() -> Candidacy {
    Candidacy::new("scheduler").watchdog(PATIENCE)
}

/// Says when it is gone.
struct Gone(Arc<AtomicBool>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f50_work_without_progress_is_ended_and_then_its_lease_is_free() {
    let store = memory();
    let sick = soon(steady("sick").join(&store)).await.unwrap();
    let mut notices = sick.subscribe();
    let gone = Arc::new(AtomicBool::new(false));
    let ended = Arc::clone(&gone);
    let _lead = sick
        .lead(watched(), move |_| {
            let gone = Gone(Arc::clone(&ended));
            async move {
                let _gone = gone;
                std::future::pending::<()>().await;
                Ok(())
            }
        })
        .unwrap();
    until("it leads", || sick.is_leader("scheduler")).await;
    let healthy = soon(steady("healthy").join(&store)).await.unwrap();
    let mut campaign = healthy.campaign("scheduler").unwrap();
    let leadership = soon(campaign.elected()).await.unwrap();
    assert!(gone.load(Ordering::SeqCst), "the work had ended before the lease was freed");
    assert_eq!(leadership.number(), 2);
    let lost = |event: &Event| matches!(event, Event::Lost { .. });
    let lost = next_event(&mut notices, lost).await;
    assert!(matches!(lost, Event::Lost { why: Loss::Stuck, term: 1, .. }), "{lost:?}");
    let leases = sick.metrics().leases;
    assert_eq!(leases[0].lost, [("stuck", 1)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_that_reports_progress_goes_on() {
    let store = memory();
    let node = soon(steady("a").join(&store)).await.unwrap();
    let starts = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&starts);
    let lead = node
        .lead(watched(), move |term| {
            count.fetch_add(1, Ordering::SeqCst);
            async move {
                for _ in 0..30 {
                    pause(100).await;
                    term.progressed();
                }
                Ok(())
            }
        })
        .unwrap();
    assert_eq!(soon(lead.finished()).await, incumbent::Finish::Completed);
    assert_eq!(starts.load(Ordering::SeqCst), 1, "twice the patience, in one run");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blocking_work_without_progress_is_told_that_it_leads_no_more() {
    let store = memory();
    let node = soon(steady("a").join(&store)).await.unwrap();
    let told = Arc::new(AtomicBool::new(false));
    let said = Arc::clone(&told);
    let _lead = node
        .lead_blocking(watched(), move |term| {
            if term.number() == 1 {
                while term.is_held() {
                    std::thread::park_timeout(Duration::from_millis(5));
                }
                said.store(true, Ordering::SeqCst);
            }
            Ok(())
        })
        .unwrap();
    until("it is told", || told.load(Ordering::SeqCst)).await;
    let other = join(&store, "b").await;
    let mut campaign = other.campaign("scheduler").unwrap();
    assert_eq!(soon(campaign.elected()).await.unwrap().number(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_duty_without_progress_fails_and_goes_elsewhere() {
    let store = memory();
    // O57: however soon it would be tried again, the leader hears of it first.
    let hasty = Duration::from_millis(5);
    let work = || {
        let family = family("work").duties(["one"]).watchdog(PATIENCE).give_up_after(1);
        family.restart_pause(hasty, hasty)
    };
    let sick = soon(steady("sick").ttl(Duration::from_secs(3)).join(&store)).await.unwrap();
    let mut notices = sick.subscribe();
    let stuck = work().run(|_| async {
        std::future::pending::<()>().await;
        Ok(())
    });
    let _sick = sick.serve(stuck).unwrap();
    next_event(&mut notices, |event| matches!(event, Event::DutyStarted { .. })).await;
    let healthy = soon(steady("healthy").ttl(Duration::from_secs(3)).join(&store)).await.unwrap();
    let runs = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&runs);
    let well = work().run(move |duty| {
        let seen = Arc::clone(&seen);
        async move {
            seen.store(true, Ordering::SeqCst);
            while duty.is_held() {
                duty.progress("well");
                pause(20).await;
            }
            Ok(())
        }
    });
    let _healthy = healthy.serve(well).unwrap();
    let failed = next_event(&mut notices, |it| matches!(it, Event::DutyFailed { .. })).await;
    let Event::DutyFailed { error, .. } = failed else { return };
    assert!(error.contains("no progress"), "{error}");
    until("another runs it", || runs.load(Ordering::SeqCst)).await;
}
