//! What nodes cost the server: requests and bytes.
#![allow(clippy::panic, clippy::expect_used)] // A test fails by panicking, its helpers too.

mod common;

use std::time::Duration;

use common::{Server, block_on, connect, fresh, http, pause, through};
use incumbent::Node;
use incumbent_proving::{Proxy, Wire};

const TTL: Duration = Duration::from_secs(3);
/// Two ttls are six beats, more or less.
const BEATS: u64 = 6;

/// What went over a path in two ttls, for each beat.
async fn cost(what: &str, proxy: &Proxy) -> (u64, u64) {
    pause(1500).await;
    let before = proxy.traffic();
    pause(2 * TTL.as_millis() as u64).await;
    let after = proxy.traffic();
    let requests = after.requests - before.requests;
    let (up, down) = (after.bytes_up - before.bytes_up, after.bytes_down - before.bytes_down);
    println!(
        "{what}: {:.1} requests, {} bytes up, {} down a beat",
        requests as f64 / BEATS as f64,
        up / BEATS,
        down / BEATS
    );
    (requests, up)
}

async fn join(proxy: &Proxy, prefix: &str, name: &str, membership: bool) -> Node {
    let builder = Node::builder().cluster("cost").name(name).ttl(TTL);
    let builder = if membership { builder } else { builder.without_membership() };
    builder.join(connect(&through(proxy, prefix)).await).await.expect("the node joins")
}

#[test]
fn many_leases_cost_the_same_beat() {
    block_on(async {
        let server = Server::start(&[]);
        let mut costs = Vec::new();
        for count in [0, 300] {
            let proxy = Proxy::over(Wire::ETCD, server.port()).await;
            let node = join(&proxy, &fresh(), "holder", false).await;
            let mut held = Vec::new();
            for number in 0..count {
                let mut campaign = node.campaign(format!("lease-{number}")).expect("a campaign");
                let elected = tokio::time::timeout(Duration::from_secs(20), campaign.elected());
                held.push((elected.await.expect("in time").expect("elected"), campaign));
            }
            // As the server itself counts them; the two aren't read at the same moment.
            let name = "grpc_server_handled_total{grpc_code=\"OK\",grpc_method=\"Txn\"";
            let transactions = || http::metric(server.port(), name);
            let (sent, answered) = (proxy.traffic().requests, transactions());
            costs.push(cost(&format!("holder of {count} leases"), &proxy).await);
            let (sent, answered) = (proxy.traffic().requests - sent, transactions() - answered);
            assert!(sent.abs_diff(answered) <= 3, "{sent} sent, {answered} answered");
            drop(held);
        }
        let [(none, none_up), (many, many_up)] = costs[..] else { panic!("{costs:?}") };
        assert!(many <= none + 4 && many_up <= none_up + 4_000, "{costs:?}");
        assert!(none <= BEATS + 3, "about one request a beat: {costs:?}");
    });
}

#[test]
fn a_leader_and_a_candidate_cost_a_few_requests_a_beat() {
    block_on(async {
        let server = Server::start(&[]);
        let prefix = fresh();
        let (one, two) = (
            Proxy::over(Wire::ETCD, server.port()).await,
            Proxy::over(Wire::ETCD, server.port()).await,
        );
        let leader = join(&one, &prefix, "leader", true).await;
        let mut campaign = leader.campaign("scheduler").expect("a campaign");
        let held = campaign.elected().await.expect("elected");
        let candidate = join(&two, &prefix, "candidate", true).await;
        let waiting = candidate.campaign("scheduler").expect("a campaign");
        let (leading, following) = tokio::join!(cost("leader", &one), cost("candidate", &two));
        assert!(leading.0 <= 5 * BEATS, "{leading:?}");
        assert!(following.0 <= 5 * BEATS, "{following:?}");
        drop((held, waiting));
    });
}
