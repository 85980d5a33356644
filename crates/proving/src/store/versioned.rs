//! Writes with stamps of their own, for stores that make the versions.

use std::sync::atomic::{AtomicU64, Ordering};

use incumbent_core::store::{Expect, Outcome, Stamp, Store, Version, Write};

/// One write that must apply, and its version.
///
/// # Panics
///
/// If it doesn't apply.
pub async fn applied(store: &impl Store, write: Write) -> Version {
    match super::write(store, write).await {
        Ok(Outcome::Applied(version)) => version,
        other => panic!("the write should apply: {other:?}"),
    }
}

/// A stamp that was never used before.
pub fn stamp() -> Stamp {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let attempt = NEXT.fetch_add(1, Ordering::SeqCst);
    Stamp { writer: u64::from(std::process::id()), attempt }
}

/// Creates a record, quietly.
#[must_use]
pub fn create(key: &str, value: &str) -> Write {
    put(key, Expect::Absent, value, false)
}

/// Swaps a record, quietly: a beat.
#[must_use]
pub fn beat(key: &str, from: &Version, value: &str) -> Write {
    put(key, Expect::Version(from.clone()), value, false)
}

/// Swaps a record and tells others.
#[must_use]
pub fn change(key: &str, from: &Version, value: &str) -> Write {
    put(key, Expect::Version(from.clone()), value, true)
}

/// Writes a record.
#[must_use]
pub fn put(key: &str, expect: Expect, value: &str, hint: bool) -> Write {
    super::put(key, expect, stamp(), hint, value)
}
