use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Content, Control, Evidence, Extra, FORMAT};

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
    /// Where hints for it go, if it takes any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<Control>,
    /// The families of duties that it serves.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub families: BTreeMap<String, FamilyProfile>,
    /// The sum of weights that it may carry; without it any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u64>,
    /// How many duties it may run; without it any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_duties: Option<u32>,
    /// Whether it is ready to lead the cluster.
    #[serde(default, skip_serializing_if = "ClusterLead::is_normal")]
    pub cluster_lead: ClusterLead,
    /// Grows with every change.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub revision: u64,
    /// When it joined by its own wall clock, in milliseconds since 1970: for display, and for the order
    /// of versions where there is no other.
    #[serde(default)]
    pub joined_ms: u64,
    /// Fields of other versions.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Whether a member is ready to lead the cluster, which is to keep the list of members and to place
/// duties. Its other leases have nothing to do with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ClusterLead {
    /// It never leads, though nobody else does: a node that may vanish at any moment, or one of an
    /// old version. Where all are like this, nobody places duties.
    Never,
    /// It leads where nobody else is there to: it holds back for a third of the ttl when the cluster
    /// needs a leader.
    IfNeeded,
    /// It leads like anybody else. It holds back for a sixth of the ttl only for a member that serves
    /// all families that anybody serves, if it doesn't itself.
    #[default]
    #[serde(other)]
    Normal,
}

impl ClusterLead {
    /// The choice of this name: `normal`, `if-needed` or `never`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "normal" => Some(Self::Normal),
            "if-needed" => Some(Self::IfNeeded),
            "never" => Some(Self::Never),
            _ => None,
        }
    }

    fn is_normal(&self) -> bool {
        *self == Self::Normal
    }
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
    #[serde(alias = "drain_ms")]
    pub grace_ms: u64,
    /// What happens to one that doesn't.
    #[serde(default, alias = "drain")]
    pub overdue: Overdue,
    /// Versions of the family, oldest first, where their names don't tell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub order: Vec<String>,
    /// It says when it is prepared for a duty that runs on another version elsewhere.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub prepares: bool,
    /// How its version is tried, where it is the newest and others are there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<Canary>,
}

/// How many duties move to a new version before the rest, and how long they must be well there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Canary {
    /// So many.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub duties: u64,
    /// Or so many of a hundred, where that is more.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub percent: u64,
    /// For so long.
    pub well_ms: u64,
}

impl Canary {
    /// So many duties, for so long.
    #[must_use]
    pub fn duties(duties: u64, well_for: Duration) -> Self {
        Self { duties, percent: 0, well_ms: millis(well_for) }
    }

    /// So many of a hundred duties, one at least, for so long.
    #[must_use]
    pub fn percent(percent: u64, well_for: Duration) -> Self {
        Self { duties: 0, percent, well_ms: millis(well_for) }
    }

    /// How many of so many duties are tried: one at least.
    #[must_use]
    pub fn limit(&self, duties: usize) -> usize {
        let share = (duties as u128 * u128::from(self.percent.min(100))).div_ceil(100);
        let limit = share.max(u128::from(self.duties)).max(1);
        usize::try_from(limit).unwrap_or(usize::MAX)
    }
}

/// What happens when a duty runs on after its grace period although it was told to stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Overdue {
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
            grace_ms: 30_000,
            overdue: Overdue::Wait,
            order: Vec::new(),
            prepares: false,
            canary: None,
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
            control: None,
            families: BTreeMap::new(),
            capacity: None,
            max_duties: None,
            cluster_lead: ClusterLead::Normal,
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

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_a_later_version_may_stand_for_the_cluster_is_read_as_normal() {
        let read = |lead: &str| {
            let text = format!(r#"{{"format":1,"node":"a","cluster_lead":"{lead}"}}"#);
            serde_json::from_str::<Profile>(&text).unwrap().cluster_lead
        };
        assert_eq!(read("never"), ClusterLead::Never);
        assert_eq!(read("if-needed"), ClusterLead::IfNeeded);
        assert_eq!(read("on-sundays"), ClusterLead::Normal);
        let plain = serde_json::to_string(&Profile::named("a")).unwrap();
        assert!(!plain.contains("cluster_lead"), "{plain}");
    }
}
