//! Evens out units on the grid: duties that stay together, or single ones.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::grid::Grid;
use crate::index::{Column, DutyAt, NodeAt};
use crate::layout::Layout;
use crate::preference::Rank;

/// Duties that go to one node together.
pub(crate) type Unit = Vec<DutyAt>;

impl Grid<'_, '_> {
    /// Gives every node the same weight of these duties.
    pub(crate) fn even_out(&mut self, duties: &[DutyAt]) {
        let units: Vec<Unit> = duties.iter().map(|duty| vec![*duty]).collect();
        let mut load = Column::filled(self.problem().nodes.len(), 0);
        for duty in duties {
            if let Some(node) = self.layout.target(*duty) {
                load[node] += u128::from(self.problem().duties[*duty].bulk());
            }
        }
        even_out(&mut self.layout, &units, &mut load);
    }

    /// Gives every node the same weight in all, by moves of these units.
    pub(crate) fn even_out_units(&mut self, units: &[Unit]) {
        let nodes = self.problem().nodes.keys();
        let mut load: Column<NodeAt, u128> = nodes.map(|node| self.layout.bulk(node)).collect();
        even_out(&mut self.layout, units, &mut load);
    }
}

/// Places units that are nowhere, then moves units from nodes that have more to nodes that have
/// less. The load is what counts as more or less.
fn even_out(layout: &mut Layout<'_, '_>, units: &[Unit], load: &mut Column<NodeAt, u128>) {
    for unit in units {
        if place_of(layout, unit).is_none() {
            let order = by_welcome(layout, unit, load);
            let taker = order.into_iter().find(|node| transfer(layout, unit, *node));
            if let Some(taker) = taker {
                load[taker] += bulk(layout, unit);
            }
        }
    }
    let mut evening = Evening::new(layout, units, load);
    for _ in 0..PASSES {
        if !evening.pass() {
            return;
        }
    }
}

/// More passes than any grid needs; each move makes something better for good.
const PASSES: usize = 32;

/// The nodes that a unit might go to, best first.
fn by_welcome(
    layout: &Layout<'_, '_>,
    unit: &[DutyAt],
    load: &Column<NodeAt, u128>,
) -> Vec<NodeAt> {
    let problem = layout.problem;
    let fits = |node: &NodeAt| unit.iter().all(|duty| layout.verdict(*duty, *node).is_none());
    let mut nodes: Vec<NodeAt> = problem.nodes.keys().filter(fits).collect();
    let key =
        |node: &NodeAt| (urgency(layout, unit, *node), load[*node], layout.fill(*node), *node);
    nodes.sort_by_cached_key(key);
    nodes
}

/// Moves of units between nodes, from those that have more.
struct Evening<'e, 'p, 'a> {
    layout: &'e mut Layout<'p, 'a>,
    units: &'e [Unit],
    /// The units of each node, by position.
    held: Column<NodeAt, Vec<usize>>,
    /// The nodes that get new duties, least loaded first.
    takers: BTreeSet<(u128, NodeAt)>,
}

impl<'e, 'p, 'a> Evening<'e, 'p, 'a> {
    fn new(layout: &'e mut Layout<'p, 'a>, units: &'e [Unit], load: &Column<NodeAt, u128>) -> Self {
        let nodes = &layout.problem.nodes;
        let mut held: Column<NodeAt, Vec<usize>> = Column::filled(nodes.len(), Vec::new());
        for (position, unit) in units.iter().enumerate() {
            if let Some(node) = place_of(layout, unit) {
                held[node].push(position);
            }
        }
        let open = nodes.iter().filter(|(_, facts)| facts.open);
        let takers = open.map(|(node, _)| (load[node], node)).collect();
        Self { layout, units, held, takers }
    }

    /// Lets nodes give, always the one that has most. Returns whether anything moved.
    fn pass(&mut self) -> bool {
        let mut givers = self.takers.clone();
        let mut any = false;
        for _ in 0..4 * (self.units.len() + givers.len()) {
            let Some(giver) = givers.pop_last() else { break };
            let Some((taker, weight)) = self.step(giver) else { continue };
            givers.remove(&taker);
            self.takers.remove(&giver);
            self.takers.remove(&taker);
            let after = [(giver.0 - weight, giver.1), (taker.0 + weight, taker.1)];
            self.takers.extend(after);
            givers.extend(after);
            any = true;
        }
        any
    }

    /// One move from a node that makes it and another more even, if there is one: where it goes,
    /// and its weight.
    fn step(&mut self, (has, giver): (u128, NodeAt)) -> Option<((u128, NodeAt), u128)> {
        let mut offers: Vec<(bool, Reverse<u128>, usize, &Unit)> = Vec::new();
        for &position in &self.held[giver] {
            let Some(unit) = self.units.get(position) else { continue };
            let weight = Reverse(bulk(self.layout, unit));
            offers.push((is_settled(self.layout, unit), weight, position, unit));
        }
        offers.sort_unstable();
        let heaviest = offers.iter().map(|offer| offer.1.0).max()?;
        let lightest = offers.iter().map(|offer| offer.1.0).min()?;
        for &(load, taker) in &self.takers {
            let distance = has.saturating_sub(load);
            if distance <= lightest {
                return None;
            }
            for (settled, Reverse(weight), position, unit) in &offers {
                let enough = if *settled { heaviest } else { *weight };
                let helps = enough < distance
                    && urgency(self.layout, unit, taker) <= urgency(self.layout, unit, giver);
                if helps && transfer(self.layout, unit, taker) {
                    self.held[giver].retain(|held| held != position);
                    self.held[taker].push(*position);
                    return Some(((load, taker), *weight));
                }
            }
        }
        None
    }
}

/// The node of a unit, if it is on one as a whole.
pub(crate) fn place_of(layout: &Layout<'_, '_>, unit: &[DutyAt]) -> Option<NodeAt> {
    let node = layout.target(*unit.first()?)?;
    unit.iter().all(|duty| layout.target(*duty) == Some(node)).then_some(node)
}

/// Moves a whole unit to a node, or nothing.
pub(crate) fn transfer(layout: &mut Layout<'_, '_>, unit: &[DutyAt], node: NodeAt) -> bool {
    let before: Vec<Option<NodeAt>> = unit.iter().map(|duty| layout.target(*duty)).collect();
    unit.iter().for_each(|duty| layout.lift(*duty));
    let fits = unit.iter().all(|duty| {
        let fits = layout.verdict(*duty, node).is_none();
        if fits {
            layout.put(*duty, node);
        }
        fits
    });
    if fits {
        return true;
    }
    unit.iter().for_each(|duty| layout.lift(*duty));
    for (duty, place) in unit.iter().zip(before) {
        if let Some(place) = place {
            layout.put(*duty, place);
        }
    }
    false
}

pub(crate) fn bulk(layout: &Layout<'_, '_>, unit: &[DutyAt]) -> u128 {
    unit.iter().map(|duty| u128::from(layout.problem.duties[*duty].bulk())).sum()
}

/// How unwelcome the least welcome of a unit is on a node.
pub(crate) fn urgency(layout: &Layout<'_, '_>, unit: &[DutyAt], node: NodeAt) -> u8 {
    unit.iter().map(|duty| Rank::of(layout, *duty, node).urgency()).max().unwrap_or(0)
}

fn is_settled(layout: &Layout<'_, '_>, unit: &[DutyAt]) -> bool {
    unit.iter().any(|duty| {
        let running = layout.problem.duties[*duty].running;
        running.is_some() && running == layout.target(*duty)
    })
}
