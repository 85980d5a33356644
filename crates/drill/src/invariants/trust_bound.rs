//! Trust never outlives `sent + ttl - margin` of a beat that was applied.

use incumbent::testing::Holding;

use crate::book::Pages;

pub(crate) const NAME: &str = "trust-bound";

pub(crate) fn check(pages: &mut Pages, holdings: &[Holding]) {
    for holding in holdings.iter().filter(|holding| holding.trusted) {
        let bound = pages.bounds.get(&holding.member).copied();
        if bound.is_none_or(|bound| holding.until > bound) {
            let story = format!(
                "process {} trusts {} in term {} until {:?}, and its beats allow {bound:?}",
                holding.process, holding.lease, holding.term, holding.until
            );
            pages.violate(NAME, story);
        }
    }
}
