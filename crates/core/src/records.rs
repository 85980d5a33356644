//! What is stored: small JSON records that a person can read.
//!
//! Every record has a format number and keeps fields that it doesn't know, so that mixed
//! versions can run side by side. A record that can't be read is never taken for absent, closed
//! or free.

mod board;
mod catalog;
mod evidence;
mod intent;
mod lease;
mod member;
mod moves;
mod profile;
mod report;
mod roster;
mod view;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use board::Board;
pub use catalog::{Catalog, DutySpec, LeaderRule, MAX_LISTED};
pub use evidence::{Evidence, Mark, ProcessEvidence};
pub use intent::{Intent, IntentState, Wish};
pub use lease::{Change, ChangeKind, Holder, LeaseRecord, MAX_CHANGES};
pub use member::{MemberRecord, MemberState};
pub use moves::{MAX_UNPLACED, Moved, Moves};
pub use profile::{Drain, FamilyProfile, HostIdentity, Profile};
pub use report::{Failing, Report};
pub use roster::Roster;
pub use view::{View, ViewEntry};

use crate::store::Record;

/// The format that this version writes, and the newest that it reads.
pub const FORMAT: u32 = 1;

/// Fields that this version doesn't know, kept as they were.
pub type Extra = std::collections::BTreeMap<String, serde_json::Value>;

/// Why a record can't be used.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("record {key} can't be read: {reason}")]
pub struct Unreadable {
    /// Where it is.
    pub key: String,
    /// What is wrong with it.
    pub reason: String,
}

/// A kind of record.
pub trait Content: Serialize + DeserializeOwned {
    /// The format number that it claims.
    fn format(&self) -> u32;

    /// Whether its values make sense.
    ///
    /// # Errors
    /// Says which don't.
    fn check(&self) -> Result<(), String>;

    /// Reads a record.
    ///
    /// # Errors
    /// If it is corrupt, hostile or of a newer format.
    fn read(record: &Record) -> Result<Self, Unreadable> {
        let unreadable =
            |reason: String| Unreadable { key: record.key.as_str().to_owned(), reason };
        let content: Self = serde_json::from_slice(&record.value)
            .map_err(|error| unreadable(format!("not the JSON expected: {error}")))?;
        if content.format() != FORMAT {
            return Err(unreadable(format!(
                "format {} is not {FORMAT}: upgrade this program",
                content.format()
            )));
        }
        content.check().map_err(unreadable)?;
        Ok(content)
    }

    /// The bytes to store.
    fn bytes(&self) -> Vec<u8> {
        // Our own types have string keys and finite numbers, which JSON always takes.
        serde_json::to_vec(self).unwrap_or_default()
    }
}
