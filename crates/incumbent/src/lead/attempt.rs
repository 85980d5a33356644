use std::time::Duration;

use incumbent_core::LeaseName;

use crate::cluster::Leader;
use crate::lead::leadership::Leadership;

/// How one attempt to lead went.
#[derive(Debug)]
#[must_use = "dropping `Elected` frees the lease"]
#[non_exhaustive]
pub enum Attempt {
    /// This node leads now.
    Elected(Leadership),
    /// This node leads already, by a campaign of its own. Nothing was changed, and nothing
    /// stacks (F19).
    AlreadyLeader {
        /// The term in which it does.
        term: u64,
    },
    /// Another leads. Nothing was changed.
    OtherLeader(OtherLeader),
    /// The lease is changing hands: somebody else was quicker, or this node holds back after it
    /// gave the lease up. Nothing was changed. Try again a little later.
    Conflict,
    /// The store can't be reached, or this node is no member at the moment. What was sent may
    /// still land; then it is given back. Try again later.
    Unavailable {
        /// What is known about the reason.
        why: String,
    },
}

/// Who leads instead.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OtherLeader {
    /// The lease that it leads.
    pub lease: LeaseName,
    /// The name of its node.
    pub node: String,
    /// Where it can be reached.
    pub address: Option<String>,
    /// What it wants others to know.
    pub payload: Option<String>,
    /// Its term.
    pub term: u64,
    /// Since when, by its own wall clock in milliseconds since 1970: for display alone.
    pub since_ms: Option<u64>,
    /// After how long it would count as gone if nothing more were heard of it. Nothing where
    /// its record could not be read.
    pub due: Option<Duration>,
}

impl OtherLeader {
    pub(crate) fn from_leader(lease: LeaseName, leader: Leader) -> Self {
        Self {
            lease,
            node: leader.node,
            address: leader.address,
            payload: leader.payload,
            term: leader.term,
            since_ms: leader.since_ms,
            due: None,
        }
    }
}

/// What the driver says about an attempt.
#[derive(Debug)]
pub(crate) enum AttemptOutcome {
    Elected,
    Other(OtherLeader),
    Conflict,
    Unavailable(String),
}
