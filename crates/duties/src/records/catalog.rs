use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub use incumbent_planner::LeaderRule;

use incumbent_core::records::{Content, Extra, FORMAT, size};

/// How many duties a catalog holds at most; a family with more has several.
pub const MAX_LISTED: usize = 500;

/// What a catalog takes beside its duties.
const OVERHEAD: usize = 100;

/// Known duties of a family. Named by its content, so that all members that know the same share
/// one record, and it never changes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Catalog {
    /// The format number.
    pub format: u32,
    /// Which family.
    pub family: String,
    /// Its duties, or a part of them, by name.
    pub duties: Vec<DutySpec>,
    /// Fields of other versions.
    #[serde(flatten)]
    pub extra: Extra,
}

/// One duty as its family describes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DutySpec {
    /// Its name within the family.
    pub name: String,
    /// How much of a node it takes.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub weight: u64,
    /// The version a node must be able to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Duties of one group would rather run together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// No two duties that name the same here run on one node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apart: Option<String>,
    /// The label over whose values its family is spread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<String>,
    /// Labels that a node must have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub selector: BTreeMap<String, String>,
    /// Whether it belongs on the leader's node, or rather not there.
    #[serde(default, skip_serializing_if = "is_any", with = "LeaderWord")]
    pub leader: LeaderRule,
    /// The node it would rather run on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefers: Option<String>,
    /// What it is made of, where several things run as one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<String>,
}

/// The words for the planner's rule in a record.
#[derive(Serialize, Deserialize)]
#[serde(remote = "LeaderRule", rename_all = "lowercase")]
enum LeaderWord {
    Any,
    Avoid,
    Only,
}

fn is_any(rule: &LeaderRule) -> bool {
    *rule == LeaderRule::Any
}

impl DutySpec {
    /// A duty without asks.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            weight: 1,
            version: None,
            group: None,
            apart: None,
            spread: None,
            selector: BTreeMap::new(),
            leader: LeaderRule::Any,
            prefers: None,
            parts: Vec::new(),
        }
    }
}

impl Catalog {
    /// The catalogs of a family: its duties by name, in parts of at most [`MAX_LISTED`].
    #[must_use]
    pub fn of(family: &str, duties: &[DutySpec], max_value: usize) -> Vec<Self> {
        let mut sorted = duties.to_vec();
        sorted.sort_by(|a, b| a.name.cmp(&b.name));
        sorted.dedup_by(|a, b| a.name == b.name);
        let mut parts: Vec<Self> = Vec::new();
        let mut room = 0;
        for spec in sorted {
            let size = size(&spec);
            match parts.last_mut() {
                Some(part) if part.duties.len() < MAX_LISTED && size <= room => {
                    room -= size;
                    part.duties.push(spec);
                }
                Some(_) | None => {
                    room = max_value.saturating_sub(family.len() + OVERHEAD + size);
                    let (family, duties) = (family.to_owned(), vec![spec]);
                    parts.push(Self { format: FORMAT, family, duties, extra: Extra::new() });
                }
            }
        }
        parts
    }

    /// The name that follows from the content.
    #[must_use]
    pub fn hash(&self) -> String {
        Sha256::digest(self.bytes()).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
    }
}

impl Content for Catalog {
    fn format(&self) -> u32 {
        self.format
    }

    fn check(&self) -> Result<(), String> {
        crate::duty::check_family(&self.family).map_err(|error| error.to_string())?;
        for duty in &self.duties {
            incumbent_core::names::check("duty", &duty.name).map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

fn one() -> u64 {
    1
}

fn is_one(weight: &u64) -> bool {
    *weight == 1
}
