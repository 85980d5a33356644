//! 17. After any number of crashes the number of records returns to what the living need, whether
//!     or not somebody leads the cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use incumbent_core::records::{Ask, Intent, IntentState, LeaseRecord};
use incumbent_core::{LeaseName, MemberId, keys};

use super::{Forgotten, Invariant, Landing, Step, Verdict};
use crate::process::Process;
use crate::scenario::{MILLI, Scenario};
use crate::statistics::Statistics;
use crate::store::Applied;

pub(super) struct Remains {
    /// What is in the store, and when it was written last.
    records: BTreeMap<String, u64>,
    /// What landed after its member had been deleted, or was about to be, and what is left of
    /// members that the store forgot: no rule can know of it.
    late: BTreeSet<String>,
    deleted: BTreeSet<String>,
    intents: BTreeMap<String, Rc<Intent>>,
    leases: BTreeMap<String, (Rc<LeaseRecord>, u64)>,
    /// The members of processes that are up, as of the last moment that was looked at.
    living: BTreeSet<MemberId>,
    end: u64,
    /// How long something may be left behind.
    bound: u64,
}

impl Remains {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let ttl = scenario.longest_ttl();
        // A leader is elected, expiry is watched, and the closed stay visible for a while; twice
        // where a leader hands over. Sweeps are rare, and rarer in larger clusters.
        let ttls = if scenario.is_led() { 6 } else { 44 };
        Self {
            records: BTreeMap::new(),
            late: BTreeSet::new(),
            deleted: BTreeSet::new(),
            intents: BTreeMap::new(),
            leases: BTreeMap::new(),
            living: BTreeSet::new(),
            end: scenario.end,
            bound: ttls * ttl + 5_000 * MILLI,
        }
    }

    fn member_of(key: &str) -> Option<&str> {
        let (kind, id) = key.split_once('/')?;
        matches!(kind, "member" | "profile" | "roster" | "report").then_some(id)
    }

    /// Takes in a change of the store.
    fn note(&mut self, now: u64, change: &Applied) {
        let key = change.key.as_str();
        if change.after.is_none() {
            self.records.remove(key);
            self.late.remove(key);
            self.intents.remove(key);
            self.leases.remove(key);
            self.deleted.insert(key.to_owned());
            return;
        }
        if key.starts_with("intent/") {
            self.intents.extend(change.after().map(|intent| (key.to_owned(), intent)));
        } else if key.starts_with("lease/") {
            self.leases.extend(change.after().map(|lease| (key.to_owned(), (lease, now))));
        } else if let Some(id) = Self::member_of(key) {
            let member = keys::member(&MemberId::new(id));
            let ended = !self.records.contains_key(member.as_str()) || self.deleted.contains(key);
            if ended && !key.starts_with("member/") {
                self.late.insert(key.to_owned());
            }
        } else {
            return;
        }
        self.records.insert(key.to_owned(), now);
    }

    /// Since when nobody needs this intent.
    fn over_since(&self, key: &str) -> Option<u64> {
        let intent = self.intents.get(key)?;
        let written = *self.records.get(key)?;
        match (&intent.state, &intent.ask) {
            (IntentState::Done | IntentState::Obsolete, _) => Some(written),
            (IntentState::Open, Ask::Resign { lease, term, .. }) => {
                let lease = keys::lease(&LeaseName::new(lease).ok()?);
                let (lease, changed) = self.leases.get(lease.as_str())?;
                let over = lease.term > *term || (lease.term == *term && lease.holder.is_none());
                over.then_some(written.max(*changed))
            }
            (IntentState::Open, _) => None,
        }
    }
}

impl Invariant for Remains {
    fn applied(&mut self, Landing { now, change, .. }: Landing<'_>) -> Verdict {
        self.note(now, change);
        Ok(())
    }

    fn forgot(&mut self, forgotten: &Forgotten) {
        for change in &forgotten.changes {
            self.note(forgotten.at, change);
        }
        let lost = |key: &&String| {
            let member = Self::member_of(key).map(|id| keys::member(&MemberId::new(id)));
            member.is_some_and(|member| !self.records.contains_key(member.as_str()))
        };
        self.late.extend(self.records.keys().filter(lost).cloned().collect::<Vec<_>>());
    }

    fn stepped(&mut self, Step { now, processes, .. }: Step<'_>) -> Verdict {
        let living = || processes.iter().filter_map(Process::member);
        let known = || living().filter(|member| self.living.contains(*member)).count();
        if now + self.bound > self.end
            && (living().count() != self.living.len() || known() != self.living.len())
        {
            self.living = living().cloned().collect();
        }
        Ok(())
    }

    fn finish(&mut self, _: &Statistics) -> Verdict {
        let limit = self.end.saturating_sub(self.bound);
        for (key, written) in self.records.iter().filter(|(key, _)| !self.late.contains(*key)) {
            let gone = match Self::member_of(key) {
                Some(id) => !self.living.contains(&MemberId::new(id)) && *written < limit,
                None => self.over_since(key).is_some_and(|since| since < limit),
            };
            if gone {
                let age = (self.end - written) / MILLI;
                return Err(format!("{key} was left behind {age} ms before the end"));
            }
        }
        Ok(())
    }
}
