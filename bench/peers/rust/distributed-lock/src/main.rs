//! The crate `distributed-lock`: on Redis a lock that its handle extends, on PostgreSQL an advisory lock. Its
//! handles say by a token when the lock is lost.

use anyhow::{Result, anyhow};
use distributed_lock_core::prelude::*;
use distributed_lock_postgres::PostgresLockProvider;
use distributed_lock_redis::RedisLockProvider;
use telling::Task;
use tokio::sync::watch;

#[tokio::main]
async fn main() -> Result<()> {
    let task = Task::read()?;
    let failed = |error| anyhow!("{error}");
    if task.url.starts_with("redis:") {
        let builder = RedisLockProvider::builder().url(&task.url);
        let builder = builder.expiry(task.ttl).extension_cadence(task.renewal());
        let builder = builder.min_validity(task.ttl * 9 / 10);
        compete(task, builder.build().await.map_err(failed)?).await
    } else {
        let provider = PostgresLockProvider::new(&task.url).await.map_err(failed)?;
        compete(task, provider).await
    }
}

async fn compete<P>(task: Task, provider: P) -> Result<()>
where
    P: LockProvider,
    P::Lock: 'static,
{
    let (ending, ended) = watch::channel(false);
    task.begin();
    let mut contending = tokio::task::JoinSet::new();
    for lease in task.leases() {
        let (task, ended, lock) = (task.clone(), ended.clone(), provider.create_lock(&lease));
        contending.spawn(async move { contend(&task, &lease, &lock, ended).await });
    }
    telling::terminated().await?;
    ending.send(true)?;
    contending.join_all().await;
    Ok(())
}

async fn contend(
    task: &Task,
    lease: &str,
    lock: &impl DistributedLock,
    ended: watch::Receiver<bool>,
) {
    let mut ended = ended;
    while !*ended.borrow() {
        let acquired = tokio::select! {
            acquired = acquire(task, lock) => acquired,
            _ = ended.changed() => None,
        };
        let Some(handle) = acquired else {
            let _ = tokio::time::timeout(task.retry(), ended.changed()).await;
            continue;
        };
        let lost = handle.lost_token().clone();
        tokio::select! {
            () = task.lead(lease, || !*lost.borrow()) => {}
            _ = ended.changed() => {}
        }
        let _ = handle.release().await;
    }
}

/// PostgreSQL lets a connection wait for the lock. On Redis an attempt ends at once.
async fn acquire<L: DistributedLock>(task: &Task, lock: &L) -> Option<L::Handle> {
    if task.url.starts_with("redis:") {
        return lock.try_acquire().await.ok().flatten();
    }
    lock.acquire(None).await.ok()
}
