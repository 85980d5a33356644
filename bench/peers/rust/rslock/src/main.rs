//! The crate `rslock`: a lock on Redis that is extended by who holds it, and tells for how long it is valid.

use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use rslock::{Lock, LockManager};
use telling::Task;
use tokio::sync::watch;

#[tokio::main]
async fn main() -> Result<()> {
    let task = Task::read()?;
    let mut manager = LockManager::new(vec![task.url.clone()]);
    // Attempts are made below, so that all programs wait alike.
    manager.set_retry(1, task.retry());
    let (ending, ended) = watch::channel(false);
    task.begin();
    let mut contending = tokio::task::JoinSet::new();
    for lease in task.leases() {
        let (task, manager, ended) = (task.clone(), manager.clone(), ended.clone());
        contending.spawn(async move { contend(&task, &lease, &manager, ended).await });
    }
    telling::terminated().await?;
    ending.send(true)?;
    contending.join_all().await;
    Ok(())
}

async fn contend(
    task: &Task,
    lease: &str,
    manager: &LockManager,
    mut ended: watch::Receiver<bool>,
) {
    while !*ended.borrow() {
        let sent = telling::now();
        let Ok(lock) = manager.lock(lease, task.ttl).await else {
            let _ = tokio::time::timeout(task.retry(), ended.changed()).await;
            continue;
        };
        tokio::select! {
            () = hold(task, lease, &lock, sent) => {}
            _ = ended.changed() => {}
        }
        lock.release().await;
    }
}

/// Extends the lock, until its validity is over without that.
async fn hold(task: &Task, lease: &str, lock: &Lock, sent: u64) {
    let validity = |sent: u64, lock: &Lock| sent + lock.validity_time as u64 * 1_000_000;
    let until = AtomicU64::new(validity(sent, lock));
    let extend = async {
        loop {
            tokio::time::sleep(task.renewal()).await;
            let sent = telling::now();
            if let Ok(extended) = lock.lock_manager.extend(lock, task.ttl).await {
                until.store(validity(sent, &extended), Ordering::SeqCst);
            }
        }
    };
    tokio::select! {
        () = extend => {}
        () = task.lead(lease, || telling::now() < until.load(Ordering::SeqCst)) => {}
    }
}
