//! What runs counted.

use std::collections::BTreeMap;
use std::rc::Rc;

use incumbent_core::records::LeaseRecord;
use serde::Serialize;

use crate::store::Applied;

/// Counts of one run, or of many.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Statistics {
    /// Seeds that were run.
    pub seeds: u64,
    /// Seeds that saw a change of leader and at least 20 faults.
    pub eventful_seeds: u64,
    /// Simulated time.
    pub simulated_ms: u64,
    /// Times that a lease got a holder.
    pub leader_changes: u64,
    /// Faults by kind.
    pub faults: BTreeMap<&'static str, u64>,
    /// Writes whose sender couldn't know, and that were applied.
    pub unknown_applied: u64,
    /// Writes whose sender couldn't know, and that were not applied.
    pub unknown_lost: u64,
    /// The longest time without a leader after the faults had stopped.
    pub leaderless_ms: u64,
}

impl Statistics {
    /// Counts a fault.
    pub fn fault(&mut self, kind: &'static str) {
        *self.faults.entry(kind).or_insert(0) += 1;
    }

    /// Counts a change in the store.
    pub(crate) fn applied(&mut self, change: &Applied) {
        if !change.key.as_str().starts_with("lease/lease") {
            return;
        }
        let holder = |record: &Rc<LeaseRecord>| Some(record.holder.as_ref()?.member.clone());
        let after = change.after().as_ref().and_then(holder);
        if after.is_some() && after != change.before().as_ref().and_then(holder) {
            self.leader_changes += 1;
        }
    }

    /// All faults together.
    #[must_use]
    pub fn all_faults(&self) -> u64 {
        self.faults.values().sum()
    }

    /// Adds the counts of one run.
    pub fn add_run(&mut self, run: &Self) {
        self.seeds += 1;
        // The first election is no change.
        if run.leader_changes > 1 && run.all_faults() >= 20 {
            self.eventful_seeds += 1;
        }
        self.add(run);
    }

    /// Adds the counts of other runs.
    pub fn add(&mut self, other: &Self) {
        self.seeds += other.seeds;
        self.eventful_seeds += other.eventful_seeds;
        self.simulated_ms += other.simulated_ms;
        self.leader_changes += other.leader_changes;
        self.unknown_applied += other.unknown_applied;
        self.unknown_lost += other.unknown_lost;
        self.leaderless_ms = self.leaderless_ms.max(other.leaderless_ms);
        for (kind, count) in &other.faults {
            *self.faults.entry(kind).or_insert(0) += count;
        }
    }
}
