//! Panics cost nobody anything but what panicked (O8), and slow plans nobody a lease (O1).
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "this is test code, although not all of it is a test"
)]

mod common;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use common::{builder, join, memory, next_event, pause, soon, until};
use incumbent::placement::{Grid, Place};
use incumbent::{Event, Loss, Node, OpenStore, family};

/// Wakes nobody, and panics on the thread that meant to wake somebody.
struct Bomb(AtomicBool);

impl Wake for Bomb {
    fn wake(self: Arc<Self>) {
        assert!(self.0.swap(true, Ordering::SeqCst), "as planned");
    }
}

#[tokio::test]
async fn o8_a_driver_that_panics_ends_all_trust_and_joins_anew() {
    let store = memory();
    let node = join(&store, "a").await;
    let mut notices = node.subscribe();
    let lead = node.lead("scheduler", |_| std::future::pending()).unwrap();
    let served = family("work").duties(["one"]).run(|duty| async move {
        duty.lost().await;
        Ok(())
    });
    let serving = node.serve(served).unwrap();
    let started = |event: &Event| matches!(event, Event::DutyStarted { .. });
    next_event(&mut notices, started).await;
    until("it leads", || lead.is_leader()).await;
    let (term, member) = (lead.term().unwrap(), node.member());

    let mut listens = node.subscribe();
    // The state is there at once; then it waits for more, and its waker is called by the driver.
    soon(listens.recv()).await.unwrap();
    let bomb = Arc::new(Bomb(AtomicBool::new(false)));
    let waker = Waker::from(Arc::clone(&bomb));
    assert!(pin!(listens.recv()).poll(&mut Context::from_waker(&waker)).is_pending());
    let _event = join(&store, "b").await;
    until("it panicked", || bomb.0.load(Ordering::SeqCst)).await;
    soon(term.lost()).await;
    assert!(!term.is_held());
    let broken = |event: &Event| matches!(event, Event::Ended { why: Loss::Broken, .. });
    next_event(&mut notices, broken).await;
    // What the node was asked for is still wanted.
    until("it leads again", || lead.is_leader()).await;
    assert!(lead.term().unwrap().number() > term.number());
    assert_ne!(node.member(), member);
    next_event(&mut notices, started).await;
    assert_eq!(serving.running(), 1);
    soon(node.leave()).await.unwrap();
}

/// Misbehaves for as many times as it is told to.
#[derive(Debug)]
struct Bad {
    how: fn(),
    times: Arc<AtomicUsize>,
}

impl Place for Bad {
    fn place(&self, _: &mut Grid<'_, '_>) {
        let order = Ordering::SeqCst;
        if self.times.fetch_update(order, order, |left| left.checked_sub(1)).is_ok() {
            (self.how)();
        }
    }
}

#[tokio::test]
async fn o8_a_placement_that_panics_costs_nobody_a_lease() {
    survive(|| panic!("as planned"), 2).await;
}

#[tokio::test]
async fn o1_a_placement_that_takes_longer_than_the_ttl_costs_nobody_a_lease() {
    survive(|| std::thread::park_timeout(Duration::from_secs(3)), 1).await;
}

#[tokio::test]
async fn o1_a_placement_that_never_returns_is_given_up() {
    let forever: fn() = || {
        loop {
            std::thread::park();
        }
    };
    survive(forever, 1).await;
}

#[tokio::test]
async fn o1_a_node_on_which_no_placement_returns_leaves_placing_to_others() {
    let store = memory();
    let forever: fn() = || {
        loop {
            std::thread::park();
        }
    };
    let hangs = placing(&store, "hangs", forever, &Arc::new(AtomicUsize::new(usize::MAX))).await;
    until("it leads the cluster", || hangs.leads_cluster()).await;
    let sound = join(&store, "sound").await;
    let served = family("work").duties(["one"]).run(|_| std::future::pending());
    let serving = sound.serve(served).unwrap();
    // Three plans of five seconds each, and the pauses between them.
    let placed = async {
        while serving.running() == 0 {
            pause(50).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(120), placed).await.unwrap();
    assert!(sound.leads_cluster() && !hangs.leads_cluster());
    assert!(hangs.member().is_some(), "it stays in the cluster");
}

/// Three nodes of which each leads something, and whoever leads the cluster has a bad placement.
async fn survive(how: fn(), times: usize) {
    let store = memory();
    let times = Arc::new(AtomicUsize::new(times));
    let mut nodes = Vec::new();
    for name in ["a", "b", "c"] {
        nodes.push(placing(&store, name, how, &times).await);
    }
    let mut holding = Vec::new();
    for node in &nodes {
        let mut campaign = node.campaign(node.name()).unwrap();
        let leadership = soon(campaign.elected()).await.unwrap();
        holding.push((campaign, leadership));
    }
    let members: Vec<_> = nodes.iter().map(Node::member).collect();
    let served = family("work").duties(["one"]).run(|duty| async move {
        duty.lost().await;
        Ok(())
    });
    let serving = nodes[0].serve(served).unwrap();
    until("it misbehaves", || times.load(Ordering::SeqCst) == 0).await;
    until("it is placed all the same", || serving.running() == 1).await;
    pause(500).await;
    assert!(holding.iter().all(|(_, leadership)| leadership.is_held()));
    assert_eq!(nodes.iter().map(Node::member).collect::<Vec<_>>(), members);
}

async fn placing(store: &OpenStore, name: &str, how: fn(), times: &Arc<AtomicUsize>) -> Node {
    let place = Bad { how, times: Arc::clone(times) };
    soon(builder(name).family_placement("work", place).join(store)).await.unwrap()
}
