//! 7. Work has ended before its lease is freed, and before its member leaves.

use std::rc::Rc;

use incumbent_core::records::{LeaseRecord, MemberRecord, MemberState};

use super::{Invariant, Landing, Verdict};
use crate::process::Work;
use crate::store::Applied;

pub(super) struct WorkFirst;

impl Invariant for WorkFirst {
    fn applied(&mut self, Landing { change, sender, processes, .. }: Landing<'_>) -> Verdict {
        let key = change.key.as_str();
        // Only what a process gives up itself; what is taken from it is for others to judge.
        let Some(process) = sender.and_then(|sender| processes.get(sender.node)) else {
            return Ok(());
        };
        if let Some(lease) = freed(change) {
            let member = lease.holder.as_ref().map(|holder| &holder.member);
            let runs = |name: &str, work: &Work| {
                name == lease.name && work.term == lease.term && Some(&work.member) == member
            };
            if process.work.iter().any(|(name, work)| runs(name.as_str(), work)) {
                return Err(format!("{key} was freed while work under it ran"));
            }
        }
        if let Some(left) = left(change)
            && process.work.values().any(|work| work.member == left.id)
        {
            return Err(format!("{} left while its work ran", process.plan.name));
        }
        Ok(())
    }
}

/// The lease as it was before its holder gave it up.
fn freed(change: &Applied) -> Option<Rc<LeaseRecord>> {
    if !change.key.as_str().starts_with("lease/") {
        return None;
    }
    let (before, after) = (change.before::<LeaseRecord>()?, change.after::<LeaseRecord>()?);
    (before.holder.is_some() && after.holder.is_none()).then_some(before)
}

fn left(change: &Applied) -> Option<Rc<MemberRecord>> {
    if !change.key.as_str().starts_with("member/") {
        return None;
    }
    let after = change.after::<MemberRecord>()?;
    (after.state == MemberState::Left).then_some(after)
}
