//! Once faults stop, every lease with a live candidate is led, and its work takes steps.

use std::time::Duration;

use incumbent_core::LeaseName;

use crate::book::{Book, Pages};

pub(crate) const NAME: &str = "liveness";

/// The first of these leases under which no work took a step of late.
pub(crate) fn idle<'a>(pages: &Pages, leases: &'a [LeaseName]) -> Option<&'a LeaseName> {
    leases.iter().find(|lease| {
        let works = pages.running.values().any(|running| {
            running.lease == **lease && pages.now - running.stepped < Duration::from_secs(2)
        });
        !works
    })
}

pub(crate) fn too_late(book: &Book, lease: &LeaseName, after: Duration) {
    let story = format!("nobody works under {lease} {after:?} after the faults stopped");
    book.pages().violate(NAME, story);
}
