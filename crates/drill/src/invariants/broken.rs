//! If the driver panics, all trust ends at once.

use incumbent::testing::{Holding, Process};

use crate::book::Pages;

pub(crate) const NAME: &str = "broken";

/// Checked after the very step in which the driver panicked.
pub(crate) fn check(pages: &mut Pages, process: &Process, holdings: &[Holding]) {
    let own = holdings.iter().filter(|holding| holding.process == process.id());
    for kept in own.filter(|holding| holding.held || holding.trusted) {
        let (name, lease, term) = (process.name(), &kept.lease, kept.term);
        let story = format!("{name} trusts {lease} in term {term} although its driver panicked");
        pages.violate(NAME, story);
    }
}
