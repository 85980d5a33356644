//! What the library doesn't say as JSON by itself. The names of fields are documented in docs/cli.md and
//! stable.

use std::time::Duration;

use incumbent::Moved;
use serde_json::{Value, json};

/// A move of a duty.
pub(crate) fn moved(moved: &Moved) -> Value {
    json!({
        "duty": moved.duty.as_str(),
        "from": moved.from,
        "to": moved.to,
        "why": moved.why,
        "at_ms": moved.at_ms,
    })
}

/// Whole milliseconds.
pub(crate) fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
