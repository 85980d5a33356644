//! Who leads the cluster where there is a choice (F65).
#![allow(clippy::unwrap_used, reason = "the helpers are test code too")]

mod common;

use std::time::Duration;

use common::{builder, memory, pause, soon, steady, until};
use incumbent::store::{Exchange, Found, Lane, Read};
use incumbent::{ClusterLead, Node, OpenStore, family, keys};

const LEADER: &str = "incumbent/leader";

/// The members that the view prefers.
async fn preferred(store: &OpenStore) -> usize {
    let reads = vec![Read::Key { key: keys::view(), unless: None }];
    let exchange = Exchange { writes: Vec::new(), reads };
    let reply = soon(store.exchange("test", Lane::Watch, exchange)).await.unwrap();
    match reply.reads.first() {
        Some(Found::Record(view)) => {
            String::from_utf8(view.value.clone()).unwrap().matches("\"preferred\":true").count()
        }
        _ => 0,
    }
}

fn serve(node: &Node, families: &[&str]) {
    for name in families {
        let work = |duty: incumbent::Duty| async move {
            duty.lost().await;
            Ok(())
        };
        node.serve(family(*name).duties(["only"]).run(work)).unwrap();
    }
}

#[tokio::test]
async fn f65_a_node_that_never_leads_the_cluster_is_a_member_all_the_same() {
    let store = memory();
    let shy = soon(builder("shy").cluster_lead(ClusterLead::Never).join(&store)).await.unwrap();
    pause(2500).await;
    assert_eq!(
        soon(shy.leader(LEADER)).await.unwrap(),
        None,
        "it was alone for more than two ttls"
    );
    let other = soon(builder("other").join(&store)).await.unwrap();
    until("the other leads", || other.leads_cluster()).await;
    until("both see both", || shy.members().len() == 2 && other.members().len() == 2).await;
    serve(&shy, &["projection"]);
    soon(async {
        let running = |leader: Option<incumbent::Leader>| leader.is_some_and(|it| it.node == "shy");
        while !running(shy.cluster().where_is("projection/only").await.unwrap()) {
            pause(20).await;
        }
    })
    .await;
    let mut campaign = shy.campaign("scheduler").unwrap();
    let leadership = soon(campaign.elected()).await.unwrap();
    soon(other.leave()).await.unwrap();
    pause(2500).await;
    assert!(leadership.is_held() && !shy.leads_cluster());
    assert_eq!(soon(shy.leader(LEADER)).await.unwrap(), None);
}

#[tokio::test]
async fn f65_who_leads_only_if_needed_waits_for_others_and_not_for_long() {
    let store = memory();
    let first = soon(steady("first").join(&store)).await.unwrap();
    until("the first leads", || first.leads_cluster()).await;
    let spot = steady("spot").cluster_lead(ClusterLead::IfNeeded);
    let spot = soon(spot.join(&store)).await.unwrap();
    let last = soon(steady("last").join(&store)).await.unwrap();
    until("all see all", || [&spot, &last].iter().all(|node| node.members().len() == 3)).await;
    soon(first.leave()).await.unwrap();
    until("somebody leads", || spot.leads_cluster() || last.leads_cluster()).await;
    assert!(last.leads_cluster() && !spot.leads_cluster());
    soon(last.leave()).await.unwrap();
    until("nobody else is there", || spot.leads_cluster()).await;
}

#[tokio::test]
async fn f65_who_serves_all_families_goes_first() {
    let store = memory();
    let first = soon(steady("first").join(&store)).await.unwrap();
    until("the first leads", || first.leads_cluster()).await;
    let part = soon(steady("part").join(&store)).await.unwrap();
    let whole = soon(steady("whole").join(&store)).await.unwrap();
    serve(&first, &["one", "two"]);
    serve(&part, &["one"]);
    serve(&whole, &["one", "two"]);
    soon(async {
        while preferred(&store).await < 2 {
            pause(20).await;
        }
    })
    .await;
    // Who sees the fourth has read a view that says so.
    let fourth = steady("fourth").cluster_lead(ClusterLead::Never);
    let _fourth = soon(fourth.join(&store)).await.unwrap();
    until("part has read the view", || part.members().len() == 4).await;
    soon(first.leave()).await.unwrap();
    until("somebody leads", || part.leads_cluster() || whole.leads_cluster()).await;
    assert!(whole.leads_cluster() && !part.leads_cluster());
    soon(whole.leave()).await.unwrap();
    until("nobody better is there", || part.leads_cluster()).await;
}

#[tokio::test]
async fn the_environment_says_whether_a_node_leads() {
    let from = |value: &str| {
        let value = value.to_owned();
        let lookup = move |name: &str| (name == "INCUMBENT_CLUSTER_LEAD").then(|| value.clone());
        Node::builder().for_tests().cluster("test").name("a").from_lookup(lookup)
    };
    let refused = from("perhaps").unwrap_err().to_string();
    assert!(refused.contains("perhaps") && refused.contains("if-needed"), "{refused}");
    let store = memory();
    let node = soon(from("never").unwrap().join(&store)).await.unwrap();
    pause(1500).await;
    assert!(!node.leads_cluster());
    let eager = soon(from("").unwrap().join(&store)).await.unwrap();
    until("what is empty means the default", || eager.leads_cluster()).await;
    assert!(node.timing().ttl < Duration::from_secs(2));
}
