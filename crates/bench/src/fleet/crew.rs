//! One of the processes of a fleet. It does what its standard input says.

use std::io::BufRead;
use std::time::Duration;

use anyhow::Result;
use incumbent::{Event, Node, Subscription};
use tokio::task::JoinSet;

use super::punctual::Punctual;

/// Joins with so many nodes on one opened store, and keeps them until it is told to leave.
pub(crate) fn crew(url: &str, cluster: &str, count: usize) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let store = Punctual::new(runtime.block_on(incumbent::open(url))?);
    let mut nodes = runtime.block_on(join(&store, cluster, count))?;
    println!("joined");
    for line in std::io::stdin().lock().lines() {
        match line?.as_str() {
            "lost" => println!("{}", nodes.iter_mut().map(|node| node.1.lost()).sum::<usize>()),
            // How late beats were since this was last asked.
            "late" => {
                let late: Vec<String> = store.take().iter().map(u64::to_string).collect();
                println!("late {}", late.join(" "));
            }
            "leave" => {
                runtime.block_on(leave(std::mem::take(&mut nodes)))?;
                println!("left");
            }
            _ => break,
        }
    }
    Ok(())
}

/// All at once, as after a deployment.
async fn join(store: &Punctual, cluster: &str, count: usize) -> Result<Vec<(Node, Ears)>> {
    let mut joining = JoinSet::new();
    for number in 0..count {
        let builder = Node::builder()
            .cluster(cluster)
            .name(format!("node-{}-{number}", std::process::id()))
            .join_timeout(Duration::from_secs(120));
        joining.spawn(builder.join(store.clone()));
    }
    let mut nodes = Vec::new();
    while let Some(joined) = joining.join_next().await {
        let node = joined??;
        let ears = Ears(node.subscribe());
        nodes.push((node, ears));
    }
    Ok(nodes)
}

async fn leave(nodes: Vec<(Node, Ears)>) -> Result<()> {
    let mut leaving = JoinSet::new();
    for (node, _) in nodes {
        leaving.spawn(async move { node.leave().await });
    }
    while let Some(left) = leaving.join_next().await {
        left??;
    }
    Ok(())
}

/// Hears all that happens to a node.
struct Ears(Subscription);

impl Ears {
    /// How often its membership ended, or its leadership.
    fn lost(&mut self) -> usize {
        let mut lost = 0;
        while let Ok(notice) = self.0.try_recv() {
            lost += usize::from(matches!(notice.event, Event::Ended { .. } | Event::Lost { .. }));
        }
        lost
    }
}
