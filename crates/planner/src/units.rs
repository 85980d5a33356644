//! Evens out units on the grid: duties that stay together, or single ones.

use std::cmp::Reverse;

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
    let problem = layout.problem;
    for unit in units {
        if place_of(layout, unit).is_some() {
            continue;
        }
        let mut nodes: Vec<NodeAt> = problem.nodes.keys().collect();
        nodes.sort_by_key(|node| {
            (urgency(layout, unit, *node), load[*node], layout.fill(*node), *node)
        });
        let taker = nodes.into_iter().find(|node| transfer(layout, unit, *node));
        if let Some(taker) = taker {
            load[taker] += bulk(layout, unit);
        }
    }
    // Every move makes something better for good, so this is only a guard.
    for _ in 0..4 * (units.len() + problem.nodes.len()) {
        if !step(layout, units, load) {
            return;
        }
    }
}

/// One move that makes two nodes more even, if there is one.
fn step(layout: &mut Layout<'_, '_>, units: &[Unit], load: &mut Column<NodeAt, u128>) -> bool {
    let problem = layout.problem;
    let mut held: Column<NodeAt, Vec<&Unit>> = Column::filled(problem.nodes.len(), Vec::new());
    for unit in units {
        if let Some(node) = place_of(layout, unit) {
            held[node].push(unit);
        }
    }
    let mut nodes: Vec<NodeAt> = problem.nodes.keys().collect();
    nodes.sort_by_key(|node| (load[*node], *node));
    for giver in nodes.iter().rev().filter(|node| problem.nodes[**node].open) {
        let heaviest = held[*giver].iter().map(|unit| bulk(layout, unit)).max().unwrap_or(0);
        let mut offers = held[*giver].clone();
        offers.sort_by_key(|unit| (is_settled(layout, unit), Reverse(bulk(layout, unit))));
        for taker in nodes.iter().take_while(|node| load[**node] < load[*giver]) {
            let distance = load[*giver] - load[*taker];
            for unit in &offers {
                let weight = bulk(layout, unit);
                let enough = if is_settled(layout, unit) { heaviest } else { weight };
                let worse = urgency(layout, unit, *taker) > urgency(layout, unit, *giver);
                if enough < distance && !worse && transfer(layout, unit, *taker) {
                    load[*giver] -= weight;
                    load[*taker] += weight;
                    return true;
                }
            }
        }
    }
    false
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
