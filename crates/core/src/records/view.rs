use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Content, Extra, MemberState};
use crate::names::MemberId;

/// The members as the cluster's leader sees them, for everyone else to read.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct View {
    /// The format number.
    pub format: u32,
    /// The term of the leader that wrote it.
    pub term: u64,
    /// Members in the order of their numbers.
    pub members: Vec<ViewEntry>,
    /// Fields of other versions.
    #[serde(flatten)]
    pub extra: Extra,
}

/// One member in the view.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ViewEntry {
    /// Which member.
    pub id: MemberId,
    /// A small number that stays with it: the lowest that was free.
    pub number: u32,
    /// Its node's name.
    pub node: String,
    /// Where in its life it is.
    pub state: MemberState,
    /// Where it can be reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Whatever operators sort nodes by.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// A list of duties that its profile names is gone: it is to be written again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub missing: bool,
    /// When it joined by its own wall clock: for display alone.
    #[serde(default)]
    pub joined_ms: u64,
}

impl Content for View {
    fn format(&self) -> u32 {
        self.format
    }

    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}
