//! Who is where, while a plan is being made. Every placement goes through here, so the rules
//! are asked in one place.

use crate::class::Class;
use crate::counts::FamilyCounts;
use crate::facts::Facts;
use crate::index::{ApartAt, Column, DutyAt, FamilyAt, NodeAt, SpreadAt};
use crate::mutant::PlanMutant;
use crate::problem::Problem;
use crate::rule::Rule;

/// Who is where.
#[derive(Clone)]
pub(crate) struct Layout<'p, 'a> {
    pub(crate) problem: &'p Problem<'a>,
    pub(crate) places: Places,
}

/// The same without the problem, to be kept from one plan to the next.
#[derive(Clone)]
pub(crate) struct Places {
    pub(crate) target: Column<DutyAt, Option<NodeAt>>,
    /// The duties of each node, and where in that list each duty is.
    pub(crate) held: Column<NodeAt, Vec<DutyAt>>,
    pub(crate) seat: Column<DutyAt, usize>,
    /// The weight that counts against capacity.
    pub(crate) weight: Column<NodeAt, u128>,
    /// The weight that counts for evenness, with reported load.
    pub(crate) bulk: Column<NodeAt, u128>,
    pub(crate) families: FamilyCounts,
    /// Where the duties of each group are that is kept apart, in order of nodes.
    pub(crate) apart: Column<ApartAt, Vec<(NodeAt, DutyAt)>>,
    pub(crate) zones: Column<SpreadAt, Vec<u32>>,
}

impl Places {
    /// Nothing is anywhere.
    pub(crate) fn new(problem: &Problem<'_>) -> Self {
        let (nodes, duties) = (problem.nodes.len(), problem.duties.len());
        let load = |node: NodeAt| u128::from(problem.node(node).load);
        Self {
            target: Column::filled(duties, None),
            held: Column::filled(nodes, Vec::new()),
            seat: Column::filled(duties, 0),
            weight: Column::filled(nodes, 0),
            bulk: problem.nodes.keys().map(load).collect(),
            families: FamilyCounts::new(problem.families(), nodes),
            apart: Column::filled(problem.aparts(), Vec::new()),
            zones: problem.spreads.iter().map(|(_, zones)| vec![0; zones.count]).collect(),
        }
    }

    /// Puts a duty that is nowhere on a node. The caller has asked for the rules.
    pub(crate) fn put(&mut self, facts: &Facts, duty: DutyAt, node: NodeAt) {
        self.target[duty] = Some(node);
        self.seat[duty] = self.held[node].len();
        self.held[node].push(duty);
        let about = &facts.duties[duty];
        self.weight[node] += u128::from(about.weight);
        self.bulk[node] += u128::from(about.bulk());
        self.count(facts, duty, node, |count| *count += 1);
        if let Some(apart) = about.apart {
            let group = &mut self.apart[apart];
            let at = group.partition_point(|seat| *seat < (node, duty));
            group.insert(at, (node, duty));
        }
    }

    /// Takes a duty from where it is.
    pub(crate) fn lift(&mut self, facts: &Facts, duty: DutyAt) {
        let Some(node) = self.target[duty].take() else { return };
        let seat = self.seat[duty];
        self.held[node].swap_remove(seat);
        if let Some(&moved) = self.held[node].get(seat) {
            self.seat[moved] = seat;
        }
        let about = &facts.duties[duty];
        self.weight[node] -= u128::from(about.weight);
        self.bulk[node] -= u128::from(about.bulk());
        self.count(facts, duty, node, |count| *count -= 1);
        if let Some(apart) = about.apart {
            let group = &mut self.apart[apart];
            if let Ok(at) = group.binary_search(&(node, duty)) {
                group.remove(at);
            }
        }
    }

    fn count(&mut self, facts: &Facts, duty: DutyAt, node: NodeAt, change: impl Fn(&mut u32)) {
        let about = &facts.duties[duty];
        let class = &facts.classes[about.class];
        change(self.families.count_mut(class.family, node));
        if let Some(spread) = class.spread {
            let zone = facts.spreads[spread].of[node];
            if let Some(count) = self.zones[spread].get_mut(zone) {
                change(count);
            }
        }
    }
}

impl<'p, 'a> Layout<'p, 'a> {
    /// Nothing is anywhere.
    pub(crate) fn new(problem: &'p Problem<'a>) -> Self {
        Self { problem, places: Places::new(problem) }
    }

    pub(crate) fn target(&self, duty: DutyAt) -> Option<NodeAt> {
        self.places.target[duty]
    }

    /// The duties of a node, in no particular order.
    pub(crate) fn held(&self, node: NodeAt) -> &[DutyAt] {
        &self.places.held[node]
    }

    /// What a node carries, for evenness.
    pub(crate) fn bulk(&self, node: NodeAt) -> u128 {
        self.places.bulk[node]
    }

    /// What a node carries in proportion to its share. The order of this is the order of being
    /// loaded.
    pub(crate) fn fill(&self, node: NodeAt) -> u128 {
        if self.problem.equal_shares {
            return self.places.bulk[node];
        }
        (self.places.bulk[node] << 20) / u128::from(self.problem.nodes[node].share)
    }

    /// What is left of a node's capacity for a duty that newly comes.
    pub(crate) fn left(&self, node: NodeAt) -> u128 {
        let place = self.problem.node(node);
        place.capacity.map_or(u128::MAX, |capacity| {
            u128::from(capacity).saturating_sub(self.places.weight[node] + u128::from(place.load))
        })
    }

    /// Whether a node carries more than its capacity, load included.
    pub(crate) fn is_overfull(&self, node: NodeAt) -> bool {
        let place = self.problem.node(node);
        let carries = self.places.weight[node] + u128::from(place.load);
        place.capacity.is_some_and(|capacity| carries > u128::from(capacity))
    }

    pub(crate) fn family(&self, family: FamilyAt, node: NodeAt) -> u32 {
        self.places.families.count(family, node)
    }

    /// How many duties of a spread family are in the zone of a node.
    pub(crate) fn zone(&self, class: &Class, node: NodeAt) -> u32 {
        let count = |spread: SpreadAt| {
            self.places.zones[spread].get(self.problem.spreads[spread].of[node]).copied()
        };
        class.spread.and_then(count).unwrap_or(0)
    }

    /// How many duties of a spread family are in the zone that has the fewest.
    pub(crate) fn emptiest_zone(&self, class: &Class) -> u32 {
        class.spread.and_then(|spread| self.places.zones[spread].iter().min().copied()).unwrap_or(0)
    }

    /// Whether two nodes are in one zone, as far as a class cares.
    pub(crate) fn same_zone(&self, class: &Class, one: NodeAt, other: NodeAt) -> bool {
        class.spread.is_none_or(|spread| {
            let of = &self.problem.spreads[spread].of;
            of[one] == of[other]
        })
    }

    /// Puts a duty that is nowhere on a node. The caller has asked for the rules.
    pub(crate) fn put(&mut self, duty: DutyAt, node: NodeAt) {
        self.places.put(self.problem, duty, node);
    }

    /// Takes a duty from where it is.
    pub(crate) fn lift(&mut self, duty: DutyAt) {
        self.places.lift(self.problem, duty);
    }

    /// Whether no rule keeps a duty, which isn't there, off a node. It doesn't ask which.
    pub(crate) fn fits(&self, duty: DutyAt, node: NodeAt) -> bool {
        self.problem.class(duty).is_able(node) && self.judge(duty, node, true).is_none()
    }

    /// The first rule that keeps a duty, which isn't there, off a node.
    pub(crate) fn verdict(&self, duty: DutyAt, node: NodeAt) -> Option<Rule> {
        self.judge(duty, node, true)
    }

    /// The same for a duty that stays where it runs: reported load doesn't drive it away.
    pub(crate) fn verdict_on_staying(&self, duty: DutyAt, node: NodeAt) -> Option<Rule> {
        self.judge(duty, node, false)
    }

    fn judge(&self, duty: DutyAt, node: NodeAt, load_counts: bool) -> Option<Rule> {
        let facts = &self.problem.duties[duty];
        let class = &self.problem.classes[facts.class];
        let place = self.problem.node(node);
        if !class.is_able(node) {
            return class.fixed_rule(place);
        }
        let pinned = self.problem.pinned(duty);
        if pinned.is_some_and(|(required, nodes)| required && nodes.binary_search(&node).is_err()) {
            return Some(Rule::Pin);
        }
        let planted = self.problem.planted;
        if !self.problem.nodes[node].open && self.problem.running[duty] != Some(node) {
            if place.draining {
                return Some(Rule::Draining);
            }
            if !planted.is(PlanMutant::CordonIgnored) {
                return Some(Rule::Cordoned);
            }
        }
        self.room(duty, node, load_counts)
    }

    /// The nodes that take more.
    pub(crate) fn roomy(&self) -> Vec<NodeAt> {
        let open = |node: &NodeAt| self.problem.nodes[*node].open && !self.is_full(*node);
        self.problem.nodes.keys().filter(open).collect()
    }

    /// Whether a node takes no duty, not even the lightest.
    pub(crate) fn is_full(&self, node: NodeAt) -> bool {
        let place = self.problem.node(node);
        place.max_duties.is_some_and(|max| self.places.held[node].len() >= max as usize)
            || self.left(node) < u128::from(self.problem.lightest)
                && !self.problem.planted.is(PlanMutant::CapacityIgnored)
    }

    /// The duty on a node from which another is kept apart.
    pub(crate) fn mate(&self, duty: DutyAt, node: NodeAt) -> Option<DutyAt> {
        let group = &self.places.apart[self.problem.duties[duty].apart?];
        let at = group.partition_point(|(place, _)| *place < node);
        group.get(at).filter(|(place, _)| *place == node).map(|(_, mate)| *mate)
    }

    /// Whether a duty, which isn't there, would have room on a node that it can run on if another
    /// stepped aside.
    pub(crate) fn has_room_without(&self, duty: DutyAt, node: NodeAt, aside: DutyAt) -> bool {
        let place = self.problem.node(node);
        let (facts, gone) = (&self.problem.duties[duty], &self.problem.duties[aside]);
        let class = &self.problem.classes[facts.class];
        let same_family = class.family == self.problem.classes[gone.class].family;
        let family = self.places.families.count(class.family, node) - u32::from(same_family);
        let weight = self.places.weight[node] - u128::from(gone.weight)
            + u128::from(facts.weight)
            + u128::from(place.load);
        place.max_duties.is_none_or(|max| self.places.held[node].len() <= max as usize)
            && family < class.limit(node)
            && place.capacity.is_none_or(|capacity| weight <= u128::from(capacity))
            && self.mate(duty, node).is_none_or(|mate| mate == aside)
    }

    /// The rules that depend on what else the node runs.
    fn room(&self, duty: DutyAt, node: NodeAt, load_counts: bool) -> Option<Rule> {
        let facts = &self.problem.duties[duty];
        let class = &self.problem.classes[facts.class];
        let place = self.problem.node(node);
        let planted = self.problem.planted;
        if place.max_duties.is_some_and(|max| self.places.held[node].len() >= max as usize) {
            return Some(Rule::MaxDuties);
        }
        if self.places.families.count(class.family, node) >= class.limit(node) {
            return Some(Rule::FamilyMax);
        }
        if let Some(capacity) = place.capacity {
            let load = if load_counts { u128::from(place.load) } else { 0 };
            let weight = self.places.weight[node] + u128::from(facts.weight) + load;
            if weight > u128::from(capacity) && !planted.is(PlanMutant::CapacityIgnored) {
                return Some(Rule::Capacity);
            }
        }
        let apart = facts.apart.is_some() && self.mate(duty, node).is_some();
        (apart && !planted.is(PlanMutant::ApartIgnored)).then_some(Rule::Apart)
    }
}
