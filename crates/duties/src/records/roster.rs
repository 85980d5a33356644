use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::duty::DutyId;
use incumbent_core::keys;
use incumbent_core::names::MemberId;
use incumbent_core::records::{self, Content, Extra, FORMAT, size};
use incumbent_core::store::Key;

/// What a roster takes beside the names of duties, with room for fields of later versions.
const OVERHEAD: usize = 300;

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
    /// Duties to be prepared for: they run elsewhere, on another version, until they are.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub preparing: BTreeSet<DutyId>,
    /// For whom the leases of duties are freed that have left the roster.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub successors: BTreeMap<DutyId, MemberId>,
    /// Who held the leases of duties that are new here: one that isn't there is lost, and not new.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub former: BTreeMap<DutyId, MemberId>,
    /// Fields of other versions.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Roster {
    /// The roster of a member that was given nothing yet.
    #[must_use]
    pub fn empty(member: MemberId, term: u64) -> Self {
        Self {
            format: FORMAT,
            member,
            term,
            revision: 0,
            duties: BTreeSet::new(),
            preparing: BTreeSet::new(),
            successors: BTreeMap::new(),
            former: BTreeMap::new(),
            extra: Extra::new(),
        }
    }

    /// How many of these duties a roster can name, whichever they are, if a value may have so many
    /// bytes.
    #[must_use]
    pub fn room<'a>(max_value: usize, duties: impl Iterator<Item = &'a DutyId>) -> usize {
        let mut sizes: Vec<usize> = duties.map(size).collect();
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        let mut room = max_value.saturating_sub(OVERHEAD);
        let fits = |size: &&usize| {
            let fits = **size <= room;
            room = room.saturating_sub(**size);
            fits
        };
        sizes.iter().take_while(fits).count()
    }

    /// Leaves out what would make the record larger than the store takes.
    pub fn cut(&mut self, max_value: usize) -> Vec<DutyId> {
        let mut room = max_value.saturating_sub(OVERHEAD);
        let mut fits = |duty: &DutyId| {
            let size = size(duty);
            let fits = size <= room;
            room = room.saturating_sub(size);
            fits
        };
        let over: Vec<_> = self.duties.iter().filter(|duty| !fits(duty)).cloned().collect();
        for duty in &over {
            self.duties.remove(duty);
        }
        let mut fits = |size: usize| {
            let fits = size <= room;
            room = room.saturating_sub(size);
            fits
        };
        self.preparing.retain(|duty| fits(size(duty)));
        let mut named = |duty: &DutyId, it: &mut MemberId| fits(size(duty) + it.as_str().len() + 8);
        self.successors.retain(&mut named);
        self.former.retain(&mut named);
        over
    }
}

impl Content for Roster {
    fn format(&self) -> u32 {
        self.format
    }

    fn place(&self) -> Option<Key> {
        Some(keys::roster(&self.member))
    }

    fn check(&self) -> Result<(), String> {
        records::check_term(self.term)
    }
}
