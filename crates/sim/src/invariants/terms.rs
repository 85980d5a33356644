//! 2. A lease's term never goes down and never repeats for two holders.

use std::collections::BTreeMap;

use incumbent_core::MemberId;
use incumbent_core::records::LeaseRecord;
use incumbent_core::store::Key;

use super::Invariant;
use crate::process::Process;
use crate::store::Applied;
use crate::world::Sender;

#[derive(Default)]
pub(super) struct Terms {
    highest: BTreeMap<Key, u64>,
    holders: BTreeMap<(Key, u64), MemberId>,
}

impl Invariant for Terms {
    fn name(&self) -> &'static str {
        "terms"
    }

    fn applied(
        &mut self,
        _: u64,
        change: &Applied,
        _: Option<Sender>,
        _: &[Process],
    ) -> Result<(), String> {
        let key = &change.key;
        if !key.as_str().starts_with("lease/") {
            return Ok(());
        }
        let Some(after) = &change.after else {
            return Err(format!("{key} was deleted, and its term with it"));
        };
        let record: LeaseRecord =
            serde_json::from_slice(after).map_err(|error| format!("{key}: {error}"))?;
        let highest = self.highest.entry(key.clone()).or_insert(0);
        if record.term < *highest {
            return Err(format!("{key} went from term {highest} down to {}", record.term));
        }
        *highest = record.term;
        if let Some(holder) = record.holder {
            let known =
                self.holders.entry((key.clone(), record.term)).or_insert(holder.member.clone());
            if *known != holder.member {
                return Err(format!("term {} of {key} has two holders", record.term));
            }
        }
        Ok(())
    }
}
