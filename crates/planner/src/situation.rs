//! What is planned from: nodes, duties, and where these run.

use std::collections::{BTreeMap, BTreeSet};

use crate::policy::Policy;

/// All that a plan depends on.
///
/// Ids of nodes, and pairs of family and name of duties, should be unique. Their order in the
/// vectors changes no decision.
#[derive(Clone, Debug, Default)]
pub struct Situation {
    /// The nodes that are alive.
    pub nodes: Vec<PlanNode>,
    /// All duties that should exist.
    pub duties: Vec<PlanDuty>,
    /// How to place them, and how much may move.
    pub policy: Policy,
}

/// A node, as one member of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanNode {
    /// The id of the member.
    pub id: String,
    /// The name that pins go by.
    pub name: String,
    /// What selectors and spreading look at.
    pub labels: BTreeMap<String, String>,
    /// How much weight it may carry; without a limit if absent.
    pub capacity: Option<u64>,
    /// How many duties it may run; without a limit if absent.
    pub max_duties: Option<u32>,
    /// The families that it can run.
    pub families: BTreeMap<String, FamilySupport>,
    /// Load besides the weights of its duties, in the same unit. It counts for evenness, and
    /// against capacity where a duty would newly come; it drives away none that already runs.
    pub load: u64,
    /// It gets no new duties and keeps what it runs.
    pub cordoned: bool,
    /// It gets no new duties, and what it runs moves away as soon as it fits elsewhere.
    pub draining: bool,
    /// Whether it leads the cluster.
    pub leader: bool,
}

impl PlanNode {
    /// A node without limits, labels and families.
    #[must_use]
    pub fn new(id: impl Into<String>, name: impl Into<String>) -> Self {
        Self { id: id.into(), name: name.into(), ..Self::default() }
    }

    /// The same, able to run a family; without versions, duties that need one don't fit.
    #[must_use]
    pub fn running<V: Into<String>>(
        mut self,
        family: impl Into<String>,
        versions: impl IntoIterator<Item = V>,
    ) -> Self {
        let versions = versions.into_iter().map(Into::into).collect();
        self.families.insert(family.into(), FamilySupport { versions, max_per_node: None });
        self
    }
}

/// How a node can run a family.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FamilySupport {
    /// The versions that it can run. A duty that needs none fits in any case.
    pub versions: BTreeSet<String>,
    /// How many duties of the family it may run; without a limit if absent.
    pub max_per_node: Option<u32>,
}

/// A duty, and where it runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanDuty {
    /// The family that it belongs to.
    pub family: String,
    /// Its name within the family.
    pub name: String,
    /// What it takes of a node's capacity. For evenness a weight of 0 counts as 1.
    pub weight: u64,
    /// The version that a node must know to run it.
    pub version: Option<String>,
    /// The node that holds its lease, or is to take it: an index into [`Situation::nodes`]. One
    /// that doesn't exist counts as gone.
    pub running: Option<usize>,
    /// Nodes on which it failed or wasn't acknowledged. They are used if no other fits.
    pub avoid: Vec<usize>,
    /// The node on which an operator wants it.
    pub pin: Option<Pin>,
    /// It runs nowhere.
    pub paused: bool,
    /// Duties of one group belong together; see [`Strategy::GroupAffinity`](crate::Strategy).
    pub group: Option<String>,
    /// Labels that its node must have.
    pub selector: BTreeMap<String, String>,
    /// No two duties with the same value here run on one node, whatever their families.
    pub apart: Option<String>,
    /// The label over whose values the duties of its family are spread.
    pub spread: Option<String>,
    /// Whether it may run on the leader of the cluster.
    pub leader: LeaderRule,
}

impl PlanDuty {
    /// A duty of weight 1 without rules, that runs nowhere yet.
    #[must_use]
    pub fn new(family: impl Into<String>, name: impl Into<String>) -> Self {
        Self { family: family.into(), name: name.into(), weight: 1, ..Self::default() }
    }
}

/// An operator's wish for a node, by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pin {
    /// Nowhere else.
    Required(String),
    /// There if it fits.
    Preferred(String),
}

/// How a duty relates to the leader of the cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LeaderRule {
    /// It runs on any node.
    #[default]
    Any,
    /// It runs on the leader if it fits nowhere else.
    Avoid,
    /// It runs on the leader alone.
    Only,
}
