//! What is preferred where the rules leave a choice, before evenness is.

use crate::index::{DutyAt, NodeAt};
use crate::layout::Layout;
use crate::mutant::PlanMutant;

/// How unwelcome a duty is on a node: less is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Rank(u8);

impl Rank {
    const DRAINING: u8 = 8;
    const FAILED: u8 = 4;
    const NOT_PREFERRED: u8 = 2;
    const LEADER: u8 = 1;

    /// How urgent it is to leave a node for no other reason than that the duty failed there.
    pub(crate) const FAILED_URGENCY: u8 = 1;

    pub(crate) fn of(layout: &Layout<'_, '_>, duty: DutyAt, node: NodeAt) -> Self {
        let problem = layout.problem;
        let facts = &problem.duties[duty];
        let place = problem.node(node);
        let planted = problem.planted;
        let mut rank = 0;
        if place.draining && !planted.is(PlanMutant::DrainForgotten) {
            rank |= Self::DRAINING;
        }
        if facts.avoids(node) && !planted.is(PlanMutant::FailedStays) {
            rank |= Self::FAILED;
        }
        if problem
            .pinned(duty)
            .is_some_and(|(_, nodes)| !nodes.is_empty() && nodes.binary_search(&node).is_err())
        {
            rank |= Self::NOT_PREFERRED;
        }
        if place.leader && problem.classes[facts.class].avoids_leader {
            rank |= Self::LEADER;
        }
        Self(rank)
    }

    /// Whether the duty should leave at once if it fits elsewhere, and how badly.
    pub(crate) fn urgency(self) -> u8 {
        self.0 / Self::FAILED
    }

    pub(crate) fn is_best(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn is_drained(self) -> bool {
        self.0 & Self::DRAINING != 0
    }

    pub(crate) fn is_not_preferred(self) -> bool {
        self.0 & Self::NOT_PREFERRED != 0
    }
}
