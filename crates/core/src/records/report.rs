use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{Content, Extra, FORMAT};
use crate::duty::DutyId;
use crate::names::MemberId;

/// How a member gets on with its roster: all of it runs, but for what is listed here. So the
/// report of a node on which all is well is tiny, however much it runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Report {
    /// The format number.
    pub format: u32,
    /// Whose.
    pub member: MemberId,
    /// Grows with every change.
    pub revision: u64,
    /// The revision of the roster that it is about.
    pub roster: u64,
    /// Wanted, and the lease isn't held yet.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub waiting: BTreeSet<DutyId>,
    /// The lease is held, and the duty has not started yet.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub starting: BTreeSet<DutyId>,
    /// Wanted no more, and the lease is still held.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub draining: BTreeSet<DutyId>,
    /// Ended by an error and to be started again.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failing: BTreeMap<DutyId, Failing>,
    /// Ended for good: nothing is left to do.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub done: BTreeSet<DutyId>,
    /// Load that isn't in the duties' weights, in the same unit.
    #[serde(default)]
    pub load: u64,
    /// What duties say about themselves, for people.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub progress: BTreeMap<DutyId, String>,
    /// Fields of other versions.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A duty that doesn't stay up.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Failing {
    /// How often in a row.
    pub times: u32,
    /// The last error.
    pub error: String,
    /// This node has given up, and another shall try.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gave_up: bool,
}

impl Report {
    /// The report of a member that has read no roster.
    #[must_use]
    pub fn empty(member: MemberId) -> Self {
        Self {
            format: FORMAT,
            member,
            revision: 0,
            roster: 0,
            waiting: BTreeSet::new(),
            starting: BTreeSet::new(),
            draining: BTreeSet::new(),
            failing: BTreeMap::new(),
            done: BTreeSet::new(),
            load: 0,
            progress: BTreeMap::new(),
            extra: Extra::new(),
        }
    }
}

impl Content for Report {
    fn format(&self) -> u32 {
        self.format
    }

    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}
