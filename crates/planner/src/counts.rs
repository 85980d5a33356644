//! How many duties of each family each node has.

use std::collections::HashMap;

use crate::index::{At, FamilyAt, NodeAt};
use crate::renumbering::Renumbering;

/// How many duties of each family each node has.
#[derive(Clone)]
pub(crate) enum FamilyCounts {
    Dense {
        nodes: usize,
        counts: Vec<u32>,
        none: u32,
    },
    /// For so many families that a table would be too large.
    Sparse(HashMap<(FamilyAt, NodeAt), u32>),
}

impl FamilyCounts {
    const LARGEST_TABLE: usize = 1 << 24;

    pub(crate) fn new(families: usize, nodes: usize) -> Self {
        let cells = families.saturating_mul(nodes);
        if cells > Self::LARGEST_TABLE {
            return Self::Sparse(HashMap::new());
        }
        Self::Dense { nodes, counts: vec![0; cells], none: 0 }
    }

    /// The same counts of these nodes.
    pub(crate) fn follow(&self, nodes: &Renumbering<NodeAt>, families: usize) -> Self {
        let mut counts = Self::new(families, nodes.len());
        if let Self::Sparse(before) = self {
            let seats = before.iter().filter(|(_, count)| **count > 0);
            for ((family, node), count) in seats {
                if let Some(node) = nodes.now(*node) {
                    *counts.count_mut(*family, node) = *count;
                }
            }
            return counts;
        }
        for family in (0..families).map(FamilyAt::at) {
            for node in (0..nodes.len()).map(NodeAt::at) {
                let count = nodes.was(node).map_or(0, |was| self.count(family, was));
                if count > 0 {
                    *counts.count_mut(family, node) = count;
                }
            }
        }
        counts
    }

    /// Makes room for families that are new.
    pub(crate) fn widen(&mut self, families: usize, nodes: usize) {
        let Self::Dense { counts, .. } = self else { return };
        if families.saturating_mul(nodes) <= Self::LARGEST_TABLE {
            counts.resize(families * nodes, 0);
            return;
        }
        let seat = |(cell, count): (usize, &u32)| {
            ((FamilyAt::at(cell / nodes), NodeAt::at(cell % nodes)), *count)
        };
        *self = Self::Sparse(counts.iter().enumerate().map(seat).collect());
    }

    pub(crate) fn count(&self, family: FamilyAt, node: NodeAt) -> u32 {
        match self {
            Self::Dense { nodes, counts, .. } => {
                counts.get(family.index() * nodes + node.index()).copied().unwrap_or(0)
            }
            Self::Sparse(counts) => counts.get(&(family, node)).copied().unwrap_or(0),
        }
    }

    pub(crate) fn count_mut(&mut self, family: FamilyAt, node: NodeAt) -> &mut u32 {
        match self {
            Self::Dense { nodes, counts, none } => {
                counts.get_mut(family.index() * *nodes + node.index()).unwrap_or(none)
            }
            Self::Sparse(counts) => counts.entry((family, node)).or_default(),
        }
    }
}
