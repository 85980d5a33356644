//! 14. Rosters name only what their member can run, never what is paused, and never go back to
//!     an older leader; a member runs only what its own roster names.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use incumbent_core::records::{Ask, Intent, IntentState, Profile};
use incumbent_core::{LeaseName, MemberId};
use incumbent_duties::DutyId;
use incumbent_duties::records::{Moves, Roster};

use super::{Forgotten, Invariant, Landing, Step, Verdict};
use crate::duties::{FAMILY, NEWEST};
use crate::scenario::{DutyTimes, MILLI, Scenario};
use crate::statistics::Statistics;
use crate::store::Applied;

/// What the store says about duties.
#[derive(Default)]
pub(super) struct Ledger {
    pub(super) alive: BTreeSet<MemberId>,
    pub(super) rosters: BTreeMap<MemberId, Rc<Roster>>,
    /// Every version that a member ever said it can run.
    pub(super) versions: BTreeMap<MemberId, BTreeSet<String>>,
    pauses: BTreeMap<String, String>,
    pins: BTreeMap<String, String>,
    /// Duties that avoid a node, or did until the last plan.
    avoiding: BTreeSet<DutyId>,
}

impl Ledger {
    pub(super) fn forgot(&mut self, forgotten: &Forgotten) {
        for change in &forgotten.changes {
            self.applied(change);
        }
    }

    pub(super) fn applied(&mut self, change: &Applied) {
        let key = change.key.as_str();
        if key == "moves" {
            let (before, after) = (change.before::<Moves>(), change.after::<Moves>());
            let avoided = |moves: &Rc<Moves>| moves.avoided.keys().cloned().collect::<Vec<_>>();
            self.avoiding = before.iter().chain(&after).flat_map(avoided).collect();
        }
        let Some((kind, id)) = key.split_once('/') else { return };
        let member = MemberId::new(id);
        match kind {
            "member" => {
                let alive = &mut self.alive;
                if change.lives() {
                    alive.insert(member)
                } else {
                    alive.remove(&member)
                };
            }
            "roster" => match change.after() {
                Some(roster) => drop(self.rosters.insert(member, roster)),
                None => drop(self.rosters.remove(&member)),
            },
            "profile" => {
                let profile = change.after::<Profile>();
                let family = profile.as_ref().and_then(|profile| profile.families.get(FAMILY));
                let versions = family.into_iter().flat_map(|family| &family.versions);
                self.versions.entry(member).or_default().extend(versions.cloned());
            }
            "intent" => {
                let intent = change.after::<Intent>();
                self.pauses.remove(key);
                self.pins.remove(key);
                let open = intent.filter(|intent| intent.state == IntentState::Open);
                match open.as_ref().map(|intent| &intent.ask) {
                    Some(Ask::Pause { duty }) => {
                        self.pauses.insert(key.to_owned(), duty.clone());
                    }
                    Some(Ask::Pin { duty, .. }) => {
                        self.pins.insert(key.to_owned(), duty.clone());
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }

    pub(super) fn is_paused(&self, duty: &DutyId) -> bool {
        self.pauses.values().any(|paused| paused == duty.as_str())
    }

    /// Whether it may move at any time. What failed on a node avoids it for five minutes, and may go back
    /// when these are over: if an operator wants it there (seed 18004 of the first 20,000), or if the
    /// nodes become more even by that (seed 1124).
    pub(super) fn may_return(&self, duty: &DutyId) -> bool {
        let pinned = self.pins.values().any(|pinned| pinned == duty.as_str());
        pinned || self.avoiding.contains(duty)
    }

    pub(super) fn is_wanted(&self, duty: &DutyId) -> bool {
        let wanted = |(id, roster): (&MemberId, &Rc<Roster>)| {
            self.alive.contains(id) && roster.duties.contains(duty)
        };
        self.rosters.iter().any(wanted)
    }
}

pub(super) struct Rosters {
    ledger: Ledger,
    needs: BTreeMap<DutyId, Option<String>>,
    leases: Vec<(DutyId, LeaseName)>,
    /// While the lists are lost nothing may be dropped.
    lists_lost: std::ops::Range<u64>,
    /// Since when a duty is on nobody's roster.
    dropped: BTreeMap<DutyId, u64>,
}

impl Rosters {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let needs = |spec: &incumbent_duties::records::DutySpec| {
            Some((DutyId::new(FAMILY, &spec.name).ok()?, spec.version.clone()))
        };
        let ttl = scenario.longest_ttl();
        let at = |ttls: u64| scenario.calm_from + ttls * ttl;
        let needs: BTreeMap<DutyId, _> = scenario.duties.iter().filter_map(needs).collect();
        Self {
            ledger: Ledger::default(),
            leases: needs.keys().map(|duty| (duty.clone(), duty.lease())).collect(),
            needs,
            lists_lost: at(DutyTimes::LISTS_LOST)..at(DutyTimes::FOLLOWER_LOST),
            dropped: BTreeMap::new(),
        }
    }

    fn check_roster(&self, change: &Applied) -> Verdict {
        let Some(roster) = change.after::<Roster>() else { return Ok(()) };
        let before = change.before::<Roster>();
        if let Some(before) = before.filter(|before| before.term > roster.term) {
            return Err(format!(
                "{} went from term {} back to {}",
                change.key, before.term, roster.term
            ));
        }
        for duty in &roster.duties {
            let needs = self.needs.get(duty).cloned().flatten();
            let served = self.ledger.versions.get(&roster.member);
            let able = served.is_some_and(|versions| {
                let newest = versions.contains(NEWEST);
                let needed = needs.as_ref().is_none_or(|needs| versions.contains(needs));
                !versions.is_empty() && (newest || needed)
            });
            if !able {
                return Err(format!("{} names {duty}, which its member can't run", change.key));
            }
        }
        Ok(())
    }

    fn check_dropped(&mut self, now: u64) -> Verdict {
        if !self.lists_lost.contains(&now) {
            return Ok(());
        }
        for duty in self.needs.keys() {
            if self.ledger.is_wanted(duty) || self.ledger.is_paused(duty) {
                self.dropped.remove(duty);
            } else {
                let since = *self.dropped.entry(duty.clone()).or_insert(now);
                if now - since > 500 * MILLI {
                    return Err(format!("{duty} was dropped when the lists were lost"));
                }
            }
        }
        Ok(())
    }
}

impl Invariant for Rosters {
    fn forgot(&mut self, forgotten: &Forgotten) {
        self.ledger.forgot(forgotten);
    }

    fn applied(&mut self, Landing { now, change, .. }: Landing<'_>) -> Verdict {
        if self.needs.is_empty() {
            return Ok(());
        }
        self.ledger.applied(change);
        if change.key.as_str().starts_with("roster/") {
            self.check_roster(change)?;
        }
        self.check_dropped(now)
    }

    fn stepped(&mut self, Step { node, processes, .. }: Step<'_>) -> Verdict {
        let Some(process) = processes.get(node) else { return Ok(()) };
        if let Some(core) = &process.core {
            for (held, _) in core.holdings() {
                let of = self.leases.iter().find(|(_, lease)| lease == held);
                let Some((duty, _)) = of else { continue };
                if !core.wanted_duties().any(|wanted| wanted == duty) {
                    return Err(format!(
                        "{} runs {duty}, which its roster doesn't name",
                        process.plan.name
                    ));
                }
            }
        }
        Ok(())
    }

    fn finish(&mut self, _: &Statistics) -> Verdict {
        for duty in self.needs.keys() {
            if self.ledger.is_paused(duty) && self.ledger.is_wanted(duty) {
                return Err(format!("{duty} is paused, and a roster names it"));
            }
        }
        Ok(())
    }
}
