//! How much there is to read and to write.

use incumbent_core::records::{Content, LeaseRecord};
use incumbent_core::store::{Exchange, Read, Write};
use incumbent_core::{Request, keys};
use incumbent_duties::DutyId;
use incumbent_duties::records::{DutySpec, Moves};

use super::violated;
use crate::duties::FAMILY;
use crate::invariants::Violation;
use crate::plant::Plant;
use crate::stage::{Pass, Stage, TTL};

/// How many duties there were.
const OLD: u64 = 6_000;

/// Each record that is read takes a millisecond, and a request that takes longer than its time is
/// never answered. The leases of duties that are no more cost nothing.
pub(super) fn old_leases(plant: Plant) -> Result<(), Violation> {
    let mut stage = Stage::new(plant);
    for at in 0..OLD {
        let Ok(duty) = DutyId::new(FAMILY, &format!("old-{at}")) else { continue };
        let lease = duty.lease();
        stage.operate(keys::lease(&lease), LeaseRecord::fresh(&lease).bytes());
    }
    let leader = stage.enter("a", true);
    let member = stage.enter("b", false);
    let duties: Vec<DutySpec> = (0..8).map(|at| DutySpec::named(&format!("d{at}"))).collect();
    stage.serve(leader, &[], &duties);
    stage.serve(member, &[], &duties);
    let mut slowest = 0;
    stage.play(2 * TTL, |_, request: &Request| {
        let cost = cost(&request.exchange);
        slowest = slowest.max(cost);
        if cost > 5_000 { Pass::Drop } else { Pass::Through }
    });
    for spec in &duties {
        let Ok(duty) = DutyId::new(FAMILY, &spec.name) else { continue };
        let runs = |node: &usize| stage.trusts(*node, &duty.lease()).is_some();
        if ![leader, member].iter().any(runs) {
            let story = format!("{duty} doesn't run, and the slowest read takes {slowest} ms");
            return violated(&stage, "placed", story);
        }
    }
    Ok(())
}

/// A store that takes small values only: it is never asked to take a larger one, each node runs as
/// many duties as its roster can name, and of the rest people are told why they don't run.
pub(super) fn small_values(plant: Plant) -> Result<(), Violation> {
    let mut stage = Stage::new(plant);
    stage.max_value = 2_000;
    let most = stage.max_value;
    let leader = stage.enter("a", true);
    let member = stage.enter("b", true);
    let duties: Vec<DutySpec> = (0..400).map(|at| DutySpec::named(&format!("d{at}"))).collect();
    stage.serve(leader, &[], &duties);
    stage.serve(member, &[], &duties);
    let mut largest = 0;
    stage.play(4 * TTL, |_, request: &Request| {
        let size = |write: &Write| match write {
            Write::Put(put) => put.value.len(),
            Write::Delete(_) => 0,
        };
        let size = request.exchange.writes.iter().map(size).max().unwrap_or(0);
        largest = largest.max(size);
        if size > most { Pass::Drop } else { Pass::Through }
    });
    let runs = |duty: &&DutySpec| {
        let lease = DutyId::new(FAMILY, &duty.name).map(|duty| duty.lease());
        let runs = |node: &usize| lease.as_ref().is_ok_and(|l| stage.trusts(*node, l).is_some());
        [leader, member].iter().any(runs)
    };
    let running = duties.iter().filter(runs).count() as u64;
    let stored = stage.store.record(&keys::moves());
    let moves = stored.and_then(|stored| Moves::read(&stored).ok());
    let unplaced = moves.as_ref().map_or(0, |moves| moves.unplaced_total);
    let told = |why: &String| why.contains("2000 bytes");
    let told = moves.is_some_and(|moves| moves.unplaced.values().any(told));
    if largest > most || running < 200 || running + unplaced != 400 || !told {
        let story = format!(
            "{running} of 400 duties run, {unplaced} don't, reason shown: {told}; the largest value has {largest} bytes"
        );
        return violated(&stage, "placed", story);
    }
    Ok(())
}

/// How many records a request reads at most. Of all but leases there are few here.
fn cost(exchange: &Exchange) -> u64 {
    let cost = |read: &Read| match read {
        Read::Key { .. } => 1,
        Read::Prefix(prefix) if keys::duty_leases().as_str().starts_with(prefix.as_str()) => OLD,
        Read::Prefix(_) => 10,
    };
    exchange.reads.iter().map(cost).sum()
}
