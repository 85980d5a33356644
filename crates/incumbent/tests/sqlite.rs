//! Nodes on a real SQLite file, each with connections of its own, as processes would have.
#![cfg(feature = "sqlite")]
#![allow(clippy::unwrap_used, reason = "this is test code, also where it is no test")]

mod common;

use std::time::Duration;

use common::{builder, pause, soon};
use incumbent::{Node, OpenStore};

async fn open(directory: &tempfile::TempDir) -> OpenStore {
    let path = directory.path().join("cluster.db");
    incumbent::open(&format!("sqlite:{}", path.display())).await.unwrap()
}

#[tokio::test]
async fn hand_over_takes_no_poll_and_terms_grow() {
    let directory = tempfile::tempdir().unwrap();
    // A ttl so long that nothing but hints and orderly hand-overs can make this quick.
    let long = |name: &str| Node::builder().cluster("test").name(name).ttl(Duration::from_secs(60));
    let a = long("a").join(open(&directory).await).await.unwrap();
    let b = long("b").join(open(&directory).await).await.unwrap();
    let began = incumbent::clock::now();
    let mut last = 0;
    for _ in 0..5 {
        for node in [&a, &b] {
            let mut campaign = node.campaign("scheduler").unwrap();
            let leadership = soon(campaign.elected()).await.unwrap();
            assert!(leadership.number() > last);
            last = leadership.number();
            assert_eq!(soon(leadership.confirm()).await, Ok(true));
            drop(campaign);
            drop(leadership);
        }
    }
    let took = incumbent::clock::now().since(began);
    assert!(took < Duration::from_secs(20), "ten hand-overs took {took:?}");
    soon(a.leave()).await.unwrap();
    soon(b.leave()).await.unwrap();
}

#[tokio::test]
async fn requests_reach_the_leader_through_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let leader = builder("leader").join(open(&directory).await).await.unwrap();
    let mut campaign = leader.campaign("scheduler").unwrap();
    let leadership = soon(campaign.elected()).await.unwrap();
    let operator = incumbent::Cluster::new(open(&directory).await, "test").unwrap();
    let asked = soon(operator.request_resign("scheduler")).await.unwrap();
    let asked = asked.leader.unwrap();
    assert_eq!(asked.term, leadership.number());
    soon(leadership.lost()).await;
    drop(leadership);
    assert!(soon(campaign.elected()).await.unwrap().number() > asked.term);
}

#[tokio::test]
async fn leadership_is_kept_for_many_ttls() {
    let directory = tempfile::tempdir().unwrap();
    let leader = builder("leader").join(open(&directory).await).await.unwrap();
    let rival = builder("rival").join(open(&directory).await).await.unwrap();
    let mut campaign = leader.campaign("scheduler").unwrap();
    let leadership = soon(campaign.elected()).await.unwrap();
    let mut theirs = rival.campaign("scheduler").unwrap();
    let patience = Duration::from_secs(4);
    assert!(tokio::time::timeout(patience, theirs.elected()).await.is_err());
    assert!(leadership.is_held());
    drop(campaign);
    drop(leadership);
    assert!(soon(theirs.elected()).await.unwrap().is_held());
    pause(10).await;
}

/// O5: under a second name there would be a log, and a leader, of its own.
#[tokio::test]
#[cfg(unix)]
async fn a_second_name_for_the_file_ends_the_leadership_until_it_is_gone() {
    let directory = tempfile::tempdir().unwrap();
    let node = builder("node").join(open(&directory).await).await.unwrap();
    let mut campaign = node.campaign("scheduler").unwrap();
    let leadership = soon(campaign.elected()).await.unwrap();
    let other = directory.path().join("other.db");
    std::fs::hard_link(directory.path().join("cluster.db"), &other).unwrap();
    let opened = incumbent::open(&format!("sqlite:{}", other.display())).await;
    let said = opened.map(|_| ()).unwrap_err().to_string();
    assert!(said.contains("other.db") && said.contains("2 names"), "{said}");
    soon(leadership.lost()).await;
    assert!(!leadership.is_held());
    let term = leadership.number();
    drop(leadership);
    std::fs::remove_file(other).unwrap();
    assert!(soon(campaign.elected()).await.unwrap().number() > term);
}
