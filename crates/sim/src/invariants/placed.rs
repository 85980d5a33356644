//! 9. Once faults stop, every duty that can be placed runs, and again soon after its node died.

use std::collections::BTreeMap;

use incumbent_core::LeaseName;
use incumbent_duties::DutyId;

use super::rosters::Ledger;
use super::{Forgotten, Invariant, Landing, Step, Verdict};
use crate::duties::{FAMILY, SWIFT};
use crate::process::Process;
use crate::scenario::{DutyTimes, MILLI, Scenario};
use crate::statistics::Statistics;

pub(super) struct Placed {
    ledger: Ledger,
    /// Each with its lease, and the process that ran it when that was last looked at, which is asked
    /// first.
    duties: Vec<(DutyId, LeaseName, usize)>,
    /// From here on all run.
    placed: u64,
    /// Here a node dies.
    loss: u64,
    /// How long its duties may stand still.
    bound: u64,
    ttl: u64,
    forgot: bool,
    idle: BTreeMap<DutyId, u64>,
    end: u64,
}

impl Placed {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let ttl = scenario.longest_ttl();
        let at = |ttls: u64| scenario.calm_from + ttls * ttl;
        let names = scenario.duties.iter();
        let duties = names.filter_map(|duty| DutyId::new(FAMILY, &duty.name).ok());
        Self {
            ledger: Ledger::default(),
            duties: duties.map(|duty| (duty.clone(), duty.lease(), 0)).collect(),
            placed: at(DutyTimes::PLACED),
            loss: at(DutyTimes::FOLLOWER_LOST),
            // Expiry by the slowest clock, a start, and a few round trips; where hints are lost, the
            // leader sees the last beat of the dead up to a beat late, rosters are read at the next
            // beat, and leases a second after that. A plan may be followed by a second one.
            bound: ttl * 106 / 100
                + ttl / 20
                + ttl * 7 / 10
                + 2000 * MILLI
                + 2 * SWIFT
                + 12 * 2 * (scenario.latency + MILLI),
            ttl,
            forgot: false,
            idle: BTreeMap::new(),
            end: scenario.end,
        }
    }

    fn overdue(&self, now: u64) -> Verdict {
        for (duty, since) in &self.idle {
            let moves = *since >= self.loss || self.ledger.may_return(duty);
            let bound = if moves { self.bound } else { 0 };
            let since = (*since).max(self.placed);
            if now > since + bound {
                let waited = (now - since) / MILLI;
                return Err(format!("{duty} can be placed, and doesn't run for {waited} ms"));
            }
        }
        Ok(())
    }
}

impl Invariant for Placed {
    fn forgot(&mut self, forgotten: &Forgotten) {
        self.ledger.forgot(forgotten);
        // A node that remembers a term of before waits for a ttl when it finds it lost, which is when
        // it is to run the duty.
        if !std::mem::replace(&mut self.forgot, true) {
            self.bound += self.ttl * 106 / 100;
        }
    }

    fn applied(&mut self, Landing { change, .. }: Landing<'_>) -> Verdict {
        if !self.duties.is_empty() {
            self.ledger.applied(change);
        }
        Ok(())
    }

    fn stepped(&mut self, Step { now, processes, .. }: Step<'_>) -> Verdict {
        if now < self.placed || self.duties.is_empty() {
            return Ok(());
        }
        for (duty, lease, runner) in &mut self.duties {
            let runs = |process: &Process| {
                process.active.contains_key(lease) && process.trusts(lease, now).is_some()
            };
            let run = processes.get(*runner).is_some_and(runs)
                || processes.iter().position(runs).is_some_and(|found| {
                    *runner = found;
                    true
                });
            if run || self.ledger.is_paused(duty) {
                self.idle.remove(duty);
            } else if !self.idle.contains_key(duty) {
                self.idle.insert(duty.clone(), now);
            }
        }
        self.overdue(now)
    }

    fn finish(&mut self, _: &Statistics) -> Verdict {
        self.overdue(self.end)
    }
}
