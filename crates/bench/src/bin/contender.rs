//! incumbent as a peer among others: what the programs under `bench/peers` do, with this library. They say what
//! their arguments and their lines mean.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use incumbent::{Node, clock, witness};
use tokio::signal::unix::{SignalKind, signal};

fn main() -> Result<()> {
    witness::init().context("a witness")?;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, name, lease, ttl, count, ask] = arguments.as_slice() else {
        anyhow::bail!("usage: incumbent-contender URL NAME LEASE TTL_MS COUNT ASK_MS");
    };
    let ttl = Duration::from_millis(ttl.parse().context("TTL_MS")?);
    let count: usize = count.parse().context("COUNT")?;
    let ask = Duration::from_millis(ask.parse().context("ASK_MS")?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let store = incumbent::open(url).await?;
        // A lease among many is of a cluster of its own, so that pairs don't know of one another.
        let node = Node::builder().cluster(lease).name(name).ttl(ttl).join(store).await?;
        let node = Arc::new(node);
        println!("begin {}", now());
        for number in 0..count {
            let lease = if count == 1 { lease.clone() } else { format!("{lease}-{number}") };
            let standing = stand(Arc::clone(&node), lease, ask);
            runtime.handle().spawn(async move {
                if let Err(error) = standing.await {
                    eprintln!("error: {error:#}");
                }
            });
        }
        signal(SignalKind::terminate())?.recv().await;
        node.leave().await?;
        Ok(())
    })
}

/// Stands for a lease until the node has left.
async fn stand(node: Arc<Node>, lease: String, ask: Duration) -> Result<()> {
    let mut campaign = node.campaign(&lease)?;
    while let Ok(leadership) = campaign.elected().await {
        println!("led {} {lease}", now());
        loop {
            let at = now();
            if !leadership.is_held() {
                break;
            }
            if ask.is_zero() {
                // Nobody wants the answers, and asking costs time of a processor.
                let _ = leadership.lost().await;
                break;
            }
            println!("believes {at} {lease}");
            tokio::time::sleep(ask).await;
        }
        println!("lost {} {lease}", now());
    }
    Ok(())
}

fn now() -> u64 {
    clock::now().as_nanos()
}
