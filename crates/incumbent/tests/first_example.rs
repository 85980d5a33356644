//! The first thing that a user would write, on a real SQLite file.
#![cfg(feature = "sqlite")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use incumbent::{Fence, Node};

static SETTLED: AtomicU64 = AtomicU64::new(0);

async fn settle_invoices(fence: Fence) -> Result<(), std::io::Error> {
    SETTLED.fetch_max(fence.as_u64(), Ordering::SeqCst);
    tokio::time::sleep(Duration::from_millis(5)).await;
    Ok(())
}

#[tokio::test]
async fn the_first_example_leads_and_leaves() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let url = format!("sqlite:{}", directory.path().join("app.db").display());

    let store = incumbent::open(&url).await?;
    let node = Node::builder().cluster("billing").name("billing-1").join(store.clone()).await?;
    let scheduler = node.lead("scheduler", |term| async move {
        while term.is_held() {
            settle_invoices(term.fence()).await?;
        }
        Ok(())
    })?;
    while SETTLED.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(scheduler.is_leader() && node.is_leader("scheduler"));
    node.leave().await?;
    assert!(!scheduler.is_leader());

    // Another takes over at once, in the next term: the first one left in order.
    let next = Node::builder().cluster("billing").name("billing-2").join(store).await?;
    let mut campaign = next.campaign("scheduler")?;
    let leadership = campaign.elected().await?;
    assert_eq!(leadership.fence().as_u64(), 2);
    Ok(())
}
