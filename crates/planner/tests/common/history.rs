//! A situation and what becomes of it, change by change.

use incumbent_planner::{PlanDuty, PlanNode, Policy, Situation, Strategy};
use proptest::bool as chance;
use proptest::collection::vec;
use proptest::prelude::BoxedStrategy;
use proptest::prop_oneof;
use proptest::strategy::Strategy as _;

use super::arbitrary;

/// A situation, and rounds of changes after each of which a plan is made.
#[derive(Clone, Debug)]
pub struct History {
    pub situation: Situation,
    pub rounds: Vec<Round>,
}

/// What happens between two plans.
#[derive(Clone, Debug)]
pub struct Round {
    /// The plan before comes true first.
    pub applied: bool,
    pub changes: Vec<Change>,
}

/// One change. Numbers count from the start again after the last node or duty.
#[derive(Clone, Debug)]
pub enum Change {
    Joins(PlanNode),
    Leaves(usize),
    /// The node is another in all but its id.
    Differs(usize, PlanNode),
    Cordoned(usize, bool),
    Drained(usize, bool),
    Carries(usize, u64),
    Leads(usize),
    Comes(PlanDuty),
    Goes(usize),
    /// The duty is another in all but its name.
    Described(usize, PlanDuty),
    Paused(usize, bool),
    Runs(usize, Option<usize>),
    Failed(usize, usize),
    Renamed(usize, PlanDuty),
    Policy(Box<Policy>),
}

pub fn history() -> BoxedStrategy<History> {
    let change = prop_oneof![
        2 => (0..9_usize).prop_flat_map(arbitrary::node).prop_map(Change::Joins),
        3 => (0..9_usize).prop_map(Change::Leaves),
        2 => (0..9_usize, (0..9_usize).prop_flat_map(arbitrary::node))
            .prop_map(|(at, node)| Change::Differs(at, node)),
        1 => (0..9_usize, chance::ANY).prop_map(|(at, is)| Change::Cordoned(at, is)),
        1 => (0..9_usize, chance::ANY).prop_map(|(at, is)| Change::Drained(at, is)),
        1 => (0..9_usize, 0..10_u64).prop_map(|(at, load)| Change::Carries(at, load)),
        1 => (0..9_usize).prop_map(Change::Leads),
        2 => named().prop_map(Change::Comes),
        2 => (0..60_usize).prop_map(Change::Goes),
        2 => (0..60_usize, arbitrary::duty(7)).prop_map(|(at, duty)| Change::Described(at, duty)),
        1 => (0..60_usize, chance::ANY).prop_map(|(at, is)| Change::Paused(at, is)),
        3 => (0..60_usize, proptest::option::of(0..9_usize))
            .prop_map(|(at, node)| Change::Runs(at, node)),
        1 => (0..60_usize, 0..9_usize).prop_map(|(at, node)| Change::Failed(at, node)),
        1 => (0..60_usize, named()).prop_map(|(at, duty)| Change::Renamed(at, duty)),
        1 => arbitrary::policy().prop_map(|policy| Change::Policy(Box::new(policy))),
    ];
    let round = (chance::weighted(0.7), vec(change, 0..5))
        .prop_map(|(applied, changes)| Round { applied, changes });
    (arbitrary::situation(), chance::weighted(0.9), vec(round, 1..8))
        .prop_map(|(mut situation, ready, rounds)| {
            if ready {
                // What a strategy of its own decides is planned from everything: not often.
                situation.policy.families.clear();
                if matches!(situation.policy.strategy, Strategy::GroupAffinity | Strategy::Own(_)) {
                    situation.policy.strategy = Strategy::Even;
                }
            }
            History { situation, rounds }
        })
        .boxed()
}

/// A duty with a name, which another may have, too.
fn named() -> BoxedStrategy<PlanDuty> {
    (arbitrary::duty(7), 0..60_usize)
        .prop_map(|(duty, number)| PlanDuty { name: format!("d{number:02}"), ..duty })
        .boxed()
}

impl Change {
    /// Tells a planner of it.
    pub fn tell(&self, planner: &mut incumbent_planner::Planner) {
        let nodes = planner.situation().nodes.len().max(1);
        let duties = planner.situation().duties.len().max(1);
        match self.clone() {
            Self::Joins(node) => {
                planner.add_node(node);
            }
            Self::Leaves(at) => {
                planner.remove_node(at % nodes);
            }
            Self::Differs(at, node) => change_node(planner, at, |old| {
                *old = PlanNode { id: old.id.clone(), ..node };
            }),
            Self::Cordoned(at, is) => change_node(planner, at, |node| node.cordoned = is),
            Self::Drained(at, is) => change_node(planner, at, |node| node.draining = is),
            Self::Carries(at, load) => change_node(planner, at, |node| node.load = load),
            Self::Leads(at) => {
                for other in 0..planner.situation().nodes.len() {
                    if planner.situation().nodes[other].leader {
                        change_node(planner, other, |node| node.leader = false);
                    }
                }
                change_node(planner, at, |node| node.leader = true);
            }
            Self::Comes(duty) => {
                planner.add_duty(duty);
            }
            Self::Goes(at) => {
                planner.remove_duty(at % duties);
            }
            Self::Described(at, duty) => change_duty(planner, at, |old| {
                *old = PlanDuty { family: old.family.clone(), name: old.name.clone(), ..duty };
            }),
            Self::Paused(at, is) => change_duty(planner, at, |duty| duty.paused = is),
            Self::Runs(at, node) => change_duty(planner, at, |duty| duty.running = node),
            Self::Failed(at, node) => change_duty(planner, at, |duty| duty.avoid.push(node)),
            Self::Renamed(at, duty) => change_duty(planner, at, |old| *old = duty),
            Self::Policy(policy) => *planner.policy_mut() = *policy,
        }
    }
}

fn change_node(
    planner: &mut incumbent_planner::Planner,
    at: usize,
    change: impl FnOnce(&mut PlanNode),
) {
    let nodes = planner.situation().nodes.len().max(1);
    if let Some(node) = planner.node_mut(at % nodes) {
        change(node);
    }
}

fn change_duty(
    planner: &mut incumbent_planner::Planner,
    at: usize,
    change: impl FnOnce(&mut PlanDuty),
) {
    let duties = planner.situation().duties.len().max(1);
    if let Some(duty) = planner.duty_mut(at % duties) {
        change(duty);
    }
}
