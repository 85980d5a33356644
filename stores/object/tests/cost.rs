//! What nodes cost in requests, each with a client of its own that counts.
#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // Helpers fail by panicking too.

mod common;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use common::block_on;
use common::hashed::{Counts, Hashed};
use futures_util::future::join_all;
use incumbent::{Campaign, Leadership, Node};
use incumbent_object::BucketStore;

/// The shortest that is allowed, so that many beats fit into the test.
const TTL: Duration = Duration::from_secs(3);
const SPAN: Duration = Duration::from_secs(9);

/// One at a time: all nodes of a process share a thread, and ten thousand leases keep it busy.
static ALONE: Mutex<()> = Mutex::new(());

async fn join(client: &Arc<Hashed>, name: &str, membership: bool) -> Node {
    let store = BucketStore::over(client.clone(), "cost").expect("a store");
    let builder = Node::builder().cluster("cost").name(name).ttl(TTL);
    let builder = if membership { builder } else { builder.without_membership() };
    builder.join(store).await.expect("joins")
}

async fn lead(node: &Node, lease: &str) -> (Leadership, Campaign) {
    let mut campaign = node.campaign(lease).expect("a campaign");
    let leadership = campaign.elected().await.expect("leads");
    (leadership, campaign)
}

/// The requests of each client over a while in which nothing happens.
async fn idle(clients: &[&Arc<Hashed>]) -> Vec<Counts> {
    tokio::time::sleep(Duration::from_secs(2)).await;
    for client in clients {
        client.take();
    }
    tokio::time::sleep(SPAN).await;
    clients.iter().map(|client| client.take()).collect()
}

fn show(who: &str, counts: Counts) {
    let Counts { puts, gets, unchanged, lists, deletes } = counts;
    let beats = SPAN.as_secs_f64() / (TTL.as_secs_f64() / 3.0);
    let a_beat = |count: usize| count as f64 / beats;
    println!(
        "{who}: a beat {:.2} writes, {:.2} reads ({:.2} of them unchanged), {:.2} listings, \
         {deletes} deletes",
        a_beat(puts),
        a_beat(gets),
        a_beat(unchanged),
        a_beat(lists),
    );
}

#[test]
fn a_leader_costs_little_and_a_follower_little_more() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    block_on(async {
        let clients = [Hashed::new()];
        let (leading, following) = (&clients[0], clients[0].beside());
        let leader = join(leading, "leader", false).await;
        let _held = lead(&leader, "job").await;
        let follower = join(&following, "follower", false).await;
        let _waiting = follower.campaign("job").expect("a campaign");
        let counts = idle(&[leading, &following]).await;
        show("a leader", counts[0]);
        show("a follower", counts[1]);
        for counts in &counts {
            assert!(counts.puts <= 11, "more than one write a beat: {counts:?}");
            assert_eq!((counts.lists, counts.deletes), (0, 0), "{counts:?}");
        }
        // Two records, looked at when a beat is due and at least once a second.
        assert!(counts[1].gets <= 80, "{counts:?}");
    });
}

#[test]
fn the_leader_of_the_cluster_costs_a_listing_a_beat_and_a_read_a_member() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    block_on(async {
        let first = Hashed::new();
        let leader = join(&first, "leader", true).await;
        while !leader.leads_cluster() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let second = first.beside();
        let member = join(&second, "member", true).await;
        let counts = idle(&[&first, &second]).await;
        let (one, other) = if leader.leads_cluster() { (0, 1) } else { (1, 0) };
        show("the leader of a cluster of two", counts[one]);
        show("the other member", counts[other]);
        assert!(counts[other].lists <= counts[one].lists, "{counts:?}");
        drop(member);
    });
}

#[test]
fn ten_thousand_leases_cost_the_same_beat() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    block_on(async {
        let client = Hashed::new();
        let node = join(&client, "holder", false).await;
        let mut held = Vec::new();
        let names: Vec<_> = (0..10_000).map(|number| format!("lease-{number}")).collect();
        for some in names.chunks(500) {
            held.extend(join_all(some.iter().map(|name| lead(&node, name))).await);
        }
        show_takes(client.take());
        let counts = idle(&[&client]).await;
        show("a holder of 10,000 leases", counts[0]);
        assert!(held.iter().all(|(leadership, _)| leadership.term().is_held()));
        assert!(counts[0].puts <= 11, "more than one write a beat: {counts:?}");
        assert!(counts[0].gets <= 60, "reads grow with leases: {counts:?}");
    });
}

fn show_takes(counts: Counts) {
    println!("taking 10,000 leases: {} writes, {} reads", counts.puts, counts.gets);
}
