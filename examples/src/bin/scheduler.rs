//! Work that runs while this node leads. This is the README's first example.
//!
//! Run two side by side, each in a terminal of its own, and stop the one that works with Ctrl-C:
//!
//! ```sh
//! INCUMBENT_NODE=billing-1 cargo run -p incumbent-examples --bin scheduler
//! INCUMBENT_NODE=billing-2 cargo run -p incumbent-examples --bin scheduler
//! ```

use std::time::Duration;

use incumbent::{Fence, Node};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = incumbent::open("sqlite:app.db").await?;
    let node = Node::builder().cluster("billing").join(store).await?; // named by INCUMBENT_NODE

    // Runs while this node leads; cancelled when it stops leading; called again when it leads again.
    let _scheduler = node.lead("scheduler", |term| async move {
        while term.is_held() {
            settle_invoices(term.fence()).await?;
        }
        Ok(()) // Ok: free the lease and stop. Err or panic: free it, back off, contend again.
    })?;

    tokio::signal::ctrl_c().await?;
    node.leave().await?; // work stops, leases are freed, the member leaves
    Ok(())
}

/// Writes to the outside world carry the fence, so that a late write of an old leader is refused.
async fn settle_invoices(fence: Fence) -> Result<(), std::io::Error> {
    println!("settling invoices under fence {fence}");
    tokio::time::sleep(Duration::from_millis(500)).await;
    Ok(())
}
