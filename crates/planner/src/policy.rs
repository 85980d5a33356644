//! How duties are placed, and how much may move.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::grid::Grid;

/// How duties are placed, and how much may move.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// How duties are placed.
    pub strategy: Strategy,
    /// Families with a placement of their own. The others count their weight.
    pub families: BTreeMap<String, Arc<dyn Place>>,
    /// How much of what runs may move for the sake of balance.
    pub rebalance: Rebalance,
}

/// How duties are placed where the rules leave a choice.
#[derive(Clone, Debug, Default)]
pub enum Strategy {
    /// Every node carries the same weight, over all families.
    #[default]
    Even,
    /// Every node is filled to the same share of its capacity. One without a capacity counts as
    /// the average of those that have one.
    Weighted,
    /// On the node of this name as far as it fits there, otherwise evenly.
    PreferredNode(String),
    /// Duties of one group run on one node where that fits, and groups are spread evenly.
    GroupAffinity,
    /// A user's own.
    Own(Arc<dyn Place>),
}

/// Its name, from which a ready-made one can be had again.
impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Even => f.write_str("even"),
            Self::Weighted => f.write_str("weighted"),
            Self::GroupAffinity => f.write_str("group-affinity"),
            Self::PreferredNode(node) => write!(f, "preferred-node {node}"),
            Self::Own(place) => write!(f, "own {place:?}"),
        }
    }
}

impl Strategy {
    /// The ready-made strategy of this name; nothing for a user's own, which is code.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name.split_once(' ') {
            None if name == "even" => Some(Self::Even),
            None if name == "weighted" => Some(Self::Weighted),
            None if name == "group-affinity" => Some(Self::GroupAffinity),
            Some(("preferred-node", node)) => Some(Self::PreferredNode(node.to_owned())),
            _ => None,
        }
    }
}

/// A user's own placement.
///
/// It must decide by what the grid shows alone; then plans stay deterministic. Where it makes
/// the same choice when its choice already runs, a steady cluster moves nothing.
pub trait Place: fmt::Debug + Send + Sync {
    /// Assigns the duties that the grid shows. The grid starts from what runs and may go on
    /// running. Duties that have no node then get the least loaded one, unless they were detached.
    fn place(&self, grid: &mut Grid<'_, '_>);
}

/// How many duties that run may move for the sake of balance or a preference. Recovery isn't
/// limited: duties without a node, or on one that may not run them, move at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rebalance {
    /// None: only recovery, this round.
    Not,
    /// Up to so many.
    UpTo {
        /// In one plan.
        per_round: usize,
        /// That leave or reach any one node.
        per_node: usize,
    },
}

impl Rebalance {
    /// As many as there are to do.
    pub const UNLIMITED: Self = Self::UpTo { per_round: usize::MAX, per_node: usize::MAX };
}

impl Default for Rebalance {
    fn default() -> Self {
        Self::UpTo { per_round: 1_000, per_node: 100 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Mine;

    impl Place for Mine {
        fn place(&self, _: &mut Grid<'_, '_>) {}
    }

    #[test]
    fn a_ready_made_strategy_can_be_had_again_by_its_name() {
        let ready = [
            Strategy::Even,
            Strategy::Weighted,
            Strategy::GroupAffinity,
            Strategy::PreferredNode("node 1".to_owned()),
        ];
        for strategy in ready {
            let again = Strategy::named(&strategy.to_string());
            assert_eq!(again.map(|again| format!("{again:?}")), Some(format!("{strategy:?}")));
        }
        assert!(Strategy::named(&Strategy::Own(Arc::new(Mine)).to_string()).is_none());
        assert!(Strategy::named("").is_none());
    }
}
