//! Beats and pushes, by turns with the bare client on the same thread.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use incumbent::clock;
use incumbent::store::{Key, Lane, Read, Store};
use tokio::sync::Notify;

use super::bare::Bare;
use super::record::Swapped;
use crate::spread::Spread;

/// A push that takes longer counts as lost.
const PATIENCE: Duration = Duration::from_secs(5);

/// Microseconds of what was measured by turns.
pub(super) struct ByTurns {
    pub(super) bare: Spread,
    pub(super) ours: Spread,
}

impl ByTurns {
    /// Medians compared.
    pub(super) fn ratio(&self) -> f64 {
        self.ours.median() / self.bare.median()
    }
}

/// What is prepared or connected at first is no part of it.
const WARM: usize = 20;

/// The exchange that a node sends with every beat: its own record, and the board unless it has
/// not changed. The second result is the write alone.
pub(super) async fn beats(
    store: &Arc<dyn Store>,
    cluster: &str,
    bare: &mut dyn Bare,
    rounds: usize,
) -> Result<(ByTurns, Spread)> {
    let mut board = Swapped::new(store, cluster, Lane::Change, "board", false);
    board.swap(Vec::new()).await?;
    let mut beat = Swapped::beat(store, cluster);
    let read = || vec![Read::Key { key: Key::new("board"), unless: board.version() }];
    let (mut plain, mut ours, mut alone) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds + WARM {
        let start = clock::now();
        bare.swap().await?;
        plain.push(micros(clock::now().since(start)));
        let start = clock::now();
        beat.swap(read()).await?;
        ours.push(micros(clock::now().since(start)));
        let start = clock::now();
        beat.swap(Vec::new()).await?;
        alone.push(micros(clock::now().since(start)));
    }
    let [plain, ours, alone] = [plain, ours, alone]
        .map(|times: Vec<f64>| Spread::new(times.into_iter().skip(WARM).collect()));
    Ok((ByTurns { bare: plain, ours }, alone))
}

/// From sending a change until another opened store is woken; nothing where the store can't push.
pub(super) async fn pushes(
    stores: [&Arc<dyn Store>; 2],
    cluster: &str,
    bare: &mut dyn Bare,
    rounds: usize,
) -> Result<Option<ByTurns>> {
    let [writer, listener] = stores;
    let woken = Arc::new(Notify::new());
    let bell = Arc::clone(&woken);
    let guard = listener.hints(cluster, Arc::new(move || bell.notify_one()));
    let (Some(_guard), true) = (guard, listener.capabilities().push) else { return Ok(None) };
    let mut change = Swapped::change(writer, cluster);
    // Until the subscription is there.
    for _ in 0..20 {
        change.swap(Vec::new()).await?;
        if tokio::time::timeout(Duration::from_millis(300), woken.notified()).await.is_ok() {
            break;
        }
    }
    let (mut plain, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let start = clock::now();
        bare.swap().await?;
        plain.push(micros(clock::now().since(start)));
        // Late ones of the round before.
        while tokio::time::timeout(Duration::from_millis(2), woken.notified()).await.is_ok() {}
        let start = clock::now();
        let (swapped, at) = tokio::join!(change.swap(Vec::new()), async {
            let woken = tokio::time::timeout(PATIENCE, woken.notified()).await;
            woken.map(|()| clock::now())
        });
        swapped?;
        ours.push(micros(at?.since(start)));
    }
    Ok(Some(ByTurns { bare: Spread::new(plain), ours: Spread::new(ours) }))
}

pub(super) fn micros(span: Duration) -> f64 {
    span.as_nanos() as f64 / 1000.0
}
