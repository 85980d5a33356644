//! 8. Subscribers see elected and lost in order, each exactly once, and elected only while it
//!    is true.

use std::collections::BTreeMap;

use incumbent_core::{ElectionEvent, LeaseName, MemberId};

use super::{Invariant, Verdict};

#[derive(Default)]
pub(super) struct Events {
    /// What each process believes after its last event: the term, and under which member.
    held: BTreeMap<(usize, LeaseName), (u64, MemberId)>,
    /// The last member of each process.
    members: BTreeMap<usize, MemberId>,
}

impl Invariant for Events {
    fn experienced(&mut self, node: usize, event: &ElectionEvent, trusts: bool) -> Verdict {
        match event {
            ElectionEvent::Joined { member } => {
                // A crashed process says nothing more; its next life begins here.
                let before = self.members.insert(node, member.clone());
                if before.as_ref() == Some(member) {
                    return Err(format!("{member:?} joined twice"));
                }
                self.held.retain(|(other, _), _| *other != node);
            }
            ElectionEvent::Elected { lease, term, member } => {
                if !trusts {
                    return Err(format!("elected to {lease} in term {term} without trust"));
                }
                let key = (node, lease.clone());
                if let Some((held, _)) = self.held.insert(key, (*term, member.clone())) {
                    return Err(format!("elected to {lease} in term {term} while in term {held}"));
                }
            }
            ElectionEvent::Lost { lease, term, .. } => {
                let held = self.held.remove(&(node, lease.clone())).map(|(term, _)| term);
                if held != Some(*term) {
                    return Err(format!("lost term {term} of {lease} while in {held:?}"));
                }
            }
            ElectionEvent::Abort { .. }
            | ElectionEvent::Freed { .. }
            | ElectionEvent::Observed { .. }
            | ElectionEvent::Confirmed { .. }
            | ElectionEvent::Viewed(_)
            | ElectionEvent::Ended { .. }
            | ElectionEvent::Left
            | ElectionEvent::Unreadable(_) => {}
        }
        Ok(())
    }
}
