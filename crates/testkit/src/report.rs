use std::collections::BTreeMap;
use std::fmt;

use crate::{Fault, Violation};

/// What the kit found out about a store. Shown, it is a table.
#[derive(Clone, Debug)]
pub struct Report {
    /// The kind of store, as it calls itself.
    pub kind: &'static str,
    /// The seed of all that was drawn.
    pub seed: u64,
    /// How often each fault struck; `None` for a run without faults.
    pub faults: Option<BTreeMap<Fault, u64>>,
    /// One for each property, in the order in which they ran.
    pub rows: Vec<Row>,
}

/// What became of one property.
#[derive(Clone, Debug)]
pub struct Row {
    /// The property's name.
    pub property: &'static str,
    /// What the property says.
    pub about: &'static str,
    /// Whether it holds.
    pub verdict: Verdict,
    /// How many exchanges failed meanwhile and were settled by trying again.
    pub errors: u64,
}

/// Whether a property holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was tried and held.
    Passed,
    /// It was tried and did not hold.
    Failed(Violation),
    /// It was not tried, for this reason.
    Skipped(String),
}

impl Report {
    /// The properties that held.
    pub fn passed(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.verdict == Verdict::Passed)
    }

    /// The properties that did not hold.
    pub fn failed(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| matches!(row.verdict, Verdict::Failed(_)))
    }

    /// The properties that were not tried.
    pub fn skipped(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| matches!(row.verdict, Verdict::Skipped(_)))
    }

    /// Whether something was tried and all that was tried held.
    #[must_use]
    pub fn is_passed(&self) -> bool {
        self.failed().next().is_none() && self.passed().next().is_some()
    }

    /// For tests.
    ///
    /// # Panics
    ///
    /// With the whole report as the message, unless all that was tried held.
    #[track_caller]
    #[allow(clippy::panic, reason = "this is the assertion that tests of stores call")]
    pub fn assert_passed(&self) {
        if !self.is_passed() {
            panic!("\n{self}");
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "conformance of {} (seed {:#x})", self.kind, self.seed)?;
        let width = self.rows.iter().map(|row| row.property.len()).max().unwrap_or(0);
        for row in &self.rows {
            writeln!(f, "  {:<7} {:<width$}  {}", row.word(), row.property, row.about)?;
            match &row.verdict {
                Verdict::Passed => {}
                Verdict::Failed(violation) => writeln!(f, "          -> {violation}")?,
                Verdict::Skipped(reason) => writeln!(f, "          -> {reason}")?,
            }
            if row.errors > 0 && self.faults.is_none() {
                writeln!(f, "          -> {} exchanges failed and were tried again", row.errors)?;
            }
        }
        if let Some(faults) = &self.faults {
            let faults: Vec<_> =
                faults.iter().map(|(fault, count)| format!("{count} {fault:?}")).collect();
            writeln!(f, "faults: {}", faults.join(", "))?;
        }
        let (passed, failed) = (self.passed().count(), self.failed().count());
        write!(f, "{passed} passed, {failed} failed, {} skipped", self.skipped().count())
    }
}

impl Row {
    fn word(&self) -> &'static str {
        match self.verdict {
            Verdict::Passed => "passed",
            Verdict::Failed(_) => "FAILED",
            Verdict::Skipped(_) => "skipped",
        }
    }
}
