//! A campaign and its leadership, for programs that want a guard instead of a closure.
//!
//! Run two side by side, each in a terminal of its own. They take turns, five seconds each:
//!
//! ```sh
//! INCUMBENT_NODE=a cargo run -p incumbent-examples --bin guard
//! INCUMBENT_NODE=b cargo run -p incumbent-examples --bin guard
//! ```

use std::time::Duration;

use incumbent::{Leadership, Node};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = incumbent::open("sqlite:app.db").await?;
    let node = Node::builder().cluster("billing").join(store).await?;
    // Stands for the lease until it is dropped.
    let mut campaign = node.campaign("nightly-report")?;
    loop {
        let leadership = tokio::select! {
            elected = campaign.elected() => elected?,
            stop = tokio::signal::ctrl_c() => { stop?; break }
        };
        println!("{} leads in term {}", node.name(), leadership.number());
        tokio::select! {
            () = work(&leadership) => {
                // Freed in the store when this is ready; then this node stands back for a while.
                leadership.release().await?;
                println!("{} resigned", node.name());
            }
            lost = leadership.lost() => println!("{} leads no more: {lost}", node.name()),
            stop = tokio::signal::ctrl_c() => { stop?; break }
        }
    }
    // Dropping a leadership frees the lease too, but here everything is freed by leaving.
    drop(campaign);
    node.leave().await?;
    Ok(())
}

async fn work(leadership: &Leadership) {
    for page in 1..=5 {
        // The cheap question, as often as you like. `leadership.confirm()` would ask the store.
        if !leadership.is_held() {
            return;
        }
        println!("page {page} under fence {}", leadership.fence());
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}
