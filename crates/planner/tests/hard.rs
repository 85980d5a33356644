//! Situations that are hard to plan: the work stays within its limit, and what is found by then
//! is a good plan.

#![allow(
    clippy::indexing_slicing,
    reason = "indexes are those of the situation; a wrong one fails"
)]

mod common;

use std::collections::BTreeMap;

use common::{Planner, hard, plain};
use incumbent_planner::{Pin, PlanDuty, PlanNode, Reason, Situation, plan};

/// How many steps a plan may take past its limit for each duty: a last, short look.
const LAST_LOOK: u64 = 8;

/// O1: looking again and again for what doesn't fit took 42 s for 10,000 duties on 100 nodes.
#[test]
fn hard_plans_take_few_steps_for_each_duty() {
    for (name, case) in hard::ALL {
        let situation = case(40);
        let (_, steps) = Planner::default().plan_within(&situation, u64::MAX);
        let each = steps / situation.duties.len() as u64;
        assert!(each <= 100, "{name}: {each} steps for each duty");
    }
}

/// O1.
#[test]
fn work_stays_within_its_limit() {
    for (name, case) in hard::ALL {
        let situation = case(20);
        for limit in [0, 500, 2_000, 8_000] {
            let (_, steps) = Planner::default().plan_within(&situation, limit);
            let most = limit + LAST_LOOK * situation.duties.len() as u64;
            assert!(steps <= most, "{name}: {steps} steps of {limit}");
        }
    }
}

/// O1: a late answer helps nobody, and neither does an empty one.
#[test]
fn a_plan_that_was_cut_short_places_what_a_simple_one_would() {
    for (name, case) in hard::ALL {
        let situation = case(20);
        let simple = simply_placed(&situation);
        for limit in [0, 500, 2_000, 8_000] {
            let (plan, _) = Planner::default().plan_within(&situation, limit);
            let placed = situation.duties.iter().zip(&plan.target);
            let placed: u64 = placed.filter(|(_, at)| at.is_some()).map(|(it, _)| it.weight).sum();
            // In another order some few more may happen to fit.
            assert!(placed * 100 >= simple * 99, "{name}: {placed} placed, {simple} simply");
        }
    }
}

/// O1: the next rounds place what the first didn't come to, and then come to rest.
#[test]
fn rounds_that_are_cut_short_get_there() {
    for (name, case) in hard::ALL {
        let mut situation = case(20);
        let whole = plan(&situation).target.iter().flatten().count();
        let mut placed = 0;
        for _ in 0..100 {
            let (plan, _) = Planner::default().plan_within(&situation, 8_000);
            plan.apply(&mut situation);
            placed = plan.target.iter().flatten().count();
            if plan.balanced {
                break;
            }
        }
        assert!(placed * 100 >= whole * 99, "{name}: {placed} of {whole} are placed");
    }
}

/// The only node that would do is the last to be looked at.
#[test]
fn what_was_not_tried_is_said_to_be() {
    let mut situation = plain(7, 8);
    for (number, duty) in situation.duties.iter_mut().enumerate() {
        duty.apart = (number < 7).then(|| "replica".to_owned());
        duty.running = (number < 6).then_some(number);
    }
    situation.nodes[6].load = 10;
    let (cut, _) = Planner::default().plan_within(&situation, 0);
    assert_eq!(cut.unplaced.len(), 1);
    assert_eq!((cut.unplaced[0].duty, &cut.unplaced[0].reason), (6, &Reason::NotTried));
    // The other duty moved, so the next round has something to go on from.
    assert!(!cut.balanced && cut.target[7].is_some());
    assert_eq!(plan(&situation).target[6], Some(6));
    assert_eq!(
        Reason::NotTried.to_string(),
        "it wasn't tried: planning came to the limit of its work"
    );
}

/// How much weight runs if all that run stay where they may, and each other goes to the least
/// loaded node that may run it.
fn simply_placed(situation: &Situation) -> u64 {
    let mut nodes: Vec<Load<'_>> = situation.nodes.iter().map(Load::new).collect();
    let mut waiting = Vec::new();
    for duty in &situation.duties {
        match duty.running.filter(|at| nodes[*at].takes(duty, true)) {
            Some(at) => nodes[at].add(duty),
            None => waiting.push(duty),
        }
    }
    for duty in waiting {
        let takers = (0..nodes.len()).filter(|at| nodes[*at].takes(duty, false));
        if let Some(at) = takers.min_by_key(|at| nodes[*at].count) {
            nodes[at].add(duty);
        }
    }
    nodes.iter().map(|node| node.weight).sum()
}

/// A node, and what it carries.
struct Load<'s> {
    node: &'s PlanNode,
    count: usize,
    weight: u64,
    families: BTreeMap<&'s str, u32>,
    apart: Vec<&'s str>,
}

impl<'s> Load<'s> {
    fn new(node: &'s PlanNode) -> Self {
        Self { node, count: 0, weight: 0, families: BTreeMap::new(), apart: Vec::new() }
    }

    fn add(&mut self, duty: &'s PlanDuty) {
        self.count += 1;
        self.weight += duty.weight;
        *self.families.entry(&duty.family).or_default() += 1;
        self.apart.extend(duty.apart.as_deref());
    }

    fn takes(&self, duty: &PlanDuty, stays: bool) -> bool {
        let Some(support) = self.node.families.get(&duty.family) else { return false };
        let family = self.families.get(duty.family.as_str()).copied().unwrap_or(0);
        let apart = duty.apart.as_deref().is_none_or(|apart| !self.apart.contains(&apart));
        let pinned = !matches!(&duty.pin, Some(Pin::Required(name)) if *name != self.node.name);
        let only = duty.leader != incumbent_planner::LeaderRule::Only || self.node.leader;
        duty.version.as_ref().is_none_or(|version| support.versions.contains(version))
            && duty.selector.iter().all(|(label, value)| self.node.labels.get(label) == Some(value))
            && support.max_per_node.is_none_or(|max| family < max)
            && self.node.max_duties.is_none_or(|max| self.count < max as usize)
            && self.node.capacity.is_none_or(|capacity| self.weight + duty.weight <= capacity)
            && (stays || !self.node.draining && !self.node.cordoned)
            && apart
            && pinned
            && only
    }
}
