//! Why the grid refuses something.

use std::fmt;

use crate::rule::Rule;

/// Why the grid refuses something. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A rule keeps the duty off the node.
    Rule(Rule),
    /// The duty is paused.
    Paused,
    /// The duty already is on another node: this one.
    Placed(usize),
    /// The duty doesn't exist, or isn't of the strategy's family.
    UnknownDuty,
    /// The node doesn't exist.
    UnknownNode,
    /// The cluster has no leader, or it isn't among the nodes.
    NoLeader,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule(rule) => write!(f, "the node {rule}"),
            Self::Paused => f.write_str("the duty is paused"),
            Self::Placed(node) => write!(f, "the duty is on node {node} already"),
            Self::UnknownDuty => f.write_str("the duty doesn't exist, or is of another family"),
            Self::UnknownNode => f.write_str("the node doesn't exist"),
            Self::NoLeader => f.write_str("no node is the leader"),
        }
    }
}

impl std::error::Error for Refusal {}
