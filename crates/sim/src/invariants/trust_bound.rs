//! 4. Trust never outlives `sent + ttl − margin` of a beat that was applied.

use std::collections::BTreeMap;

use incumbent_core::records::{MemberRecord, MemberState};
use incumbent_core::{MemberId, Moment};

use super::{Invariant, Landing, Step, Verdict};

#[derive(Default)]
pub(super) struct TrustBound {
    /// By the member's own clock.
    bounds: BTreeMap<MemberId, Moment>,
    /// What each process was found to trust until, and as which member. Bounds only grow, so that it
    /// is right as long as that is so.
    found: BTreeMap<usize, (MemberId, Moment)>,
}

impl Invariant for TrustBound {
    fn applied(&mut self, Landing { change, sender, processes, .. }: Landing<'_>) -> Verdict {
        if !change.key.as_str().starts_with("member/") {
            return Ok(());
        }
        let (Some(sender), Some(record)) = (sender, change.after::<MemberRecord>()) else {
            return Ok(());
        };
        let Some(process) = processes.get(sender.node) else { return Ok(()) };
        if record.state == MemberState::Alive {
            let until = sender.sent + process.plan.timing.trust();
            let bound = self.bounds.entry(record.id.clone()).or_insert(until);
            *bound = (*bound).max(until);
        }
        Ok(())
    }

    fn stepped(&mut self, Step { node, processes, .. }: Step<'_>) -> Verdict {
        if let Some(process) = processes.get(node)
            && let Some(id) = process.member()
        {
            let until = process.trusted_until();
            if self.found.get(&node).is_some_and(|(known, then)| *then == until && known == id) {
                return Ok(());
            }
            let bound = self.bounds.get(id).copied().unwrap_or(Moment::START);
            if until > bound {
                return Err(format!(
                    "{} trusts until {until:?}, and no applied beat allows more than {bound:?}",
                    process.plan.name
                ));
            }
            self.found.insert(node, (id.clone(), until));
        }
        Ok(())
    }
}
