//! A planner that remembers what it read, and takes what changed.

use crate::indexes::{Indexes, LastRead, PlanChanges};
use crate::mutant::PlantedInPlan;
use crate::outcome::Plan;
use crate::planning::plan_planted_within;
use crate::policy::Policy;
use crate::situation::{PlanDuty, PlanNode, Situation};
use crate::wishes::has_own_strategies;

/// A planner that keeps a situation and what it read of it, so that a plan costs about what
/// changed since the one before.
///
/// Its plans are those that [`plan`](crate::plan) makes of [`Self::situation`]. Where much changed, or the
/// strategy did, or a strategy places duties on the grid, it reads everything, as that does.
#[derive(Default)]
pub struct Planner {
    situation: Situation,
    changes: PlanChanges,
    /// Taken out while a plan is made: one that panics leaves nothing behind that may be wrong.
    indexes: Option<Indexes>,
    planted: PlantedInPlan,
}

impl Planner {
    /// Takes a situation.
    #[must_use]
    pub fn new(situation: Situation) -> Self {
        let changes = PlanChanges {
            nodes: vec![LastRead::NEW; situation.nodes.len()],
            duties: vec![LastRead::NEW; situation.duties.len()],
            of_nodes: true,
            of_duties: true,
        };
        Self { situation, changes, ..Self::default() }
    }

    /// The same with a planted mistake.
    #[cfg(feature = "mutants")]
    #[must_use]
    pub fn planted(self, planted: PlantedInPlan) -> Self {
        Self { planted, indexes: None, ..self }
    }

    /// What is planned from.
    #[must_use]
    pub fn situation(&self) -> &Situation {
        &self.situation
    }

    /// Decides where every duty should run. Indexes are those of the situation as it is now.
    pub fn plan(&mut self) -> Plan {
        self.counted().0
    }

    /// The same; and how many steps of work it took.
    #[cfg(feature = "mutants")]
    pub fn plan_counted(&mut self) -> (Plan, u64) {
        self.counted()
    }

    fn counted(&mut self) -> (Plan, u64) {
        let Self { situation, changes, planted, .. } = self;
        if has_own_strategies(&situation.policy) {
            return plan_planted_within(situation, *planted, None);
        }
        let known = self.indexes.take().and_then(|it| it.follow(situation, changes));
        let indexes = known.unwrap_or_else(|| Indexes::new(situation, changes, *planted));
        let planned = indexes.plan(situation);
        self.indexes = Some(indexes);
        planned
    }

    /// Makes a plan for this very situation come true: every duty runs where the plan wants it.
    pub fn apply(&mut self, plan: &Plan) {
        for step in &plan.moves {
            if let Some(duty) = self.duty_mut(step.duty) {
                duty.running = step.to;
            }
        }
    }

    /// How duties are placed, and how much may move.
    pub fn policy_mut(&mut self) -> &mut Policy {
        &mut self.situation.policy
    }

    /// A node comes. Returns its index.
    pub fn add_node(&mut self, node: PlanNode) -> usize {
        let index = self.situation.nodes.len();
        self.situation.nodes.push(node);
        self.changes.nodes.push(LastRead::NEW);
        self.changes.of_nodes = true;
        // What was said to run on it, or to have failed there, before it was there, does so now.
        for (duty, known) in self.situation.duties.iter().zip(&mut self.changes.duties) {
            if duty.running == Some(index) || duty.avoid.contains(&index) {
                known.changed = true;
                self.changes.of_duties = true;
            }
        }
        index
    }

    /// A node, to be changed.
    pub fn node_mut(&mut self, node: usize) -> Option<&mut PlanNode> {
        let found = self.situation.nodes.get_mut(node)?;
        self.changes.nodes.get_mut(node)?.changed = true;
        self.changes.of_nodes = true;
        Some(found)
    }

    /// A node leaves: what ran there runs nowhere. The last node gets its index.
    pub fn remove_node(&mut self, node: usize) -> Option<PlanNode> {
        let last = self.situation.nodes.len().checked_sub(1).filter(|last| node <= *last)?;
        let left = self.situation.nodes.swap_remove(node);
        self.changes.nodes.swap_remove(node);
        self.changes.of_nodes = true;
        for duty in &mut self.situation.duties {
            if duty.running == Some(node) {
                duty.running = None;
            } else if duty.running == Some(last) {
                duty.running = Some(node);
            }
            duty.avoid.retain(|avoided| *avoided != node);
            for avoided in duty.avoid.iter_mut().filter(|avoided| **avoided == last) {
                *avoided = node;
            }
        }
        Some(left)
    }

    /// A duty comes. Returns its index.
    pub fn add_duty(&mut self, duty: PlanDuty) -> usize {
        self.situation.duties.push(duty);
        self.changes.duties.push(LastRead::NEW);
        self.changes.of_duties = true;
        self.situation.duties.len() - 1
    }

    /// A duty, to be changed.
    pub fn duty_mut(&mut self, duty: usize) -> Option<&mut PlanDuty> {
        let found = self.situation.duties.get_mut(duty)?;
        self.changes.duties.get_mut(duty)?.changed = true;
        self.changes.of_duties = true;
        Some(found)
    }

    /// A duty is no more. The last duty gets its index.
    pub fn remove_duty(&mut self, duty: usize) -> Option<PlanDuty> {
        if duty >= self.situation.duties.len() {
            return None;
        }
        let gone = self.situation.duties.swap_remove(duty);
        self.changes.duties.swap_remove(duty);
        self.changes.of_duties = true;
        let moved = self.changes.duties.get_mut(duty);
        moved.into_iter().for_each(|moved| moved.changed = true);
        Some(gone)
    }
}
