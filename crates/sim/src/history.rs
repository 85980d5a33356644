//! What happened in a run, for people to read.

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
            let after = change.after.as_deref().map(String::from_utf8_lossy);
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
