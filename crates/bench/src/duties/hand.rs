//! One of the processes that run duties. It does what its standard input says.

use std::io::BufRead;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Result;
use incumbent::{Node, Serving, clock, family};

/// Serves so many duties, and says how many run here, when the last of them started, and how many have.
pub(crate) fn hand(
    url: &str,
    cluster: &str,
    node: &str,
    duties: usize,
    ttl: Duration,
) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let count = Arc::new(Count::default());
    let _serving = runtime.block_on(serve(url, cluster, node, duties, ttl, &count))?;
    println!("joined");
    let lines = std::thread::spawn({
        let count = Arc::clone(&count);
        move || {
            for line in std::io::stdin().lock().lines() {
                match line.as_deref() {
                    Ok("count") => println!(
                        "{} {} {}",
                        count.running.load(Ordering::Acquire),
                        count.last.load(Ordering::Acquire),
                        count.started.load(Ordering::Acquire)
                    ),
                    _ => break,
                }
            }
        }
    });
    // The duties run on this thread until nobody asks any more.
    runtime.block_on(async {
        while !lines.is_finished() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
    Ok(())
}

#[derive(Default)]
struct Count {
    running: AtomicUsize,
    last: AtomicU64,
    started: AtomicUsize,
}

/// Counts as long as it lives.
struct Running(Arc<Count>);

impl Running {
    fn new(count: &Arc<Count>) -> Self {
        count.last.fetch_max(clock::now().as_nanos(), Ordering::AcqRel);
        count.started.fetch_add(1, Ordering::AcqRel);
        count.running.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(count))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::AcqRel);
    }
}

async fn serve(
    url: &str,
    cluster: &str,
    node: &str,
    duties: usize,
    ttl: Duration,
    count: &Arc<Count>,
) -> Result<(Node, Serving)> {
    let store = incumbent::open(url).await?;
    let builder = Node::builder().cluster(cluster).name(node).ttl(ttl);
    let builder = builder.rebalance_after(Duration::from_secs(5));
    let node = builder.join(store).await?;
    let names: Vec<String> = (0..duties).map(|number| format!("duty-{number}")).collect();
    let count = Arc::clone(count);
    let serving = node.serve(family("work").duties(names).run(move |duty| {
        let count = Arc::clone(&count);
        async move {
            let _running = Running::new(&count);
            duty.token().cancelled().await;
            Ok(())
        }
    }))?;
    Ok((node, serving))
}
