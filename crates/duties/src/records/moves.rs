use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::duty::DutyId;
use incumbent_core::names::MemberId;
use incumbent_core::records::{Content, Extra, FORMAT, fit, size};

/// How many duties that run nowhere are listed.
pub const MAX_UNPLACED: usize = 200;

/// How many moves are remembered.
const MAX_MOVES: usize = 256;

/// What the record takes beside its lists.
const OVERHEAD: usize = 800;

/// What the leader planned last, beside the rosters: what could not be placed and why, whom it
/// avoids, and what it moved of late.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Moves {
    /// The format number.
    pub format: u32,
    /// The term of the leader that wrote it.
    pub term: u64,
    /// Duties that run nowhere, and why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unplaced: BTreeMap<DutyId, String>,
    /// How many there are; only the first [`MAX_UNPLACED`] are listed.
    #[serde(default)]
    pub unplaced_total: u64,
    /// Members that a duty was taken from because it failed or never started there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub avoided: BTreeMap<DutyId, Vec<MemberId>>,
    /// How the leader places: the name of a strategy. Empty in what older versions wrote.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub strategy: String,
    /// Families that the leader places by code of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own: Vec<String>,
    /// The last moves, oldest first.
    #[serde(default)]
    pub moves: Vec<Moved>,
    /// Fields of other versions.
    #[serde(flatten)]
    pub extra: Extra,
}

/// One move of a duty.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Moved {
    /// The duty that moved.
    pub duty: DutyId,
    /// The node that ran it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The node that is to run it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Why it moved, in words.
    pub why: String,
    /// When, by the leader's wall clock: for display alone.
    pub at_ms: u64,
}

impl Moves {
    /// Nothing planned yet.
    #[must_use]
    pub fn none(term: u64) -> Self {
        Self {
            format: FORMAT,
            term,
            unplaced: BTreeMap::new(),
            unplaced_total: 0,
            avoided: BTreeMap::new(),
            strategy: String::new(),
            own: Vec::new(),
            moves: Vec::new(),
            extra: Extra::new(),
        }
    }

    /// Leaves out what would make the record larger than the store takes: the oldest moves first,
    /// then whom duties avoid, then what could not be placed.
    pub fn cut(&mut self, max_value: usize) {
        if size(self) <= max_value {
            return;
        }
        let mut room = max_value.saturating_sub(OVERHEAD);
        let (unplaced, _) = fit(&mut room, std::mem::take(&mut self.unplaced), size);
        self.unplaced = unplaced.into_iter().collect();
        let (avoided, _) = fit(&mut room, std::mem::take(&mut self.avoided), size);
        self.avoided = avoided.into_iter().collect();
        let moves = std::mem::take(&mut self.moves);
        (self.moves, _) = fit(&mut room, moves.into_iter().rev(), size);
        self.moves.reverse();
    }

    /// Remembers moves, and forgets the oldest.
    pub fn remember(&mut self, moves: impl IntoIterator<Item = Moved>) {
        self.moves.extend(moves);
        let over = self.moves.len().saturating_sub(MAX_MOVES);
        self.moves.drain(..over);
        // Names may be long: 64 kB at most.
        let mut bytes = 0;
        let size = |moved: &Moved| moved.duty.as_str().len() + moved.why.len() + 120;
        let keep = self.moves.iter().rev().take_while(|moved| {
            bytes += size(moved);
            bytes <= 48 << 10
        });
        let keep = keep.count();
        let over = self.moves.len().saturating_sub(keep);
        self.moves.drain(..over);
    }
}

impl Content for Moves {
    fn format(&self) -> u32 {
        self.format
    }

    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}
