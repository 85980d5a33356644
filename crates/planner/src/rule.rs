//! The rules that are never broken.

use std::fmt;

/// A rule that keeps a duty off a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// The node doesn't know the duty's family.
    Family,
    /// The node can't run the version that the duty needs.
    Version,
    /// The node lacks a label that the duty selects.
    Selector,
    /// The duty runs on the leader alone, and the node isn't it.
    LeaderOnly,
    /// The duty is pinned to another node.
    Pin,
    /// The node gets no new duties.
    Cordoned,
    /// The node is being emptied.
    Draining,
    /// The node runs as many duties as it may.
    MaxDuties,
    /// The node runs as many duties of the family as it may.
    FamilyMax,
    /// The duty's weight doesn't fit into what is left of the node's capacity.
    Capacity,
    /// A duty from which this one is kept apart is on the node.
    Apart,
}

impl Rule {
    /// All of them, in the order in which they are looked at.
    pub const ALL: [Self; 11] = [
        Self::Family,
        Self::Version,
        Self::Selector,
        Self::LeaderOnly,
        Self::Pin,
        Self::Cordoned,
        Self::Draining,
        Self::MaxDuties,
        Self::FamilyMax,
        Self::Capacity,
        Self::Apart,
    ];
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Family => "doesn't know the family",
            Self::Version => "can't run the version",
            Self::Selector => "lacks a selected label",
            Self::LeaderOnly => "isn't the leader",
            Self::Pin => "isn't the node that the duty is pinned to",
            Self::Cordoned => "is cordoned",
            Self::Draining => "is draining",
            Self::MaxDuties => "runs as many duties as it may",
            Self::FamilyMax => "runs as many duties of the family as it may",
            Self::Capacity => "has too little capacity left",
            Self::Apart => "runs a duty from which this one is kept apart",
        })
    }
}
