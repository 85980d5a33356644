use std::time::Duration;

use incumbent_core::store::Key;

use super::bell::{Bell, ring};
use crate::violation::ensure;
use crate::{Context, Violation};

pub(super) const ABOUT: &str = "Writes without a hint wake nobody, or seldom (F48)";

const BEATS: usize = 50;

pub(super) async fn run(context: Context) -> Result<(), Violation> {
    let (writer, waiter) = (context.open().await?, context.open().await?);
    let mut bell = Bell::hung(&waiter)?;
    bell.warm(&writer).await?;
    bell.silence().await;
    let before = bell.rings();
    let key = Key::new("member/beating");
    for _ in 0..BEATS {
        ring(&writer, &key, false).await?;
        // Wake-ups coalesce, so beats in one burst would hide what they cause.
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    bell.silence().await;
    let woken = bell.rings().saturating_sub(before);
    ensure!(woken <= BEATS / 4, "{BEATS} writes without a hint woke a waiter {woken} times");
    Ok(())
}
