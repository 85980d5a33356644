use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{Content, Extra, FORMAT};
use crate::duty::DutyId;
use crate::names::MemberId;

/// What the leader wants a member to run. It only advises: a duty runs where its lease is held.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Roster {
    /// The format number.
    pub format: u32,
    /// For whom.
    pub member: MemberId,
    /// The term of the leader that wrote it.
    pub term: u64,
    /// Grows when the duties change.
    pub revision: u64,
    /// The duties.
    pub duties: BTreeSet<DutyId>,
    /// Fields of other versions.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Roster {
    /// The roster of a member that was given nothing yet.
    #[must_use]
    pub fn empty(member: MemberId, term: u64) -> Self {
        let duties = BTreeSet::new();
        Self { format: FORMAT, member, term, revision: 0, duties, extra: Extra::new() }
    }
}

impl Content for Roster {
    fn format(&self) -> u32 {
        self.format
    }

    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}
