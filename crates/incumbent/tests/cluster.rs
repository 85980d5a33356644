//! Who leads, for anyone; and what operators ask for.

mod common;

use common::{Moody, join, memory, pause, soon, until};
use incumbent::{Cluster, ClusterError, Loss, MemberState, OpenStore};

#[tokio::test]
async fn anyone_can_ask_who_leads_without_joining() {
    let store = memory();
    let cluster = Cluster::new(&store, "test").unwrap();
    assert_eq!(soon(cluster.leader("scheduler")).await.unwrap(), None);
    assert_eq!(soon(cluster.lease("scheduler")).await.unwrap().term, 0);
    assert!(soon(cluster.members()).await.unwrap().is_empty());

    let node = join(&store, "a").await;
    let mut campaign = node.campaign("scheduler").unwrap();
    let leadership = soon(campaign.elected()).await.unwrap();
    let leader = soon(cluster.leader("scheduler")).await.unwrap().unwrap();
    assert_eq!(leader.member, *leadership.member());
    assert_eq!(leader.state, MemberState::Alive);
    let leases: Vec<String> =
        soon(cluster.leases()).await.unwrap().into_iter().map(|state| state.lease).collect();
    assert_eq!(leases, ["incumbent/leader", "scheduler"]);
    until("the profile is there", || true).await;
    let members = soon(cluster.members()).await.unwrap();
    assert_eq!(members.len(), 1);
    let other = Cluster::new(&store, "other").unwrap();
    assert_eq!(soon(other.leader("scheduler")).await.unwrap(), None, "clusters are apart");
    assert!(soon(cluster.leader("incumbent/leader")).await.unwrap().is_some());
    assert!(matches!(cluster.leader("").await, Err(ClusterError::Name(_))));
}

#[tokio::test]
async fn a_watch_gives_the_present_state_first_and_then_the_changes() {
    for store in [OpenStore::from(Moody::new()), OpenStore::from(Moody::silent())] {
        let cluster = Cluster::new(&store, "test").unwrap();
        let mut watch = cluster.watch_lease("scheduler").unwrap();
        assert_eq!(soon(watch.recv()).await.unwrap().leader, None);
        let node = join(&store, "a").await;
        let mut campaign = node.campaign("scheduler").unwrap();
        let leadership = soon(campaign.elected()).await.unwrap();
        let state = soon(watch.recv()).await.unwrap();
        assert_eq!(state.leader.map(|leader| leader.node).as_deref(), Some("a"));
        drop(campaign);
        drop(leadership);
        assert_eq!(soon(watch.recv()).await.unwrap().leader, None);
    }
}

#[tokio::test]
async fn the_leader_resigns_when_asked_through_the_store_without_hints() {
    for store in [OpenStore::from(Moody::new()), OpenStore::from(Moody::silent())] {
        let cluster = Cluster::new(&store, "test").unwrap();
        let missing = soon(cluster.request_resign("scheduler")).await;
        assert!(matches!(missing, Err(ClusterError::NobodyLeads { .. })));
        let node = join(&store, "a").await;
        let mut campaign = node.campaign("scheduler").unwrap();
        for _ in 0..3 {
            let leadership = soon(campaign.elected()).await.unwrap();
            let asked = soon(cluster.request_resign("scheduler")).await.unwrap();
            let asked = asked.leader.unwrap();
            assert_eq!((asked.node.as_str(), asked.term), ("a", leadership.number()));
            assert_eq!(soon(leadership.lost()).await.why, Loss::Resigned);
        }
    }
}

#[tokio::test]
async fn a_requested_transfer_reaches_the_node_that_it_names() {
    let store = memory();
    let leader = join(&store, "leader").await;
    let mut mine = leader.campaign("scheduler").unwrap();
    let leadership = soon(mine.elected()).await.unwrap();
    let (b, c) = (join(&store, "b").await, join(&store, "c").await);
    let _b = b.campaign("scheduler").unwrap();
    let mut c = c.campaign("scheduler").unwrap();
    pause(100).await;
    let cluster = leader.cluster();
    let unknown = soon(cluster.request_transfer("scheduler", "nobody")).await;
    assert!(matches!(unknown, Err(ClusterError::NoSuchMember { .. })));
    soon(cluster.request_transfer("scheduler", "c")).await.unwrap();
    soon(leadership.lost()).await;
    drop(leadership);
    assert_eq!(soon(c.elected()).await.unwrap().number(), 2);
}

#[tokio::test]
async fn an_evicted_member_stops_everything_and_joins_anew() {
    let store = memory();
    let node = join(&store, "a").await;
    let before = node.member().unwrap();
    let mut campaign = node.campaign("scheduler").unwrap();
    let leadership = soon(campaign.elected()).await.unwrap();
    assert_eq!(soon(node.cluster().evict("a")).await.unwrap(), before);
    assert_eq!(soon(leadership.lost()).await.why, Loss::Closed(MemberState::Evicted));
    drop(leadership);
    let again = soon(campaign.elected()).await.unwrap();
    assert_ne!(*again.member(), before, "an id never comes back");
    let unknown = soon(node.cluster().evict(before.as_str())).await;
    assert!(matches!(unknown, Err(ClusterError::NoSuchMember { .. })));
}

#[tokio::test]
async fn two_nodes_of_one_name_never_lead_together_and_can_be_told_apart() {
    let store = memory();
    let (one, two) = (join(&store, "twin").await, join(&store, "twin").await);
    assert_ne!(one.member(), two.member(), "F2");
    let mut first = one.campaign("scheduler").unwrap();
    let leadership = soon(first.elected()).await.unwrap();
    let mut second = two.campaign("scheduler").unwrap();
    let patience = std::time::Duration::from_millis(1500);
    assert!(tokio::time::timeout(patience, second.elected()).await.is_err(), "F2: two leaders");
    let Err(ClusterError::Ambiguous { ids, .. }) = soon(one.cluster().evict("twin")).await else {
        panic!("F2: the name means two members");
    };
    assert_eq!(ids.len(), 2);
    let id = two.member().unwrap();
    soon(one.cluster().request_transfer("scheduler", id.as_str())).await.unwrap();
    soon(leadership.lost()).await;
    drop(leadership);
    let next = soon(second.elected()).await.unwrap();
    assert_eq!(*next.member(), id);
}
