//! Situations and the properties that every plan has.
#![allow(dead_code, unreachable_pub, reason = "each test uses a part")]
#![allow(
    clippy::indexing_slicing,
    reason = "indexes are those of the situation; a wrong one fails"
)]

pub mod arbitrary;
pub mod hard;
pub mod history;
pub mod properties;

use incumbent_planner::mutant::{PlanMutant, PlantedInPlan};
use incumbent_planner::{Plan, PlanDuty, PlanNode, Situation, plan_planted, plan_within};

/// A planner, maybe with a planted mistake.
#[derive(Clone, Copy, Debug, Default)]
pub struct Planner(pub Option<PlanMutant>);

impl Planner {
    pub fn plan(self, situation: &Situation) -> Plan {
        plan_planted(situation, PlantedInPlan::new(self.0))
    }

    /// A plan with so many steps of work, and how many it took.
    pub fn plan_within(self, situation: &Situation, steps: u64) -> (Plan, u64) {
        plan_within(situation, PlantedInPlan::new(self.0), Some(steps))
    }
}

/// A node that knows the family `f` without versions.
pub fn node(number: usize) -> PlanNode {
    PlanNode::new(format!("m{number:03}"), format!("node-{number}")).running("f", [""; 0])
}

/// Nodes that know the family `f`, and duties of it that run nowhere yet.
pub fn plain(nodes: usize, duties: usize) -> Situation {
    Situation {
        nodes: (0..nodes).map(node).collect(),
        duties: (0..duties).map(|number| PlanDuty::new("f", format!("d{number:05}"))).collect(),
        ..Situation::default()
    }
}

/// How many duties each node has in a plan.
pub fn counts(situation: &Situation, plan: &Plan) -> Vec<usize> {
    let mut counts = vec![0; situation.nodes.len()];
    plan.target.iter().flatten().for_each(|node| counts[*node] += 1);
    counts
}

/// Removes a node as if it died: what it ran runs nowhere.
pub fn remove(situation: &mut Situation, node: usize) {
    situation.nodes.remove(node);
    let shifted = |index: usize| match index.cmp(&node) {
        std::cmp::Ordering::Less => Some(index),
        std::cmp::Ordering::Equal => None,
        std::cmp::Ordering::Greater => Some(index - 1),
    };
    for duty in &mut situation.duties {
        duty.running = duty.running.and_then(shifted);
        duty.avoid = duty.avoid.iter().copied().filter_map(shifted).collect();
    }
}
