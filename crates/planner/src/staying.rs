//! What runs and may stay, before anything moves: kept from one plan to the next, and brought up to
//! date where something changed. Whether a duty may stay depends on nothing but its node and what
//! else runs there.

use crate::draft::Draft;
use crate::effort::Effort;
use crate::facts::Facts;
use crate::index::{Column, DutyAt, NodeAt};
use crate::layout::Places;
use crate::outcome::Why;
use crate::problem::Problem;
use crate::renumbering::Renumbering;

/// What runs and may stay.
#[derive(Clone)]
pub(crate) struct Staying {
    pub(crate) places: Places,
    /// Why each of the others leaves.
    pub(crate) why: Column<DutyAt, Why>,
    /// Duties that have no node, or should leave theirs at once.
    pub(crate) homeless: Vec<DutyAt>,
}

impl Staying {
    pub(crate) fn new(problem: &Problem<'_>) -> Self {
        Draft::new(problem, Effort::up_to(0, problem.planted)).staying()
    }

    /// Takes all duties from a node.
    pub(crate) fn clear(&mut self, facts: &Facts, node: NodeAt) {
        while let Some(duty) = self.places.last_of(node) {
            self.places.lift(facts, duty);
        }
    }

    pub(crate) fn follow_duties(&mut self, duties: &Renumbering<DutyAt>) {
        self.places.follow_duties(duties);
        self.why = duties.column(&self.why, |_| Why::Homeless);
        duties.list(&mut self.homeless);
    }

    /// Looks again at duties that aren't anywhere, in order, and at no others.
    pub(crate) fn review(self, problem: &Problem<'_>, affected: &Column<DutyAt, bool>) -> Self {
        let Self { places, mut why, mut homeless } = self;
        homeless.retain(|duty| !affected[*duty]);
        let review: Vec<DutyAt> =
            affected.iter().filter(|(_, affected)| **affected).map(|(duty, _)| duty).collect();
        for duty in &review {
            why[*duty] = Why::Homeless;
        }
        let staying = Self { places, why, homeless };
        let mut draft = Draft::from_staying(problem, Effort::up_to(0, problem.planted), staying);
        draft.keep_all(review.iter().copied());
        draft.staying()
    }
}

impl Places {
    /// Any of the duties of a node.
    fn last_of(&self, node: NodeAt) -> Option<DutyAt> {
        self.held[node].last().copied()
    }

    /// Goes by these nodes. Nothing may be on those that left.
    pub(crate) fn follow_nodes(&mut self, problem: &Problem<'_>, nodes: &Renumbering<NodeAt>) {
        let now = |node: &NodeAt| nodes.now(*node);
        self.target = self.target.iter().map(|(_, node)| node.as_ref().and_then(now)).collect();
        self.held = nodes.column(&self.held, |_| Vec::new());
        self.weight = nodes.column(&self.weight, |_| 0);
        self.bulk = nodes.column(&self.bulk, |_| 0);
        self.families = self.families.follow(nodes, problem.families());
        for (_, group) in self.apart.iter_mut() {
            let seat = |(node, duty): (NodeAt, DutyAt)| Some((nodes.now(node)?, duty));
            *group = group.drain(..).filter_map(seat).collect();
            group.sort_unstable();
        }
        self.zones = problem.spreads.iter().map(|(_, zones)| vec![0; zones.count]).collect();
        if self.zones.len() == 0 {
            return;
        }
        for (duty, node) in self.target.iter() {
            let Some(spread) = problem.class(duty).spread else { continue };
            let zone = node.map(|node| problem.spreads[spread].of[node]);
            if let Some(count) = zone.and_then(|zone| self.zones[spread].get_mut(zone)) {
                *count += 1;
            }
        }
    }

    /// Sets what a node carries on which there is nothing.
    pub(crate) fn load(&mut self, problem: &Problem<'_>, node: NodeAt) {
        self.bulk[node] = u128::from(problem.node(node).load);
    }

    /// Goes by these duties. Those that left may not be anywhere.
    fn follow_duties(&mut self, duties: &Renumbering<DutyAt>) {
        self.target = duties.column(&self.target, |_| None);
        self.seat = duties.column(&self.seat, |_| 0);
        for (_, held) in self.held.iter_mut() {
            duties.list(held);
        }
        for (_, group) in self.apart.iter_mut() {
            let seat = |(node, duty): (NodeAt, DutyAt)| Some((node, duties.now(duty)?));
            *group = group.drain(..).filter_map(seat).collect();
            group.sort_unstable();
        }
    }

    /// Makes room for names that are new.
    pub(crate) fn widen(&mut self, facts: &Facts) {
        self.families.widen(facts.families(), facts.nodes.len());
        for _ in self.apart.len()..facts.aparts() {
            self.apart.push(Vec::new());
        }
        for spread in facts.spreads.keys().skip(self.zones.len()) {
            self.zones.push(vec![0; facts.spreads[spread].count]);
        }
    }
}
