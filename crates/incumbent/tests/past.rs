//! What a node has seen is known to the next one of its process (O6).
#![allow(clippy::unwrap_used, reason = "this is test code, helpers too")]

mod common;

use common::{builder, join, memory, soon};
use incumbent::store::{Exchange, Lane, Write};
use incumbent::{LeaseName, Node, OpenStore, keys};

/// Leads once, and says in which term.
async fn lead(node: &Node) -> u64 {
    let mut campaign = node.campaign("scheduler").unwrap();
    let leadership = soon(campaign.elected()).await.unwrap();
    let term = leadership.number();
    drop(campaign);
    soon(leadership.release()).await.unwrap();
    term
}

/// The store loses the lease behind everybody's back.
async fn forget(store: &OpenStore) {
    let key = keys::lease(&LeaseName::new("scheduler").unwrap());
    let exchange = Exchange { writes: vec![Write::Delete(key)], reads: Vec::new() };
    store.exchange("test", Lane::Change, exchange).await.unwrap();
}

#[tokio::test]
async fn terms_that_a_store_forgot_are_known_to_the_next_node() {
    let store = memory();
    let first = join(&store, "a").await;
    assert_eq!(lead(&first).await, 1);
    let past = soon(first.past()).await.unwrap();
    soon(first.leave()).await.unwrap();
    assert!(first.past().await.is_none(), "it has left");
    forget(&store).await;
    let stranger = join(&store, "b").await;
    assert_eq!(lead(&stranger).await, 1, "who has seen nothing can't know");
    soon(stranger.leave()).await.unwrap();
    forget(&store).await;
    let next = builder("a").past(past).join(store.clone()).await.unwrap();
    let term = lead(&next).await;
    assert!(term > 1_000, "term {term} was given before");
    soon(next.leave()).await.unwrap();
}
