//! A node that stands for another process gives no evidence of its own.

use std::time::Duration;

use incumbent::{Cluster, MemoryStore, Node, witness};

#[tokio::test]
async fn a_node_on_behalf_of_another_process_publishes_no_evidence() {
    let store = MemoryStore::new();
    let evidence = || witness::evidence(&[std::process::id()], None).unwrap();
    let join = |name: &str| Node::builder().for_tests().name(name).evidence(evidence());
    let _own = join("own").join(store.clone()).await.unwrap();
    let _other = join("other").on_behalf().join(store.clone()).await.unwrap();
    let cluster = Cluster::new(store, "default").unwrap();
    let mut members = cluster.members().await.unwrap();
    // Profiles come a moment after their members.
    while members.iter().filter(|member| !member.node.is_empty()).count() < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
        members = cluster.members().await.unwrap();
    }
    let proven = |name: &str| {
        let member = members.iter().find(|member| member.node == name).unwrap();
        member.host.as_ref().is_some_and(|host| host.evidence.is_some())
    };
    assert!(proven("own"));
    assert!(!proven("other"), "its witness would close it while that process works");
}
