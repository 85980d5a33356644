//! The table at the end of the tour.

use std::time::Duration;

use crate::demo::DUTIES;
use crate::demo::stage::Stage;
use crate::out::say;
use crate::span;
use crate::style::{BAD, DIM, GOOD, HEAD};

/// One line of the table.
pub(super) struct Row {
    what: String,
    from: String,
    to: String,
    moved: String,
    took: Duration,
}

impl Row {
    /// So many leases or duties went to these nodes.
    pub(super) fn change(
        what: &str,
        from: &str,
        to: &[String],
        moved: String,
        took: Duration,
    ) -> Self {
        let to = if to.len() > 2 { format!("{} nodes", to.len()) } else { to.join(", ") };
        Self { what: what.to_owned(), from: from.to_owned(), to, moved, took }
    }

    /// Nothing changed hands.
    pub(super) fn plain(what: &str, node: &str, took: Duration) -> Self {
        Self::change(what, node, &[], String::new(), took)
    }
}

/// `1 lease`, `2 leases`.
pub(super) fn leases(count: usize) -> String {
    format!("{count} {}", if count == 1 { "lease" } else { "leases" })
}

/// `1 duty`, `2 duties`.
pub(super) fn duties(count: usize) -> String {
    format!("{count} {}", if count == 1 { "duty" } else { "duties" })
}

/// Prints the table and the verdict.
pub(super) fn print(rows: &[Row], stage: &Stage, wrong: &[String]) {
    say!("\n{HEAD}Summary{HEAD:#}");
    let heading = format!(
        "  {:<26}  {:<8}  {:<16}  {:<8}  {:>7}",
        "WHAT HAPPENED", "TO", "NOW ON", "MOVED", "TOOK"
    );
    say!("{DIM}{heading}{DIM:#}");
    for row in rows {
        let Row { what, from, to, moved, took } = row;
        let took = span::text(*took);
        say!("  {what:<26}  {from:<8}  {to:<16}  {moved:<8}  {took:>7}");
    }
    let ledger = &stage.ledger;
    let (leases, duties) = (stage.recipe.leases.len(), DUTIES.len());
    let (led, ran, answers) = (ledger.leases.terms(), ledger.duties.terms(), ledger.answers);
    say!(
        "\nChecked {led} terms of {leases} leases and {ran} runs of {duties} duties against \
         {answers} reports\nof processes that led and worked, stamped by one clock."
    );
    if wrong.is_empty() {
        say!(
            "{GOOD}All is well: never two leaders, no duty ran twice at once, terms only grew,\n\
             every take-over came in time, and every duty ran after each act.{GOOD:#}"
        );
    } else {
        for fault in wrong {
            say!("{BAD}Wrong: {fault}{BAD:#}");
        }
    }
}
