//! What can still be read of records that can't be read as a whole.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::{Content, FORMAT, Holder, LeaseRecord};
use crate::keys;
use crate::settings::MAX_TTL;
use crate::store::Record;

/// A number that every receiver of a fence can hold, JavaScript included.
const LARGEST_KNOWN: u64 = 1 << 52;

/// Everything that decides about a lease. A field that is there twice can't be read.
#[derive(Deserialize)]
struct Essence {
    format: u32,
    name: String,
    term: u64,
    #[serde(default)]
    holder: Option<Holder>,
    #[serde(default)]
    lost: u64,
}

/// Everything that decides how long a member is waited for.
#[derive(Deserialize)]
struct Waited {
    format: u32,
    id: String,
    ttl_ms: u64,
}

/// What is only told about a lease.
#[derive(Default, Deserialize)]
struct Told {
    #[serde(default)]
    payload: Value,
    #[serde(default)]
    changes: Value,
}

/// The ttl of a member of which something else can't be read.
#[must_use]
pub fn ttl(stored: &Record) -> Option<Duration> {
    let Waited { format, id, ttl_ms } = serde_json::from_slice(&stored.value).ok()?;
    let ttl = Duration::from_millis(ttl_ms);
    let possible = !ttl.is_zero() && ttl <= MAX_TTL;
    (format == FORMAT && keys::is_for(&stored.key, &id) && possible).then_some(ttl)
}

/// What is left of a lease if everything that decides about it can be read: its name, its term, its
/// holder, and which terms the store has lost.
#[must_use]
pub fn lease(stored: &Record) -> Option<LeaseRecord> {
    let essence: Essence = serde_json::from_slice(&stored.value).ok()?;
    let Essence { format, name, term, holder, lost } = essence;
    if format != FORMAT || !keys::is_for(&stored.key, &name) || term == 0 {
        return None;
    }
    let Told { payload, changes } = serde_json::from_slice(&stored.value).unwrap_or_default();
    let changes = if let Value::Array(changes) = changes { changes } else { Vec::new() };
    let kept = LeaseRecord {
        holder,
        lost,
        payload: payload.as_str().map(ToOwned::to_owned),
        changes: changes.into_iter().filter_map(|it| serde_json::from_value(it).ok()).collect(),
        ..LeaseRecord::free(name, term)
    };
    kept.check().is_ok().then_some(kept)
}

/// The highest term that a damaged record speaks of, wherever it stands.
#[must_use]
pub fn term(value: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(value);
    let numbers = ["\"term\"", "\"lost\""].into_iter().flat_map(|field| {
        text.split(field).skip(1).filter_map(|rest| {
            let rest = rest.trim_start_matches([':', ' ', '"', '\n', '\t']);
            let digits: String = rest.chars().take_while(char::is_ascii_digit).take(20).collect();
            digits.parse().ok()
        })
    });
    // What no fence can be was never given.
    numbers.filter(|number| *number < LARGEST_KNOWN).max()
}
