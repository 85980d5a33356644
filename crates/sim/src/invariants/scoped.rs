//! 5. A release or renewal of an old term changes nothing of a newer one: a lease is taken out
//!    of a member's hands only by that member, or after the member was closed.
//!
//! Who left or expired is closed for good. A store that goes back to before that shows it alive, and
//! even takes a beat that was on its way; but its trust was over before it was closed, and a member
//! that has no trust any more never has it again. So who knows that it was closed may act on it. Of an
//! eviction this isn't true: who doesn't know of it yet goes on, and must be read again.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use incumbent_core::MemberId;
use incumbent_core::records::{LeaseRecord, MemberRecord, MemberState};

use super::{Invariant, Landing, Verdict};

#[derive(Default)]
pub(super) struct Scoped {
    states: BTreeMap<MemberId, MemberState>,
    /// Members that were alive and then left or expired.
    over: BTreeSet<MemberId>,
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
                let before = change.before.as_ref().map(|_| self.states.get(&record.id));
                let ends = matches!(record.state, MemberState::Left | MemberState::Expired);
                if ends && before == Some(Some(&MemberState::Alive)) {
                    self.over.insert(record.id.clone());
                }
                self.states.insert(record.id.clone(), record.state);
            }
            return Ok(());
        }
        if !change.key.as_str().starts_with("lease/") {
            return Ok(());
        }
        let holder = |record: Rc<LeaseRecord>| Some(record.holder.as_ref()?.member.clone());
        let Some(before) = change.before().and_then(holder) else { return Ok(()) };
        if change.after().and_then(holder).as_ref() == Some(&before) {
            return Ok(());
        }
        let own = sender.is_some_and(|sender| self.owners.get(&before) == Some(&sender.node));
        let closed = self.states.get(&before).is_some_and(|state| *state != MemberState::Alive);
        if own || closed || self.over.contains(&before) {
            return Ok(());
        }
        Err(format!("{} was taken from {before:?}, which is not closed", change.key))
    }
}
