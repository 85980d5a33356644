//! A situation, with what is known about it.

use std::ops::Deref;
use std::sync::OnceLock;

use crate::class::Class;
use crate::facts::Facts;
use crate::index::{DutyAt, NodeAt};
use crate::kinds::Kinds;
use crate::situation::{PlanDuty, PlanNode, Situation};

/// A situation, with what is known about it.
pub(crate) struct Problem<'a> {
    pub(crate) situation: &'a Situation,
    facts: &'a Facts,
    /// Made when first asked for: where all is well, nobody asks.
    kinds: OnceLock<Kinds>,
}

impl Deref for Problem<'_> {
    type Target = Facts;

    fn deref(&self) -> &Facts {
        self.facts
    }
}

impl<'a> Problem<'a> {
    pub(crate) fn new(situation: &'a Situation, facts: &'a Facts) -> Self {
        Self { situation, facts, kinds: OnceLock::new() }
    }

    #[allow(clippy::indexing_slicing, reason = "the facts are those of the situation")]
    pub(crate) fn node(&self, node: NodeAt) -> &'a PlanNode {
        &self.situation.nodes[self.facts.nodes[node].given]
    }

    #[allow(clippy::indexing_slicing, reason = "the facts are those of the situation")]
    pub(crate) fn duty(&self, duty: DutyAt) -> &'a PlanDuty {
        &self.situation.duties[self.facts.duties[duty].given]
    }

    pub(crate) fn class(&self, duty: DutyAt) -> &'a Class {
        &self.facts.classes[self.facts.duties[duty].class]
    }

    /// Which duties differ in nothing that matters.
    pub(crate) fn kinds(&self) -> &Kinds {
        self.kinds.get_or_init(|| Kinds::new(self))
    }

    /// The nodes that a duty is pinned to, if it is; in their order.
    pub(crate) fn pinned(&self, duty: DutyAt) -> Option<(bool, &'a [NodeAt])> {
        let pin = self.facts.duties[duty].pin?;
        Some((pin.required, &self.facts.pins[pin.name]))
    }
}
