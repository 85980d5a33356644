//! Terms grow: a lease's term never goes down and never repeats for two holders.

use incumbent::testing::Holding;
use incumbent_core::records::LeaseRecord;

use crate::book::{Known, Pages};

pub(crate) const NAME: &str = "terms";

pub(crate) fn elected(pages: &mut Pages, holding: &Holding) {
    let all = (holding.lease.clone(), holding.term)..=(holding.lease.clone(), u64::MAX);
    if let Some(((lease, term), other)) = pages.elected.range(all).next() {
        let story = format!(
            "process {} was elected for term {} of {lease} after process {other} was for term {term}",
            holding.process, holding.term
        );
        pages.violate(NAME, story);
    }
}

pub(crate) fn applied(pages: &mut Pages, record: &LeaseRecord) {
    let lease = &record.name;
    let holder = record.holder.as_ref().map(|holder| holder.member.clone());
    let known = pages.leases.get(lease).cloned().unwrap_or_default();
    let changes = holder.is_some() && holder != known.holder;
    if record.term < known.term || (changes && record.term == known.term) {
        let story = format!(
            "{lease} went from term {} of {:?} to term {} of {holder:?}",
            known.term, known.holder, record.term
        );
        pages.violate(NAME, story);
    }
    pages.leases.insert(lease.clone(), Known { term: record.term, holder });
}
