//! Many leases on one member, by one beat.

mod common;

use std::sync::atomic::Ordering;

use common::{Moody, join, pause, soon};
use incumbent::OpenStore;

#[tokio::test]
async fn two_hundred_leases_hang_from_one_beat() {
    let store = Moody::new();
    let open = OpenStore::from(store.clone());
    let node = join(&open, "a").await;
    let mut campaigns: Vec<_> =
        (0..200).map(|shard| node.campaign(format!("shard-{shard}")).unwrap()).collect();
    let mut held = Vec::new();
    for campaign in &mut campaigns {
        held.push(soon(campaign.elected()).await.unwrap());
    }
    pause(300).await;
    let before = store.mood().exchanges.load(Ordering::SeqCst);
    pause(2000).await;
    let cost = store.mood().exchanges.load(Ordering::SeqCst) - before;
    assert!(cost < 40, "{cost} exchanges in two ttls for 200 leases");
    assert!(held.iter().all(|leadership| leadership.is_held()));
    assert!((0..200).all(|shard| node.is_leader(&format!("shard-{shard}"))));
    drop(held);
    drop(campaigns);
    soon(node.leave()).await.unwrap();
    let free = soon(node.cluster().leases()).await.unwrap();
    assert!(free.iter().all(|state| state.leader.is_none()));
}
