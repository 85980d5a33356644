use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use incumbent_core::store::{Exchange, Expect, Found, Key, Lane, Read, Write};

use crate::violation::ensure;
use crate::{Context, Effect, Handle, Violation};

pub(super) const ABOUT: &str =
    "An exchange dropped half-way applies each write whole or not, and blocks nothing (F18)";

/// What is written after the drop.
const AFTER: &[u8] = b"{\"after\":1}";

/// How long the store may take to serve again.
const LIMIT: Duration = Duration::from_secs(20);

pub(super) async fn run(context: Context) -> Result<(), Violation> {
    let (handle, judge) = (context.open().await?, context.open_clean().await?);
    let mut rng = context.rng();
    for round in 0..context.rounds() {
        let lane = if rng.chance(0.5) { Lane::Change } else { Lane::Beat };
        let most = context.capabilities().max_operations.clamp(1, 5);
        let keys: Vec<_> = (0..most).map(|n| Key::new(&format!("lease/{round}-{n}"))).collect();
        let content = format!("\"{}\"", "x".repeat(1 + rng.below(20_000)));
        start_and_drop(&handle, lane, &keys, &content, rng.below(4)).await;
        let usable = usable(&handle, &judge, lane, &keys, &content);
        tokio::time::timeout(LIMIT, usable).await.map_err(|_| {
            Violation::new(format!(
                "after an exchange was dropped half-way the {lane:?} lane hung for {LIMIT:?}"
            ))
        })??;
    }
    Ok(())
}

/// Polls the exchange a few times and drops it.
async fn start_and_drop(handle: &Handle, lane: Lane, keys: &[Key], content: &str, polls: usize) {
    let puts = keys.iter().map(|key| Write::Put(handle.creation(key, content.as_bytes())));
    let exchange = Exchange { writes: puts.collect(), reads: Vec::new() };
    let mut sent = pin!(handle.store().exchange(handle.cluster(), lane, exchange));
    for _ in 0..=polls {
        let ended = poll_fn(|waker| Poll::Ready(sent.as_mut().poll(waker).is_ready())).await;
        if ended {
            return;
        }
        tokio::task::yield_now().await;
    }
}

/// Whether reads and writes go on, on the same lane, and are seen by others.
async fn usable(
    handle: &Handle,
    judge: &Handle,
    lane: Lane,
    keys: &[Key],
    content: &str,
) -> Result<(), Violation> {
    for key in keys {
        // What was dropped may still land, so this may take more than one try.
        let mut tries = 0;
        let version = loop {
            tries += 1;
            ensure!(tries < 100, "{key} could not be written after a dropped exchange");
            let found = handle.ask(lane, Read::Key { key: key.clone(), unless: None }).await?;
            let expect = match found {
                Found::Record(record) => {
                    ensure!(
                        record.value == content.as_bytes() || record.value == AFTER,
                        "a dropped exchange wrote {} bytes of {} under {key}",
                        record.value.len(),
                        content.len()
                    );
                    Expect::Version(record.version)
                }
                _ => Expect::Absent,
            };
            let put = handle.replacement(key, expect, AFTER);
            if let Effect::Applied(version) = handle.attempt(lane, put).await? {
                break version;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        let seen = judge.read(key).await?.map(|record| record.version);
        ensure!(
            seen.as_ref() == Some(&version),
            "after a dropped exchange, {version:?} of {key} was acknowledged but others see {seen:?}"
        );
    }
    Ok(())
}
