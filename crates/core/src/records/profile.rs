use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{Content, Evidence, Extra, FORMAT};

/// What a member says about itself. Written after its member record, and rarely again.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Profile {
    /// The format number.
    pub format: u32,
    /// The name that people know the node by. Names may collide; member ids never do.
    pub node: String,
    /// Where it can be reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Whatever operators sort nodes by.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// The process behind the member, for proofs of its death.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostIdentity>,
    /// The families of duties that it serves.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub families: BTreeMap<String, FamilyProfile>,
    /// The sum of weights that it may carry; without it any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u64>,
    /// How many duties it may run; without it any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_duties: Option<u32>,
    /// Grows with every change.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub revision: u64,
    /// When it joined by its own wall clock, in milliseconds since 1970: for display alone.
    #[serde(default)]
    pub joined_ms: u64,
    /// Fields of other versions.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What a member says about a family that it serves.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FamilyProfile {
    /// The versions that it can run. Duties that ask for no version run on all.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub versions: BTreeSet<String>,
    /// The catalogs that list the duties it knows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub catalogs: Vec<String>,
    /// How many of this family it may run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_per_node: Option<u32>,
    /// How long a duty may take to start.
    pub acknowledge_ms: u64,
    /// How long a duty may take to stop.
    pub drain_ms: u64,
    /// What happens to one that doesn't.
    #[serde(default)]
    pub drain: Drain,
}

/// What happens when a duty doesn't stop in its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Drain {
    /// It is waited for.
    #[default]
    Wait,
    /// Its member is evicted, which is safe and takes a ttl.
    Evict,
    /// It may run elsewhere while it still stops here: only for work with a fence.
    Overlap,
}

impl Default for FamilyProfile {
    fn default() -> Self {
        Self {
            versions: BTreeSet::new(),
            catalogs: Vec::new(),
            max_per_node: None,
            acknowledge_ms: 30_000,
            drain_ms: 30_000,
            drain: Drain::Wait,
        }
    }
}

/// Which process on which boot of which machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HostIdentity {
    /// The machine's name.
    pub host: String,
    /// The kernel's id for this boot.
    pub boot: String,
    /// The process.
    pub pid: u32,
    /// What proves its death, if anything does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
}

impl Profile {
    /// The profile of a node with this name and nothing else to say.
    #[must_use]
    pub fn named(node: &str) -> Self {
        Self {
            format: FORMAT,
            node: node.to_owned(),
            address: None,
            labels: BTreeMap::new(),
            host: None,
            families: BTreeMap::new(),
            capacity: None,
            max_duties: None,
            revision: 0,
            joined_ms: 0,
            extra: Extra::new(),
        }
    }
}

impl Content for Profile {
    fn format(&self) -> u32 {
        self.format
    }

    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}
