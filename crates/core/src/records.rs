//! What is stored: small JSON records that a person can read.
//!
//! Every record has a format number and keeps fields that it doesn't know, so that mixed
//! versions can run side by side. A record that can't be read is never taken for absent, closed
//! or free.

mod audit;
mod board;
mod control;
mod evidence;
mod intent;
mod lease;
mod member;
mod profile;
pub mod salvage;
mod view;

use serde::Serialize;
use serde::de::{DeserializeOwned, Error as _};

pub use audit::{Act, Audit, MAX_ACTS};
pub use board::Board;
pub use control::Control;
pub use evidence::{Evidence, Mark, ProcessEvidence};
pub use intent::{Ask, Intent, IntentState};
pub use lease::{Change, ChangeKind, Holder, LeaseRecord, MAX_CHANGES};
pub use member::{MemberRecord, MemberState};
pub use profile::{Canary, ClusterLead, FamilyProfile, HostIdentity, Overdue, Profile};
pub use view::{View, ViewEntry};

use crate::store::{Key, Record};

/// What is wrong with a record is told in so many characters: an error repeats what it met, and that
/// may be as large as the record.
const LONGEST_REASON: usize = 240;

/// The format that this version writes, and the newest that it reads.
pub const FORMAT: u32 = 1;

/// Fields that this version doesn't know, kept as they were.
pub type Extra = std::collections::BTreeMap<String, serde_json::Value>;

/// Why a record can't be used.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, thiserror::Error)]
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

    /// Where it belongs, if it says whose it is.
    fn place(&self) -> Option<Key> {
        None
    }

    /// Whether it belongs under this key.
    fn belongs_under(&self, key: &Key) -> bool {
        self.place().is_none_or(|place| place == *key)
    }

    /// Reads a record.
    ///
    /// # Errors
    /// If it is corrupt, hostile, of a newer format, or another's: whoever took it for what its key
    /// says would write about one record and wait for another.
    fn read(record: &Record) -> Result<Self, Unreadable> {
        let unreadable = |reason: String| Unreadable {
            key: record.key.as_str().to_owned(),
            reason: shortened(reason),
        };
        let parsed = parsed::<Self>(&record.value);
        let content = match parsed {
            Ok(content) if content.format() == FORMAT => content,
            // A newer format may look different in any way.
            parsed => {
                let reason = match (newer_format(&record.value), parsed) {
                    (Some(newer), _) => {
                        format!(
                            "it has format {newer}, and this program reads {FORMAT}: upgrade it"
                        )
                    }
                    (None, Ok(content)) => format!("there is no format {}", content.format()),
                    (None, Err(error)) => format!("not the JSON expected: {error}"),
                };
                return Err(unreadable(reason));
            }
        };
        content.check().map_err(unreadable)?;
        if !content.belongs_under(&record.key) {
            let place = content.place().map(|place| format!(" under {place}")).unwrap_or_default();
            return Err(unreadable(format!("by its content it belongs{place}")));
        }
        Ok(content)
    }

    /// The bytes to store.
    fn bytes(&self) -> Vec<u8> {
        // Our own types have string keys and finite numbers, which JSON always takes.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// Reads JSON. That all of it is text is seen at once, which is quicker than for each string in it.
fn parsed<T: DeserializeOwned>(value: &[u8]) -> serde_json::Result<T> {
    let text = std::str::from_utf8(value).map_err(serde_json::Error::custom)?;
    serde_json::from_str(text)
}

/// The format that a record claims, if that is newer than what this version reads.
#[must_use]
pub fn newer_format(value: &[u8]) -> Option<u64> {
    #[derive(serde::Deserialize)]
    struct ClaimedFormat {
        format: u64,
    }
    let claim: ClaimedFormat = serde_json::from_slice(value).ok()?;
    (claim.format > u64::from(FORMAT)).then_some(claim.format)
}

/// Takes the records that can be read apart from those that can't.
pub fn sift<'a, T: Content>(
    records: impl IntoIterator<Item = &'a Record>,
    unreadable: &mut Vec<Unreadable>,
) -> Vec<T> {
    let read = |record: &Record| T::read(record).map_err(|flaw| unreadable.push(flaw)).ok();
    records.into_iter().filter_map(read).collect()
}

/// What is said about a record, in few words.
#[must_use]
pub fn shortened(reason: String) -> String {
    match reason.char_indices().nth(LONGEST_REASON) {
        Some((end, _)) => format!("{}…", reason.get(..end).unwrap_or_default()),
        None => reason,
    }
}

/// How many bytes a value takes within a record, with what parts it from the next.
#[must_use]
pub fn size(value: &impl Serialize) -> usize {
    serde_json::to_vec(value).map_or(0, |bytes| bytes.len()) + 1
}

/// Keeps as many as there is room for, from the first, and says how many were left out.
pub fn fit<T>(
    room: &mut usize,
    items: impl IntoIterator<Item = T>,
    size: impl Fn(&T) -> usize,
) -> (Vec<T>, u64) {
    let (mut kept, mut over) = (Vec::new(), 0);
    for item in items {
        let size = size(&item);
        if over == 0 && size <= *room {
            *room -= size;
            kept.push(item);
        } else {
            over += 1;
        }
    }
    (kept, over)
}

/// Whether a term can have been that of a leader: the next one is above it, and has to be one that
/// can be read.
///
/// # Errors
/// Says so if it can't.
pub fn check_term(term: u64) -> Result<(), String> {
    if term > u64::MAX / 4 { Err(format!("term {term} is too high")) } else { Ok(()) }
}

/// What counts nothing isn't written.
#[must_use]
pub fn is_zero(number: &u64) -> bool {
    *number == 0
}
