//! What is stored about duties, as JSON that a person can read. `incumbent-core` has the rest.

mod catalog;
mod moves;
mod report;
mod rollout;
mod roster;

pub use catalog::{Catalog, DutySpec, LeaderRule, MAX_LISTED};
pub use moves::{MAX_UNPLACED, Moved, Moves};
pub use report::{Failing, Report};
pub use rollout::{FamilyRollout, Rollout};
pub use roster::Roster;

use incumbent_core::keys::Kind;
use incumbent_core::records::{
    Audit, Board, Content, Intent, LeaseRecord, MemberRecord, Profile, Unreadable, View, shortened,
};
use incumbent_core::store::Record;

/// What is wrong with a record, whichever kind it is of. Of a kind that this version doesn't know
/// nothing is said.
#[must_use]
pub fn flaw(record: &Record) -> Option<Unreadable> {
    match Kind::of(&record.key)? {
        Kind::Member => MemberRecord::read(record).err(),
        Kind::Profile => Profile::read(record).err(),
        Kind::Catalog => Catalog::read(record).err(),
        Kind::Roster => Roster::read(record).err(),
        Kind::Report => Report::read(record).err(),
        Kind::Rollout => Rollout::read(record).err(),
        Kind::Moves => Moves::read(record).err(),
        Kind::Lease => LeaseRecord::read(record).err(),
        Kind::Intent => Intent::read(record).err(),
        Kind::View => View::read(record).err(),
        Kind::Board => Board::read(record).err(),
        Kind::Audit => Audit::read(record).err(),
        Kind::Once => flaw_of_once(record),
        _ => None,
    }
}

/// The program alone reads and writes these, and knows what is in them.
fn flaw_of_once(record: &Record) -> Option<Unreadable> {
    let said = match serde_json::from_slice::<serde_json::Value>(&record.value) {
        Ok(content) if content.get("format").is_some_and(serde_json::Value::is_u64) => return None,
        Ok(_) => "it has no format".to_owned(),
        Err(error) => shortened(error.to_string()),
    };
    let reason = format!("not the JSON expected: {said}");
    Some(Unreadable { key: record.key.as_str().to_owned(), reason })
}
