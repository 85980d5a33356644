//! What happened in a run, for people to read.

use incumbent_core::Request;
use incumbent_core::store::{Read, Write};

use crate::scenario::MILLI;
use crate::store::Applied;

/// A readable record of one run; empty unless it is traced.
#[derive(Debug, Default)]
pub(crate) struct History {
    lines: Option<Vec<String>>,
}

impl History {
    /// A history that keeps lines only if `trace` says so.
    #[must_use]
    pub(crate) fn new(trace: bool) -> Self {
        Self { lines: trace.then(Vec::new) }
    }

    /// Notes what happened at an instant.
    pub(crate) fn note(&mut self, instant: u64, what: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.lines {
            let millis = instant / MILLI;
            lines.push(format!("{:>5}.{:03}  {}", millis / 1000, millis % 1000, what()));
        }
    }

    /// Notes a change in the store.
    pub(crate) fn applied(&mut self, instant: u64, change: &Applied) {
        self.note(instant, || {
            let after = change.after.as_ref().map(|after| String::from_utf8_lossy(after.bytes()));
            format!("        store: {} = {}", change.key, after.unwrap_or("(deleted)".into()))
        });
    }

    /// The last so many lines.
    #[must_use]
    pub(crate) fn tail(&self, count: usize) -> &[String] {
        let lines = self.lines.as_deref().unwrap_or_default();
        lines.get(lines.len().saturating_sub(count)..).unwrap_or_default()
    }
}

/// A request in one line.
pub(crate) fn describe(request: &Request) -> String {
    let writes: Vec<String> = request
        .exchange
        .writes
        .iter()
        .map(|write| match write {
            Write::Put(put) => format!("{}={}", put.key, String::from_utf8_lossy(&put.value)),
            Write::Delete(key) => format!("delete {key}"),
        })
        .collect();
    let reads: Vec<String> = request
        .exchange
        .reads
        .iter()
        .map(|read| match read {
            Read::Key { key, .. } => key.to_string(),
            Read::Prefix(key) => format!("{key}*"),
        })
        .collect();
    let (writes, reads) = (writes.join(" "), reads.join(" "));
    format!("#{} {:?} {writes} (reads: {reads})", request.id.0, request.lane)
}
