//! 3. No trust outlives closing (Left, Expired), or closing + ttl (Evicted).

use std::collections::BTreeMap;

use incumbent_core::records::{MemberRecord, MemberState};
use incumbent_core::{LeaseName, MemberId};

use super::Invariant;
use crate::process::Process;
use crate::store::Applied;
use crate::world::Sender;

#[derive(Default)]
pub(super) struct Closing {
    /// From which instant on no trust is allowed.
    closed: BTreeMap<MemberId, (MemberState, u64)>,
}

impl Invariant for Closing {
    fn name(&self) -> &'static str {
        "closing"
    }

    fn applied(
        &mut self,
        now: u64,
        change: &Applied,
        _: Option<Sender>,
        _: &[Process],
    ) -> Result<(), String> {
        if !change.key.as_str().starts_with("member/") {
            return Ok(());
        }
        let read = |bytes: &Option<Vec<u8>>| -> Option<MemberRecord> {
            serde_json::from_slice(bytes.as_ref()?).ok()
        };
        let (before, after) = (read(&change.before), read(&change.after));
        if let Some(before) = &before
            && before.state != MemberState::Alive
            && after.as_ref().is_some_and(|after| after.state == MemberState::Alive)
        {
            return Err(format!("{} came back after it was {}", before.id, before.state.as_str()));
        }
        if let (Some(before), None) = (&before, &after)
            && before.state == MemberState::Alive
        {
            return Err(format!("{} was deleted while alive", before.id));
        }
        if let Some(after) = after {
            let from = match after.state {
                MemberState::Alive => return Ok(()),
                MemberState::Left | MemberState::Expired => now,
                MemberState::Evicted => now + after.ttl_ms * 1_000_000,
            };
            let entry = self.closed.entry(after.id).or_insert((after.state, from));
            entry.1 = entry.1.min(from);
        }
        Ok(())
    }

    fn stepped(&mut self, now: u64, processes: &[Process], _: &[LeaseName]) -> Result<(), String> {
        for process in processes {
            let Some(id) = process.member() else { continue };
            let Some((state, from)) = self.closed.get(id) else { continue };
            if now >= *from && process.clock.at(now) < process.trusted_until() {
                return Err(format!(
                    "{} trusts as {id:?}, which was {}",
                    process.plan.name,
                    state.as_str()
                ));
            }
        }
        Ok(())
    }
}
