//! Writes whose versions are told by the number of their attempt, for stores that keep stamps.

use incumbent_core::store::{Expect, Outcome, Stamp, Version, Write};

/// The stamp of an attempt.
#[must_use]
pub fn stamp(attempt: u64) -> Stamp {
    Stamp { writer: u64::from(std::process::id()), attempt }
}

/// The version that an attempt makes.
#[must_use]
pub fn version(attempt: u64) -> Version {
    stamp(attempt).version()
}

/// What comes of an attempt that applied.
#[must_use]
pub fn applied(attempt: u64) -> Outcome {
    Outcome::Applied(version(attempt))
}

/// Creates a record, quietly.
#[must_use]
pub fn create(key: &str, attempt: u64) -> Write {
    put(key, Expect::Absent, attempt, false)
}

/// Swaps a record, quietly: a beat.
#[must_use]
pub fn beat(key: &str, from: u64, attempt: u64) -> Write {
    put(key, Expect::Version(version(from)), attempt, false)
}

/// Swaps a record and tells others.
#[must_use]
pub fn change(key: &str, from: u64, attempt: u64) -> Write {
    put(key, Expect::Version(version(from)), attempt, true)
}

/// Writes a record that holds the number of its attempt.
#[must_use]
pub fn put(key: &str, expect: Expect, attempt: u64, hint: bool) -> Write {
    with_value(key, expect, attempt, hint, &format!("{{\"format\":1,\"attempt\":{attempt}}}"))
}

/// Writes a record that holds this.
#[must_use]
pub fn with_value(key: &str, expect: Expect, attempt: u64, hint: bool, value: &str) -> Write {
    super::put(key, expect, stamp(attempt), hint, value)
}

/// Five hundred records, which the first round creates and each later one changes. The attempts of a
/// round have the numbers from a thousand times its own on.
#[must_use]
pub fn batch(round: u64) -> Vec<Write> {
    let one = |number: u64| {
        let key = format!("lease/{number:03}");
        match round.checked_sub(1) {
            None => create(&key, number),
            Some(before) => change(&key, before * 1000 + number, round * 1000 + number),
        }
    };
    (0..500).map(one).collect()
}
