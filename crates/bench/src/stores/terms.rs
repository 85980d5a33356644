//! Takes and clean hand-overs of nodes in two processes, by turns with the bare client in a
//! third.

use std::time::Duration;

use anyhow::Result;
use incumbent::clock;
use tokio::runtime::Runtime;

use super::bare::Bare;
use super::beats::{ByTurns, micros};
use crate::partner::{Partner, pause};
use crate::spread::Spread;

/// From standing for a lease that nobody has until it is held.
pub(super) fn takes(
    player: &mut Partner,
    runtime: &Runtime,
    bare: &mut dyn Bare,
    rounds: usize,
) -> Result<ByTurns> {
    let (mut plain, mut ours) = (Vec::new(), Vec::new());
    for number in 0..rounds {
        plain.push(swap(runtime, bare)?);
        ours.push(player.moment(&format!("take take-{number}"))? as f64 / 1000.0);
    }
    Ok(ByTurns { bare: Spread::new(plain), ours: Spread::new(ours) })
}

/// From giving a lease up in one process until the other holds it.
pub(super) fn hand_overs(
    players: &mut [Partner; 2],
    runtime: &Runtime,
    bare: &mut dyn Bare,
    rounds: usize,
) -> Result<ByTurns> {
    let (mut plain, mut ours) = (Vec::new(), Vec::new());
    for number in 0..rounds {
        let [holder, waiter] = players;
        let (holder, waiter) = if number % 2 == 0 { (holder, waiter) } else { (waiter, holder) };
        ours.push(crate::partner::hand_over(holder, waiter, &format!("lease-{number}"))?);
        // After as long a pause as a hand-over has.
        pause(Duration::from_millis(25));
        plain.push(swap(runtime, bare)?);
    }
    Ok(ByTurns { bare: Spread::new(plain), ours: Spread::new(ours) })
}

fn swap(runtime: &Runtime, bare: &mut dyn Bare) -> Result<f64> {
    let start = clock::now();
    runtime.block_on(bare.swap())?;
    Ok(micros(clock::now().since(start)))
}
