//! All workers of the application block for three ttls, and leadership is kept (F17, F31).

mod common;

use std::sync::{Arc, Barrier};
use std::time::Duration;

use common::{builder, memory, soon};

#[test]
fn leadership_outlasts_blocked_workers() {
    let application =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let store = memory();
    let (node, campaign, leadership) = application.block_on(async {
        let node = builder("busy").join(&store).await.unwrap();
        let mut campaign = node.campaign("scheduler").unwrap();
        let leadership = soon(campaign.elected()).await.unwrap();
        (node, campaign, leadership)
    });
    let (rival_store, term) = (store.clone(), leadership.number());

    // Both workers are in a blocking call from here on.
    let stuck = Arc::new(Barrier::new(3));
    for _ in 0..2 {
        let stuck = Arc::clone(&stuck);
        application.spawn(async move {
            stuck.wait();
            std::thread::park_timeout(Duration::from_secs(4));
        });
    }
    stuck.wait();

    // Somebody else would take over if it could, from a runtime of its own.
    let elsewhere = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    elsewhere.block_on(async {
        let rival = builder("rival").join(&rival_store).await.unwrap();
        let mut campaign = rival.campaign("scheduler").unwrap();
        let patience = Duration::from_secs(3);
        let stolen = tokio::time::timeout(patience, campaign.elected()).await;
        assert!(stolen.is_err(), "F17, F31: the leader was blocked for three ttls, and lost");
    });
    assert!(leadership.is_held() && node.is_leader("scheduler"));
    assert_eq!(leadership.number(), term);
    drop((leadership, campaign));
    application.shutdown_background();
}
