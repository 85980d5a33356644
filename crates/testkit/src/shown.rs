//! Records in words, for messages that people read.

use incumbent_core::store::{Found, Record};

/// The version of a record and the beginning of its content.
pub(crate) fn record(record: &Record) -> String {
    let content = String::from_utf8_lossy(&record.value);
    let start: String = content.chars().take(80).collect();
    let rest = if start.len() < content.len() { "…" } else { "" };
    format!("{:?} with {start}{rest}", record.version)
}

/// A record that may be absent.
pub(crate) fn maybe(found: Option<&Record>) -> String {
    found.map_or_else(|| "no record".to_owned(), record)
}

/// What a read found.
pub(crate) fn found(found: &Found) -> String {
    match found {
        Found::Absent => maybe(None),
        Found::Unchanged => "that nothing changed".to_owned(),
        Found::Record(one) => record(one),
        Found::Records(records) => {
            let keys: Vec<_> = records.iter().take(20).map(|record| record.key.as_str()).collect();
            let rest = if records.len() > keys.len() { ", …" } else { "" };
            format!("{} records ({}{rest})", records.len(), keys.join(", "))
        }
    }
}
