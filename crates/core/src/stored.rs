//! A record of which one writer at a time keeps the content.

use crate::records::Content;
use crate::store::{Expect, Found, Version};

/// A record as it was last read or written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stored<T> {
    /// What it says, if that can be read.
    pub content: Option<T>,
    /// Which version of it; nothing where there is none.
    pub version: Option<Version>,
}

impl<T> Stored<T> {
    /// No record, as far as is known.
    pub const EMPTY: Self = Self { content: None, version: None };

    /// What a write over it expects.
    #[must_use]
    pub fn expect(&self) -> Expect {
        self.version.clone().map_or(Expect::Absent, Expect::Version)
    }
}

/// Takes in what a read found under the record's key.
pub fn see<T: Content>(stored: &mut Stored<T>, found: Option<&Found>) {
    match found {
        Some(Found::Record(record)) => {
            stored.version = Some(record.version.clone());
            // What can't be read is replaced by what this leader knows.
            stored.content = T::read(record).ok();
        }
        Some(Found::Absent) => *stored = Stored::EMPTY,
        Some(Found::Unchanged | Found::Records(_)) | None => {}
    }
}
