//! Evens out units on the grid: duties that stay together, or single ones.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashSet};

use crate::effort::Effort;
use crate::grid::Grid;
use crate::index::{Column, DutyAt, KindAt, NodeAt};
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
        even_out(&mut self.layout, &units, &mut load, &mut self.effort);
    }

    /// Gives every node the same weight in all, by moves of these units.
    pub(crate) fn even_out_units(&mut self, units: &[Unit]) {
        let nodes = self.problem().nodes.keys();
        let mut load: Column<NodeAt, u128> = nodes.map(|node| self.layout.bulk(node)).collect();
        even_out(&mut self.layout, units, &mut load, &mut self.effort);
    }
}

/// Places units that are nowhere, then moves units from nodes that have more to nodes that have
/// less. The load is what counts as more or less.
fn even_out(
    layout: &mut Layout<'_, '_>,
    units: &[Unit],
    load: &mut Column<NodeAt, u128>,
    effort: &mut Effort,
) {
    let mut homes = Homes::new(layout, load);
    for unit in units.iter().filter(|unit| !unit.is_empty()) {
        if place_of(layout, unit).is_none() && !effort.is_spent() {
            homes.give(layout, unit, load, effort);
        }
    }
    let mut evening = Evening::new(layout, units, load, effort);
    for _ in 0..PASSES {
        if !evening.pass() {
            return;
        }
    }
}

/// More passes than any grid needs; each move makes something better for good.
const PASSES: usize = 32;

/// Nodes for units that are nowhere.
struct Homes {
    /// The nodes that take more, least loaded first.
    takers: BTreeSet<(u128, u128, NodeAt)>,
    /// Kinds of single duties that fit nowhere: nodes only fill up meanwhile.
    hopeless: HashSet<KindAt>,
}

impl Homes {
    fn new(layout: &Layout<'_, '_>, load: &Column<NodeAt, u128>) -> Self {
        let taker = |node: NodeAt| (load[node], layout.fill(node), node);
        let takers = layout.roomy().into_iter().map(taker).collect();
        Self { takers, hopeless: HashSet::new() }
    }

    /// Puts a unit on the least loaded node on which it fits; last on one where it failed.
    fn give(
        &mut self,
        layout: &mut Layout<'_, '_>,
        unit: &[DutyAt],
        load: &mut Column<NodeAt, u128>,
        effort: &mut Effort,
    ) {
        let kinds = layout.problem.kinds();
        let single = if let [duty] = unit { Some(kinds.of(*duty)) } else { None };
        if single.is_some_and(|kind| self.hopeless.contains(&kind)) {
            return;
        }
        let mut resorts = Vec::new();
        let mut home = None;
        for &taker in &self.takers {
            effort.spend(unit.len());
            let urgency = urgency(layout, unit, taker.2);
            if urgency > 0 {
                resorts.push((urgency, taker));
            } else if transfer(layout, unit, taker.2) {
                home = Some(taker);
                break;
            }
        }
        if home.is_none() {
            resorts.sort_unstable();
            let mut resorts = resorts.into_iter().map(|(_, taker)| taker);
            home = resorts.find(|taker| transfer(layout, unit, taker.2));
        }
        let Some(taker) = home else {
            self.hopeless.extend(single);
            return;
        };
        self.takers.remove(&taker);
        let node = taker.2;
        load[node] += bulk(layout, unit);
        if !layout.is_full(node) {
            self.takers.insert((load[node], layout.fill(node), node));
        }
    }
}

/// Moves of units between nodes, from those that have more.
struct Evening<'e, 'p, 'a> {
    layout: &'e mut Layout<'p, 'a>,
    units: &'e [Unit],
    /// What each node offers.
    held: Column<NodeAt, BTreeSet<UnitOffer>>,
    /// The nodes that get new duties, least loaded first.
    takers: BTreeSet<(u128, NodeAt)>,
    effort: &'e mut Effort,
}

/// A unit that may go: whether that is a move of something that runs, how heavy it is, and its
/// position.
type UnitOffer = (bool, Reverse<u128>, usize);

impl<'e, 'p, 'a> Evening<'e, 'p, 'a> {
    fn new(
        layout: &'e mut Layout<'p, 'a>,
        units: &'e [Unit],
        load: &Column<NodeAt, u128>,
        effort: &'e mut Effort,
    ) -> Self {
        let nodes = &layout.problem.nodes;
        let mut held: Column<NodeAt, BTreeSet<UnitOffer>> =
            Column::filled(nodes.len(), BTreeSet::new());
        for (position, unit) in units.iter().enumerate() {
            if let Some(node) = place_of(layout, unit) {
                held[node].insert(offer(layout, unit, position));
            }
        }
        let open = nodes.iter().filter(|(_, facts)| facts.open);
        let takers = open.map(|(node, _)| (load[node], node)).collect();
        Self { layout, units, held, takers, effort }
    }

    /// Lets nodes give, always the one that has most. Returns whether anything moved.
    fn pass(&mut self) -> bool {
        let mut givers = self.takers.clone();
        let mut any = false;
        for _ in 0..4 * (self.units.len() + givers.len()) {
            let Some(giver) = givers.pop_last() else { break };
            if self.effort.is_spent() {
                return false;
            }
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
        let weights = || self.held[giver].iter().map(|(_, Reverse(weight), _)| *weight);
        let (heaviest, lightest) = (weights().max()?, weights().min()?);
        for &(load, taker) in &self.takers {
            let distance = has.saturating_sub(load);
            if distance <= lightest {
                return None;
            }
            self.effort.spend(1);
            if self.layout.is_full(taker) {
                continue;
            }
            for &(settled, Reverse(weight), position) in &self.held[giver] {
                let Some(unit) = self.units.get(position) else { continue };
                let enough = if settled { heaviest } else { weight };
                if enough >= distance {
                    continue;
                }
                self.effort.spend(unit.len());
                let welcome =
                    urgency(self.layout, unit, taker) <= urgency(self.layout, unit, giver);
                if welcome && transfer(self.layout, unit, taker) {
                    self.held[giver].remove(&(settled, Reverse(weight), position));
                    let offer = offer(self.layout, unit, position);
                    self.held[taker].insert(offer);
                    return Some(((load, taker), weight));
                }
            }
        }
        None
    }
}

fn offer(layout: &Layout<'_, '_>, unit: &[DutyAt], position: usize) -> UnitOffer {
    let settled = unit.iter().any(|duty| {
        let running = layout.problem.running[*duty];
        running.is_some() && running == layout.target(*duty)
    });
    (settled, Reverse(bulk(layout, unit)), position)
}

/// The node of a unit, if it is on one as a whole.
pub(crate) fn place_of(layout: &Layout<'_, '_>, unit: &[DutyAt]) -> Option<NodeAt> {
    let node = layout.target(*unit.first()?)?;
    unit.iter().all(|duty| layout.target(*duty) == Some(node)).then_some(node)
}

/// Moves a whole unit to a node, or nothing.
pub(crate) fn transfer(layout: &mut Layout<'_, '_>, unit: &[DutyAt], node: NodeAt) -> bool {
    // What doesn't fit by itself doesn't fit with the others.
    let away = |duty: &&DutyAt| layout.target(**duty) != Some(node);
    if unit.iter().filter(away).any(|duty| !layout.fits(*duty, node)) {
        return false;
    }
    let before: Vec<Option<NodeAt>> = unit.iter().map(|duty| layout.target(*duty)).collect();
    unit.iter().for_each(|duty| layout.lift(*duty));
    let fits = unit.iter().all(|duty| {
        let fits = layout.fits(*duty, node);
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
