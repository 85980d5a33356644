//! Why a duty runs where it runs.

use std::fmt;

use crate::index::{At, DutyAt, NodeAt};
use crate::layout::Layout;
use crate::mutant::Planted;
use crate::outcome::{Plan, Reason, Why};
use crate::preference::Rank;
use crate::problem::Problem;
use crate::rule::Rule;
use crate::situation::Situation;

/// Why a duty runs where it runs, and why on no other node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The duty, as family and name.
    pub duty: (String, String),
    /// Where it runs, and why there.
    pub place: Place,
    /// What every other node is for it.
    pub others: Vec<Other>,
}

/// Where a duty runs, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// It stays on this node.
    Stays(String),
    /// It comes to this node.
    Comes(String, Why),
    /// It runs nowhere.
    Nowhere(Reason),
}

/// What a node is for a duty that isn't on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Other {
    /// The name of the node.
    pub node: String,
    /// Why the duty isn't there.
    pub because: Because,
}

/// Why a duty isn't on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Because {
    /// A rule keeps it off.
    Ruled(Rule),
    /// It failed there.
    Failed,
    /// The duty's node is preferred.
    LessPreferred,
    /// It would fit, but nothing would be gained. What the node carries, and what the duty's
    /// node carries without the duty.
    NoGain(u128, u128),
}
