use std::time::Duration;

use incumbent_core::store::Key;

use super::bell::{Bell, ring};
use crate::violation::ensure;
use crate::{Context, Violation};

pub(super) const ABOUT: &str = "A dropped guard ends its own wake-ups and nobody else's";

pub(super) async fn run(context: Context) -> Result<(), Violation> {
    let (writer, waiter) = (context.open().await?, context.open().await?);
    let (mut dropped, mut kept) = (Bell::hung(&waiter)?, Bell::hung(&waiter)?);
    dropped.warm(&writer).await?;
    kept.warm(&writer).await?;
    dropped.unhook();
    dropped.silence().await;
    let (before, kept_before) = (dropped.rings(), kept.rings());
    let key = Key::new("lease/hinted");
    for _ in 0..10 {
        ring(&writer, &key, true).await?;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    ensure!(kept.rang(kept_before).await, "dropping one guard silenced another of the same handle");
    dropped.silence().await;
    let woken = dropped.rings().saturating_sub(before);
    ensure!(woken == 0, "after its guard was dropped a waiter was woken {woken} times");
    Ok(())
}
