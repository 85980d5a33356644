//! The crate `pg_lease`: a function that runs while a lease is held, and is aborted when that is lost.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow};
use pg_lease::{LeaseContext, LeaseLooper, LeaseLooperOptions};
use sqlx::postgres::PgPoolOptions;
use telling::Task;
use tokio::sync::watch;

#[tokio::main]
async fn main() -> Result<()> {
    let task = Arc::new(Task::read()?);
    let pool = PgPoolOptions::new().max_connections(10).connect(&task.url).await?;
    let (ending, ended) = watch::channel(false);
    let options = LeaseLooperOptions {
        loop_interval: task.retry(),
        loop_interval_jitter: Duration::ZERO,
        lease_duration: task.ttl,
        lease_heartbeat_interval: task.renewal(),
    };
    task.begin();
    let mut loopers = Vec::new();
    for lease in task.leases() {
        let state = (Arc::clone(&task), ended.clone());
        let worker = task.name.clone();
        let looper = LeaseLooper::new(lease, lead, worker, pool.clone(), options, state);
        looper.start().await.map_err(|error| anyhow!("{error}"))?;
        loopers.push(looper);
    }
    telling::terminated().await?;
    // Only a function that returns frees its lease; `stop` doesn't.
    ending.send(true)?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    Ok(())
}

async fn lead(
    context: LeaseContext,
    (task, mut ended): (Arc<Task>, watch::Receiver<bool>),
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    /// Tells of the loss, which ends the function at any point.
    struct Told(String);
    impl Drop for Told {
        fn drop(&mut self) {
            telling::say(&format!("lost {} {}", telling::now(), self.0));
        }
    }
    let _told = Told(context.lease_name.clone());
    tokio::select! {
        () = task.lead(&context.lease_name, || true) => {}
        _ = ended.wait_for(|ended| *ended) => {}
    }
    Ok(())
}
