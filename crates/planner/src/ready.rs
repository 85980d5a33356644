//! Placements ready to use for a family of its own, or for all; made on the grid.

use std::collections::BTreeMap;

use crate::grid::Grid;
use crate::index::{DutyAt, NodeAt};
use crate::policy::Place;
use crate::units::{Unit, place_of, transfer, urgency};

/// Every node gets the same weight of each family, whatever the other families do.
#[derive(Clone, Copy, Debug, Default)]
pub struct EvenByFamily;

impl Place for EvenByFamily {
    fn place(&self, grid: &mut Grid<'_, '_>) {
        for family in families(grid) {
            grid.distribute_evenly(&family);
        }
    }
}

/// Every node that can run a version gets the same weight of it: for blue/green deployments.
#[derive(Clone, Copy, Debug, Default)]
pub struct BlueGreen;

impl Place for BlueGreen {
    fn place(&self, grid: &mut Grid<'_, '_>) {
        for family in families(grid) {
            grid.distribute_evenly_blue_green(&family);
        }
    }
}

/// On the node of this name as far as it fits there; the rest on the least loaded nodes.
#[derive(Clone, Debug)]
pub struct Preferred(pub String);

impl Place for Preferred {
    fn place(&self, grid: &mut Grid<'_, '_>) {
        for (duty, _, _) in grid.duties() {
            // What doesn't fit there stays, or gets the least loaded node.
            let _ = grid.pin(duty, &self.0);
        }
    }
}

/// On the leader of the cluster as far as it fits there.
#[derive(Clone, Copy, Debug, Default)]
pub struct OnLeader;

impl Place for OnLeader {
    fn place(&self, grid: &mut Grid<'_, '_>) {
        for (duty, _, _) in grid.duties() {
            // What doesn't fit there stays, or gets the least loaded node.
            let _ = grid.run_on_leader(duty);
        }
    }
}

/// Duties of one group run on one node where that fits. Groups, and duties without one, are
/// spread so that nodes carry the same.
#[derive(Clone, Copy, Debug, Default)]
pub struct Together;

impl Place for Together {
    fn place(&self, grid: &mut Grid<'_, '_>) {
        let mut groups: BTreeMap<&str, Unit> = BTreeMap::new();
        let mut units: Vec<Unit> = Vec::new();
        for &duty in grid.scope() {
            match &grid.problem().duty(duty).group {
                Some(group) => groups.entry(group).or_default().push(duty),
                None => units.push(vec![duty]),
            }
        }
        for group in groups.into_values() {
            if gather(grid, &group) {
                units.push(group);
            } else {
                scatter(grid, &group);
            }
        }
        grid.even_out_units(&units);
    }
}

/// Brings a group together, where most of it is if that fits. Returns whether it is together.
fn gather(grid: &mut Grid<'_, '_>, group: &[DutyAt]) -> bool {
    let here = place_of(&grid.layout, group);
    if here.is_some_and(|node| urgency(&grid.layout, group, node) == 0) {
        return true;
    }
    let mut nodes = by_welcome(grid, group, group);
    nodes.sort_unstable();
    nodes.into_iter().any(|(_, _, _, node)| {
        grid.effort.spend(group.len());
        transfer(&mut grid.layout, group, node)
    })
}

/// Homes for a group that fits nowhere as a whole: each near as many others as can be.
fn scatter(grid: &mut Grid<'_, '_>, group: &[DutyAt]) {
    let homeless: Vec<&DutyAt> =
        group.iter().filter(|duty| grid.layout.target(**duty).is_none()).collect();
    for duty in homeless {
        if let Some((_, _, _, node)) = by_welcome(grid, &[*duty], group).into_iter().min() {
            let _ = transfer(&mut grid.layout, &[*duty], node);
        }
    }
}

/// The nodes on which some of a group may fit: how urgently they should leave it, how many of
/// the group aren't there, and how loaded it is.
fn by_welcome(
    grid: &mut Grid<'_, '_>,
    some: &[DutyAt],
    group: &[DutyAt],
) -> Vec<(u8, usize, u128, NodeAt)> {
    if grid.effort.is_spent() {
        return Vec::new();
    }
    let nodes = grid.problem().nodes.keys();
    grid.effort.spend(grid.problem().nodes.len());
    let layout = &grid.layout;
    let weight = |duty: &&DutyAt| u128::from(layout.problem.duties[**duty].weight);
    let row = |node: NodeAt| {
        let away = |duty: &&DutyAt| layout.target(**duty) != Some(node);
        let coming: u128 = some.iter().filter(away).map(|duty| weight(&duty)).sum();
        let first = some.iter().find(away);
        if layout.left(node) < coming || first.is_some_and(|it| !layout.fits(*it, node)) {
            return None;
        }
        let away = group.iter().filter(away).count();
        Some((urgency(layout, some, node), away, layout.fill(node), node))
    };
    nodes.filter_map(row).collect()
}

fn families(grid: &Grid<'_, '_>) -> Vec<String> {
    let mut families: Vec<String> =
        grid.duties().into_iter().map(|(_, duty, _)| duty.family.clone()).collect();
    families.dedup();
    families
}
