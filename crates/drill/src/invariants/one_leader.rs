//! At no instant do two trust that they hold the same lease.

use incumbent::testing::Holding;

use crate::book::Pages;

pub(crate) const NAME: &str = "one-leader";

pub(crate) fn check(pages: &mut Pages, holdings: &[Holding]) {
    for (at, one) in holdings.iter().enumerate().filter(|(_, one)| one.held) {
        let others = holdings.iter().skip(at + 1);
        if let Some(other) = others.into_iter().find(|other| other.held && other.lease == one.lease)
        {
            let story = format!(
                "process {} trusts that it holds {} in term {}, and process {} in term {}",
                one.process, one.lease, one.term, other.process, other.term
            );
            pages.violate(NAME, story);
        }
    }
}
