use std::collections::BTreeMap;

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
    /// When it joined by its own wall clock, in milliseconds since 1970: for display alone.
    #[serde(default)]
    pub joined_ms: u64,
    /// Fields of other versions.
    #[serde(flatten)]
    pub extra: Extra,
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
