//! 5. A release or renewal of an old term changes nothing of a newer one: a lease is taken out
//!    of a member's hands only by that member, or after the member was closed.

use std::collections::BTreeMap;

use incumbent_core::MemberId;
use incumbent_core::records::{LeaseRecord, MemberRecord, MemberState};

use super::{Invariant, Landing, Verdict};

#[derive(Default)]
pub(super) struct Scoped {
    states: BTreeMap<MemberId, MemberState>,
    /// Which process each member belongs to.
    owners: BTreeMap<MemberId, usize>,
}

impl Invariant for Scoped {
    fn applied(&mut self, Landing { change, sender, .. }: Landing<'_>) -> Verdict {
        if change.key.as_str().starts_with("member/") {
            if let Some(record) = change.after::<MemberRecord>() {
                if let (Some(sender), MemberState::Alive) = (sender, record.state) {
                    self.owners.insert(record.id.clone(), sender.node);
                }
                self.states.insert(record.id, record.state);
            }
            return Ok(());
        }
        if !change.key.as_str().starts_with("lease/") {
            return Ok(());
        }
        let holder = |record: LeaseRecord| record.holder.map(|holder| holder.member);
        let Some(before) = change.before().and_then(holder) else { return Ok(()) };
        if change.after().and_then(holder).as_ref() == Some(&before) {
            return Ok(());
        }
        let own = sender.is_some_and(|sender| self.owners.get(&before) == Some(&sender.node));
        let closed = self.states.get(&before).is_some_and(|state| *state != MemberState::Alive);
        if own || closed {
            return Ok(());
        }
        Err(format!("{} was taken from {before:?}, which is not closed", change.key))
    }
}
