use incumbent_core::store::Key;

use super::bell::{BOUND, Bell, ring};
use crate::violation::ensure;
use crate::{Context, Handle, Violation};

pub(super) const ABOUT: &str =
    "A hinted write through one handle wakes the others, in any cluster (F22)";

pub(super) async fn run(context: Context) -> Result<(), Violation> {
    let (writer, waiter) = (context.open().await?, context.open().await?);
    most_arrive(&writer, &waiter).await?;
    // Names of channels have limits and rules of their own.
    let long = "long".repeat(30);
    for suffix in ["/'\"%_ é🦀", "A-Mixed.Case", long.as_str()] {
        let cluster = context.scratch(suffix);
        let (writer, waiter) = (writer.within(&cluster), waiter.within(&cluster));
        let warm = Bell::hung(&waiter)?.warm(&writer).await;
        warm.map_err(|violation| {
            Violation::new(format!("in the cluster {cluster:?} {violation}"))
        })?;
    }
    Ok(())
}

/// A few hints may be lost.
async fn most_arrive(writer: &Handle, waiter: &Handle) -> Result<(), Violation> {
    let (mut bell, mut second) = (Bell::hung(waiter)?, Bell::hung(waiter)?);
    bell.warm(writer).await?;
    second.warm(writer).await?;
    let key = Key::new("lease/hinted");
    let mut lost = 0;
    for round in 0..12 {
        let (before, second_before) = (bell.rings(), second.rings());
        ring(writer, &key, true).await?;
        if !bell.rang(before).await || !second.rang(second_before).await {
            lost += 1;
        }
        ensure!(lost <= 2, "of {} hinted writes {lost} woke not everyone in {BOUND:?}", round + 1);
    }
    Ok(())
}
