//! Handles and futures can be sent to other threads.

mod common;

use incumbent::{
    Campaign, Cluster, LeaderTask, Leadership, LeaseWatch, Node, OpenStore, Subscription, Term,
};

fn shared<T: Send + Sync + 'static>() {}

fn sent<T: Send>(value: T) -> T {
    value
}

#[tokio::test]
async fn handles_and_futures_can_be_sent() {
    shared::<(Node, Cluster, OpenStore, Term, LeaderTask)>();
    shared::<(Campaign, Leadership, Subscription, LeaseWatch)>();
    let store = sent(incumbent::open("solo:")).await.unwrap();
    let node = sent(common::builder("a").join(store)).await.unwrap();
    let mut campaign = node.campaign("scheduler").unwrap();
    let leadership = sent(campaign.elected()).await.unwrap();
    sent(leadership.confirm()).await.unwrap();
    sent(node.run_if_leader("scheduler", |_| async {})).await;
    sent(node.leader("scheduler")).await.unwrap();
    drop(sent(node.try_lead("other")).await.unwrap());
    sent(leadership.release()).await.unwrap();
    drop(campaign);
    sent(node.leave()).await.unwrap();
}
