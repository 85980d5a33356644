//! 10. A steady cluster writes nothing but beats. What is left of the dead may still be deleted:
//!     how late that is depends on when the leader changed last.

use incumbent_core::records::{MemberRecord, MemberState};

use super::Invariant;
use crate::process::Process;
use crate::scenario::Scenario;
use crate::store::Applied;
use crate::world::Sender;

pub(super) struct Steady {
    from: u64,
}

impl Steady {
    pub(super) fn new(scenario: &Scenario) -> Self {
        Self { from: scenario.end - 2 * scenario.longest_ttl() }
    }
}

impl Invariant for Steady {
    fn name(&self) -> &'static str {
        "steady"
    }

    fn applied(
        &mut self,
        now: u64,
        change: &Applied,
        _: Option<Sender>,
        _: &[Process],
    ) -> Result<(), String> {
        if now < self.from {
            return Ok(());
        }
        let alive = |bytes: &Option<Vec<u8>>| {
            let record: Option<MemberRecord> =
                bytes.as_ref().and_then(|bytes| serde_json::from_slice(bytes).ok());
            record.is_some_and(|record| record.state == MemberState::Alive)
        };
        let beat = change.key.as_str().starts_with("member/")
            && alive(&change.before)
            && alive(&change.after);
        let cleaning = change.after.is_none();
        if beat || cleaning {
            Ok(())
        } else {
            Err(format!("{} was written though all was quiet", change.key))
        }
    }
}
