//! 15. What runs well stays where it is: a new leader, or lost lists, move nothing.

use incumbent_duties::records::Roster;

use super::rosters::Ledger;
use super::{Forgotten, Invariant, Landing, Verdict};
use crate::scenario::{DutyTimes, Scenario};

pub(super) struct Movement {
    /// From when all is placed to when a node dies.
    still: std::ops::Range<u64>,
    ledger: Ledger,
}

impl Movement {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let at = |ttls: u64| scenario.calm_from + ttls * scenario.longest_ttl();
        let still = at(DutyTimes::PLACED)..at(DutyTimes::FOLLOWER_LOST);
        Self { still, ledger: Ledger::default() }
    }
}

impl Invariant for Movement {
    fn forgot(&mut self, forgotten: &Forgotten) {
        self.ledger.forgot(forgotten);
    }

    fn applied(&mut self, Landing { now, change, .. }: Landing<'_>) -> Verdict {
        self.ledger.applied(change);
        if !self.still.contains(&now) || !change.key.as_str().starts_with("roster/") {
            return Ok(());
        }
        let (before, after) = (change.before::<Roster>(), change.after::<Roster>());
        let (Some(before), Some(after)) = (before, after) else { return Ok(()) };
        let mut moved = before.duties.symmetric_difference(&after.duties);
        if moved.all(|duty| self.ledger.may_return(duty)) {
            return Ok(());
        }
        Err(format!(
            "{} went from {:?} to {:?} though nothing was wrong",
            change.key, before.duties, after.duties
        ))
    }
}
