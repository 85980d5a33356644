//! A node far from its store, on connections that break.

use std::time::Duration;

use incumbent::{Node, OpenStore};

use crate::Proxy;

/// The ttl of the node.
const TTL: Duration = Duration::from_secs(6);

/// How long its requests may take.
const REQUEST: Duration = Duration::from_secs(2);

/// How long it is between two resets: longer than any store needs for a new connection at that
/// distance, and no multiple of the beats' interval, so that resets meet them in all stages.
const BETWEEN: Duration = Duration::from_millis(8_300);

/// Which connections break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reset {
    /// One after the other, the one that has been open longest first.
    Oldest,
    /// All at once.
    All,
}

/// How far away the store is, and what happens to its connections.
#[derive(Clone, Copy, Debug)]
pub struct Trial {
    reset: Reset,
    round_trip: Duration,
    times: u32,
}

impl Trial {
    /// Connections break one by one, at a round trip of half the request time-out. There another
    /// connection has to be ready: no store could make a new one in time.
    pub const ONE_BY_ONE: Self =
        Self { reset: Reset::Oldest, round_trip: Duration::from_millis(1_000), times: 5 };

    /// All connections break at once, at a round trip of a fifth of the request time-out. Trust
    /// lasts for 2.7 request time-outs and may be one old by then, and a new connection takes up
    /// to five round trips: there is time for that once, and not in every request.
    pub const ALL_AT_ONCE: Self =
        Self { reset: Reset::All, round_trip: Duration::from_millis(400), times: 5 };
}

/// A node takes a lease in a store behind this path, and must keep it in the same term while its
/// connections break.
///
/// # Panics
///
/// If the node doesn't lead or loses its term.
pub async fn hold_through_resets(store: impl Into<OpenStore>, proxy: &Proxy, trial: Trial) {
    proxy.set_round_trip(trial.round_trip);
    let builder = Node::builder().cluster("distance").name("far").ttl(TTL);
    let joining = builder.request_timeout(REQUEST).join_timeout(TTL * 10).join(store);
    let node = joining.await.expect("it joins");
    let mut campaign = node.campaign("prize").expect("a campaign");
    let leadership = tokio::time::timeout(TTL * 10, campaign.elected()).await;
    let leadership = leadership.expect("it is elected in time").expect("it leads");
    let opened = proxy.traffic().connections;
    for number in 1..=trial.times {
        tokio::select! {
            lost = leadership.lost() => panic!("after {} resets: {lost:?}", number - 1),
            () = tokio::time::sleep(BETWEEN) => {}
        }
        match trial.reset {
            Reset::Oldest => assert!(proxy.cut_oldest(), "a connection was open"),
            Reset::All => proxy.cut(),
        }
    }
    tokio::select! {
        lost = leadership.lost() => panic!("after {} resets: {lost:?}", trial.times),
        () = tokio::time::sleep(TTL * 2) => {}
    }
    assert!(leadership.is_held(), "it leads in the end");
    assert!(proxy.traffic().connections > opened, "new connections were made");
    let leader = node.leader("prize").await.expect("an answer").expect("a leader");
    assert_eq!(leader.term, leadership.number(), "in the store it is the same term");
}
