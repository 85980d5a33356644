//! How much of what runs may still move.

use crate::index::{Column, DutyAt, NodeAt};
use crate::mutant::PlanMutant;
use crate::policy::Rebalance;
use crate::problem::Problem;

/// How much of what runs may still move.
pub(crate) struct Budget {
    round: usize,
    per_node: usize,
    /// Moves that leave or reach each node.
    spent: Column<NodeAt, usize>,
    /// Duties whose move was paid for.
    paid: Column<DutyAt, bool>,
    ignores_round: bool,
    ignores_node: bool,
}

impl Budget {
    pub(crate) fn new(problem: &Problem<'_>) -> Self {
        let (round, per_node) = match problem.situation.policy.rebalance {
            Rebalance::Not => (0, 0),
            Rebalance::UpTo { per_round, per_node } => (per_round, per_node),
        };
        Self {
            round,
            per_node,
            spent: Column::filled(problem.nodes.len(), 0),
            paid: Column::filled(problem.duties.len(), false),
            ignores_round: problem.planted.is(PlanMutant::RoundLimitIgnored),
            ignores_node: problem.planted.is(PlanMutant::NodeLimitIgnored),
        }
    }

    /// Whether nothing more may leave a node.
    pub(crate) fn is_spent(&self, node: NodeAt) -> bool {
        !self.has_round() || !self.has(node)
    }

    /// Whether anything that runs may still move in this round.
    pub(crate) fn has_round(&self) -> bool {
        self.round > 0 || self.ignores_round
    }

    fn has(&self, node: NodeAt) -> bool {
        self.spent[node] < self.per_node || self.ignores_node
    }

    /// Whether a duty may go from one node to another.
    pub(crate) fn allows(
        &self,
        problem: &Problem<'_>,
        duty: DutyAt,
        from: NodeAt,
        to: NodeAt,
    ) -> bool {
        let running = problem.running[duty];
        if running == Some(from) {
            return self.has_round() && self.has(from) && self.has(to);
        }
        !self.paid[duty] || running == Some(to) || self.has(to)
    }

    /// Notes that a duty goes from one node to another.
    pub(crate) fn pay(&mut self, problem: &Problem<'_>, duty: DutyAt, from: NodeAt, to: NodeAt) {
        let running = problem.running[duty];
        if running == Some(from) {
            self.paid[duty] = true;
            self.round = self.round.saturating_sub(1);
            self.spent[from] += 1;
            self.spent[to] += 1;
        } else if self.paid[duty] {
            self.spent[from] = self.spent[from].saturating_sub(1);
            if running == Some(to) {
                self.paid[duty] = false;
                self.round = self.round.saturating_add(1);
                self.spent[to] = self.spent[to].saturating_sub(1);
            } else {
                self.spent[to] += 1;
            }
        }
    }
}
