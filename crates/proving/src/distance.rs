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

/// How far away the store is, and what happens to its connections.
struct Trial {
    /// Its cluster, for all trials may share a store.
    cluster: &'static str,
    round_trip: Duration,
    /// Breaks some connections.
    reset: fn(&Proxy),
}

/// Connections break one by one, the one that has been open longest first, at a round trip of half the
/// request time-out. There another connection has to be ready: no store could make a new one in time.
const ONE_BY_ONE: Trial = Trial {
    cluster: "one-by-one",
    round_trip: Duration::from_millis(1_000),
    reset: |proxy| assert!(proxy.cut_oldest(), "a connection was open"),
};

/// All connections break at once, at a round trip of a fifth of the request time-out. Trust lasts for
/// 2.7 request time-outs and may be one old by then, and a new connection takes up to five round trips:
/// there is time for that once, and not in every request.
const ALL_AT_ONCE: Trial =
    Trial { cluster: "all-at-once", round_trip: Duration::from_millis(400), reset: Proxy::cut };

/// How often connections break.
const TIMES: u32 = 5;

/// A node far from its store takes a lease and keeps it in the same term while connections break: one by
/// one, and on another path all at once.
///
/// # Panics
///
/// If the node doesn't lead or loses its term.
pub async fn hold_through_resets(port: u16, open: impl AsyncFn(&Proxy) -> OpenStore) {
    let (one, all) = (Proxy::to(port).await, Proxy::to(port).await);
    let stores = (open(&one).await, open(&all).await);
    tokio::join!(hold(stores.0, &one, ONE_BY_ONE), hold(stores.1, &all, ALL_AT_ONCE));
}

async fn hold(store: OpenStore, proxy: &Proxy, trial: Trial) {
    proxy.set_round_trip(trial.round_trip);
    let builder = Node::builder().cluster(trial.cluster).name("far").ttl(TTL);
    let joining = builder.request_timeout(REQUEST).join_timeout(TTL * 10).join(store);
    let node = joining.await.expect("it joins");
    let mut campaign = node.campaign("prize").expect("a campaign");
    let leadership = tokio::time::timeout(TTL * 10, campaign.elected()).await;
    let leadership = leadership.expect("it is elected in time").expect("it leads");
    let opened = proxy.traffic().connections;
    for number in 1..=TIMES {
        tokio::select! {
            lost = leadership.lost() => panic!("{}: after {} resets: {lost:?}", trial.cluster, number - 1),
            () = tokio::time::sleep(BETWEEN) => {}
        }
        (trial.reset)(proxy);
    }
    tokio::select! {
        lost = leadership.lost() => panic!("{}: after {TIMES} resets: {lost:?}", trial.cluster),
        () = tokio::time::sleep(TTL * 2) => {}
    }
    assert!(leadership.is_held(), "it leads in the end");
    assert!(proxy.traffic().connections > opened, "new connections were made");
    let leader = node.leader("prize").await.expect("an answer").expect("a leader");
    assert_eq!(leader.term, leadership.number(), "in the store it is the same term");
}
