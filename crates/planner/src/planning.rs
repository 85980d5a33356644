//! From a situation to a plan.

use std::collections::{BTreeMap, HashMap};

use crate::balance::balance;
use crate::draft::Draft;
use crate::index::{ClassAt, DutyAt, NodeAt};
use crate::layout::Layout;
use crate::mutant::{Mutant, Planted};
use crate::outcome::{Move, Plan, Reason, Unplaced, Why};
use crate::prefer::prefer;
use crate::problem::Problem;
use crate::recover::recover;
use crate::room::make_room;
use crate::rule::Rule;
use crate::situation::{Pin, Situation};
use crate::wishes::{fulfil, has_own_strategies};

/// More rounds than settling needs; each makes something better for good.
const ROUNDS: usize = 16;

/// Decides where every duty should run.
///
/// It is a function of the situation alone: the same nodes and duties, in any order, give the
/// same plan.
#[must_use]
pub fn plan(situation: &Situation) -> Plan {
    plan_with(situation, Planted::default())
}

/// The same with a planted mistake.
#[cfg(feature = "mutants")]
#[must_use]
pub fn plan_planted(situation: &Situation, planted: Planted) -> Plan {
    plan_with(situation, planted)
}

fn plan_with(situation: &Situation, planted: Planted) -> Plan {
    let problem = Problem::new(situation, planted);
    let mut draft = Draft::new(&problem);
    if !(planted.is(Mutant::BalancedMeansDone) && is_even(&draft.layout)) {
        settle(&mut draft);
    }
    finish(&draft)
}

/// Places and moves duties until nothing changes.
fn settle(draft: &mut Draft<'_, '_>) {
    for _ in 0..ROUNDS {
        let wished = fulfil(draft);
        // A strategy is asked again after recovery: it may want something else then.
        let mut recovered = false;
        while recover(draft) || make_room(draft) {
            recovered = has_own_strategies(&draft.layout.problem.situation.policy);
        }
        let preferred = prefer(draft);
        if !(balance(draft) | preferred | wished | recovered) {
            return;
        }
    }
    draft.wants_more = true;
}

/// For a planted mistake.
fn is_even(layout: &Layout<'_, '_>) -> bool {
    let fills = || layout.problem.nodes.keys().map(|node| layout.fill(node));
    fills().max().unwrap_or(0) - fills().min().unwrap_or(0) <= 1
}

fn finish(draft: &Draft<'_, '_>) -> Plan {
    let layout = &draft.layout;
    let problem = layout.problem;
    let given = |node: NodeAt| problem.nodes[node].given;
    let mut target = vec![None; problem.duties.len()];
    let (mut moves, mut unplaced) = (Vec::new(), Vec::new());
    let mut reasons = Reasons { layout, ruled_out: HashMap::new() };
    for (duty, facts) in problem.duties.iter() {
        let to = layout.target(duty);
        if let Some(cell) = target.get_mut(facts.given) {
            *cell = to.map(given);
        }
        if to.is_none() {
            let detached = draft.detached[duty];
            let reason = if detached { Reason::Detached } else { reasons.reason(duty) };
            unplaced.push(Unplaced { duty: facts.given, reason });
        }
        if to != facts.running {
            let why = if facts.running.is_none() { Why::Homeless } else { draft.why[duty] };
            let from = facts.running.map(given);
            moves.push(Move { duty: facts.given, from, to: to.map(given), why });
        }
    }
    Plan { target, unplaced, moves, balanced: !draft.wants_more }
}

/// Why duties have no node. Plain ones of one class and weight share the reason.
struct Reasons<'l, 'p, 'a> {
    layout: &'l Layout<'p, 'a>,
    ruled_out: HashMap<(ClassAt, u64), BTreeMap<Rule, usize>>,
}

impl Reasons<'_, '_, '_> {
    fn reason(&mut self, duty: DutyAt) -> Reason {
        let problem = self.layout.problem;
        let facts = &problem.duties[duty];
        if facts.duty.paused {
            return Reason::Paused;
        }
        if problem.nodes.len() == 0 {
            return Reason::NoNodes;
        }
        if let (Some(Pin::Required(name)), Some((_, []))) = (&facts.duty.pin, problem.pinned(duty))
        {
            return Reason::UnknownPin(name.clone());
        }
        if !facts.is_plain() || facts.running.is_some() {
            return Reason::RuledOut(self.count(duty));
        }
        let key = (facts.class, facts.duty.weight);
        if let Some(rules) = self.ruled_out.get(&key) {
            return Reason::RuledOut(rules.clone());
        }
        let rules = self.count(duty);
        self.ruled_out.insert(key, rules.clone());
        Reason::RuledOut(rules)
    }

    fn count(&self, duty: DutyAt) -> BTreeMap<Rule, usize> {
        let mut rules = BTreeMap::new();
        for node in self.layout.problem.nodes.keys() {
            if let Some(rule) = self.layout.verdict(duty, node) {
                *rules.entry(rule).or_insert(0) += 1;
            }
        }
        rules
    }
}
