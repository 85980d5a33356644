//! 10. A steady cluster writes nothing but beats. What is left of the dead may still be deleted:
//!     how late that is depends on when the leader changed last.

use std::rc::Rc;

use incumbent_core::records::{MemberRecord, MemberState};

use super::{Invariant, Landing, Verdict};
use crate::scenario::Scenario;

pub(super) struct Steady {
    from: u64,
}

impl Steady {
    pub(super) fn new(scenario: &Scenario) -> Self {
        Self { from: scenario.end - 2 * scenario.longest_ttl() }
    }
}

impl Invariant for Steady {
    fn applied(&mut self, Landing { now, change, .. }: Landing<'_>) -> Verdict {
        if now < self.from {
            return Ok(());
        }
        let alive = |record: Rc<MemberRecord>| record.state == MemberState::Alive;
        let beat = change.key.as_str().starts_with("member/")
            && change.before().is_some_and(alive)
            && change.after().is_some_and(alive);
        let cleaning = change.after.is_none();
        if beat || cleaning {
            Ok(())
        } else {
            Err(format!("{} was written though all was quiet", change.key))
        }
    }
}
