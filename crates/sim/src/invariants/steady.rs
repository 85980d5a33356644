//! 10. A steady cluster writes nothing but beats. What is left of the dead may still be deleted:
//!     how late that is depends on when the leader changed last.

use std::rc::Rc;

use incumbent_core::records::{MemberRecord, MemberState};

use super::{Forgotten, Invariant, Landing, Verdict};
use crate::scenario::Scenario;

pub(super) struct Steady {
    from: u64,
    ttl: u64,
    forgot: bool,
}

impl Steady {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let ttl = scenario.longest_ttl();
        Self { from: scenario.end - 2 * ttl, ttl, forgot: false }
    }
}

impl Invariant for Steady {
    /// Who finds a lease lost waits for a ttl more: the last deploy may come to its end so much later
    /// (seed 13554).
    fn forgot(&mut self, _: &Forgotten) {
        if !std::mem::replace(&mut self.forgot, true) {
            self.from += self.ttl * 106 / 100;
        }
    }

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
