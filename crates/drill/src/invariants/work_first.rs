//! Work has ended before its lease is freed, before its member leaves, and before work begins under
//! a later term in the same process.

use incumbent_core::records::{LeaseRecord, MemberRecord, MemberState};

use crate::book::{Pages, Running};

pub(crate) const NAME: &str = "work-first";

/// Work begins: none of a former term is left in its process.
pub(crate) fn began(pages: &mut Pages, next: &Running) {
    let former = pages.running.values().find(|running| {
        running.process == next.process && running.lease == next.lease && running.term != next.term
    });
    if let Some(former) = former {
        let story = format!(
            "process {} begins its work under {} in term {} beside that under term {}",
            next.process, next.lease, next.term, former.term
        );
        pages.violate(NAME, story);
    }
}

/// A process sends a lease: one that it frees has no work under it.
pub(crate) fn lease_sent(pages: &mut Pages, process: usize, record: &LeaseRecord) {
    let holder = record.holder.as_ref().map(|holder| &holder.member);
    let works = pages.running.values().find(|running| {
        running.process == process
            && running.lease.as_str() == record.name
            && running.term == record.term
            && holder != Some(&running.member)
    });
    if let Some(running) = works {
        let story = format!(
            "process {process} frees {} while its work runs under term {}",
            record.name, running.term
        );
        pages.violate(NAME, story);
    }
}

/// A process sends a member that is over: if it says that it left, it has no work.
pub(crate) fn member_sent(pages: &mut Pages, process: usize, record: &MemberRecord) {
    let works = pages.running.values().find(|running| running.member == record.id);
    if let Some(running) = works
        && record.state == MemberState::Left
    {
        let story = format!(
            "process {process} lets its member leave while its work runs under {} in term {}",
            running.lease, running.term
        );
        pages.violate(NAME, story);
    }
}
