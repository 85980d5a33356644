//! The table at the end of the tour.

use std::time::Duration;

use crate::demo::stage::Stage;
use crate::out::say;
use crate::span;
use crate::style::{BAD, DIM, GOOD, HEAD};

/// One line of the table.
pub(super) struct Row {
    what: String,
    from: String,
    to: String,
    leases: Option<usize>,
    took: Duration,
}

impl Row {
    /// Leases changed hands.
    pub(super) fn change(what: &str, from: &str, to: &str, leases: usize, took: Duration) -> Self {
        let (what, from, to) = (what.to_owned(), from.to_owned(), to.to_owned());
        Self { what, from, to, leases: Some(leases), took }
    }

    /// Nothing changed hands.
    pub(super) fn plain(what: &str, node: &str, took: Duration) -> Self {
        let (what, from, to) = (what.to_owned(), node.to_owned(), String::new());
        Self { what, from, to, leases: None, took }
    }
}

/// Prints the table and the verdict.
pub(super) fn print(rows: &[Row], stage: &Stage, wrong: &[String]) {
    say!("\n{HEAD}Summary{HEAD:#}");
    let heading = format!(
        "  {:<38}  {:<8}  {:<8}  {:>6}  {:>8}",
        "WHAT HAPPENED", "TO", "NEW", "LEASES", "TOOK"
    );
    say!("{DIM}{heading}{DIM:#}");
    for row in rows {
        let leases = row.leases.map_or_else(String::new, |leases| leases.to_string());
        let (what, from, to, took) = (&row.what, &row.from, &row.to, span::text(row.took));
        say!("  {what:<38}  {from:<8}  {to:<8}  {leases:>6}  {took:>8}");
    }
    let terms = stage.ledger.terms();
    let (leases, answers) = (stage.recipe.leases.len(), stage.ledger.answers);
    say!(
        "\nChecked {terms} terms of {leases} leases against {answers} reports of processes that \
         believed\nto lead, stamped by one clock."
    );
    if wrong.is_empty() {
        say!(
            "{GOOD}All is well: never two leaders at once, terms only grew, every take-over in \
             time.{GOOD:#}"
        );
    } else {
        for fault in wrong {
            say!("{BAD}Wrong: {fault}{BAD:#}");
        }
    }
}
