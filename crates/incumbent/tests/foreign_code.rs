//! What the application's own code does on incumbent's threads: nothing (O3).

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::{builder, memory, soon, until};
use incumbent::{Event, family};
use tracing::span;
use tracing::subscriber::set_global_default;
use tracing::{Metadata, Subscriber};

/// A subscriber that never comes back, as one whose pipe is full.
struct Stuck(Arc<AtomicUsize>);

impl Subscriber for Stuck {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn event(&self, _: &tracing::Event<'_>) {
        self.0.fetch_add(1, Ordering::SeqCst);
        loop {
            std::thread::park();
        }
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// Takes three ttls to be dropped.
struct Slow(Arc<AtomicUsize>);

impl Drop for Slow {
    fn drop(&mut self) {
        std::thread::park_timeout(Duration::from_secs(3));
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o3_neither_a_stuck_log_nor_slow_drops_cost_the_lease() {
    let told = Arc::new(AtomicUsize::new(0));
    set_global_default(Stuck(Arc::clone(&told))).unwrap();
    let node = soon(builder("a").join(&memory())).await.unwrap();
    let mut campaign = node.campaign("scheduler").unwrap();
    let leadership = soon(campaign.elected()).await.unwrap();
    until("somebody is told", || told.load(Ordering::SeqCst) > 0).await;

    let dropped = Arc::new(AtomicUsize::new(0));
    let slow = Slow(Arc::clone(&dropped));
    let blocking = node
        .lead_blocking("blocking", move |_| {
            let _captured = &slow;
            Ok(())
        })
        .unwrap();
    soon(blocking.finished()).await;

    let (lists, runs) = (Slow(Arc::clone(&dropped)), Slow(Arc::clone(&dropped)));
    let served = family("work")
        .duties_with(move || {
            let _captured = &lists;
            async { Ok(["one"]) }
        })
        .run_blocking(move |duty| {
            let _captured = &runs;
            while duty.is_held() {
                std::thread::park_timeout(Duration::from_millis(5));
            }
            Ok(())
        });
    let mut notices = node.subscribe();
    let serving = node.serve(served).unwrap();
    let started = |event: &Event| matches!(event, Event::DutyStarted { .. });
    common::next_event(&mut notices, started).await;
    soon(serving.stop()).await;
    drop(serving);
    until("all are dropped", || dropped.load(Ordering::SeqCst) == 3).await;
    assert!(leadership.is_held(), "O3: the lease was lost meanwhile");
    assert_eq!(told.load(Ordering::SeqCst), 1, "the log is stuck");
}
