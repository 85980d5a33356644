//! How much work a plan may take. It is counted in steps and not in time, so that the same
//! situation gives the same plan on any machine.

use crate::mutant::{PlanMutant, PlantedInPlan};

/// How much work a plan may take: one step is one look at a duty on a node.
///
/// What is within a constant of every duty and node isn't counted, and is always done.
#[derive(Clone, Debug)]
pub(crate) struct Effort {
    limit: u64,
    spent: u64,
    planted: PlantedInPlan,
}

impl Effort {
    /// As much as no plan needs where duties mostly fit.
    const AT_LEAST: u64 = 2_000_000;
    const FOR_EACH: u64 = 32;

    /// Enough for so many duties and nodes.
    pub(crate) fn enough_for(duties: usize, nodes: usize, planted: PlantedInPlan) -> Self {
        let size = (duties as u64).saturating_add(nodes as u64);
        Self::up_to(Self::AT_LEAST.saturating_add(size.saturating_mul(Self::FOR_EACH)), planted)
    }

    pub(crate) fn up_to(limit: u64, planted: PlantedInPlan) -> Self {
        Self { limit, spent: 0, planted }
    }

    pub(crate) fn spend(&mut self, steps: usize) {
        self.spent = self.spent.saturating_add(steps as u64);
    }

    pub(crate) fn spent(&self) -> u64 {
        self.spent
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.spent >= self.limit && !self.planted.is(PlanMutant::Tireless)
    }

    /// A part of what is left, for something that must leave the rest to others.
    pub(crate) fn half(&self) -> Self {
        Self::up_to(self.limit.saturating_sub(self.spent) / 2, self.planted)
    }
}
