//! 18. What runs on an old version is taken from it only once a node of the new one, if it
//!     prepares, has said that it is prepared.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use incumbent_core::MemberId;
use incumbent_core::records::{Ask, Intent, IntentState, Profile};
use incumbent_duties::DutyId;
use incumbent_duties::records::Roster;
use incumbent_duties::records::{Catalog, Report};

use super::{Forgotten, Invariant, Landing, Verdict};
use crate::duties::{FAMILY, NEWEST};
use crate::scenario::Scenario;
use crate::store::Applied;

pub(super) struct Deploys {
    ttl: u64,
    alive: BTreeSet<MemberId>,
    rosters: BTreeMap<MemberId, BTreeSet<DutyId>>,
    /// Who had a duty last on a version before the newest: since when, and until when.
    old: BTreeMap<DutyId, (MemberId, u64, u64)>,
    prepared: BTreeSet<(MemberId, DutyId)>,
    /// What members say about themselves, and since when.
    profiles: BTreeMap<MemberId, (Rc<Profile>, u64)>,
    /// The versions of duties on each list.
    lists: BTreeMap<String, BTreeMap<String, Option<String>>>,
    /// When an ask changed or a list was lost last: plans may be older than that.
    changed: u64,
    /// Asks that move single duties at once.
    asks: BTreeMap<String, String>,
}

impl Deploys {
    pub(super) fn new(scenario: &Scenario) -> Self {
        Self {
            ttl: scenario.longest_ttl(),
            alive: BTreeSet::new(),
            rosters: BTreeMap::new(),
            old: BTreeMap::new(),
            prepared: BTreeSet::new(),
            profiles: BTreeMap::new(),
            lists: BTreeMap::new(),
            changed: 0,
            asks: BTreeMap::new(),
        }
    }

    fn is_newest(&self, member: &MemberId) -> bool {
        let family = self.profiles.get(member).and_then(|(it, _)| it.families.get(FAMILY));
        family.is_some_and(|family| family.versions.contains(NEWEST))
    }

    /// Whether living members list a duty as the newest version, and have long done so as one that
    /// an old member can run.
    fn is_listed_twice(&self, now: u64, duty: &DutyId, old: &MemberId) -> bool {
        let family = |id: &MemberId| {
            let (profile, since) = self.profiles.get(id)?;
            let known = self.alive.contains(id) && now.saturating_sub(*since) > 3 * self.ttl;
            profile.families.get(FAMILY).filter(|_| known)
        };
        let Some(runs) = family(old).map(|family| &family.versions) else { return false };
        let described = |hash: &String| self.lists.get(hash)?.get(duty.name());
        let families = self.profiles.keys().filter_map(family);
        let mut old = families.flat_map(|family| &family.catalogs).filter_map(described);
        let is_old = |version: &Option<String>| match version {
            Some(version) => runs.contains(version),
            None => true,
        };
        let living = self.profiles.iter().filter(|(id, _)| self.alive.contains(*id));
        let all = living.filter_map(|(_, (profile, _))| profile.families.get(FAMILY));
        let mut all = all.flat_map(|family| &family.catalogs).filter_map(described);
        old.any(is_old) && all.any(|version| version.as_deref() == Some(NEWEST))
    }

    fn note(&mut self, now: u64, change: &Applied) {
        let key = change.key.as_str();
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
            "profile" => match change.after() {
                Some(profile) => drop(self.profiles.insert(member, (profile, now))),
                None => drop(self.profiles.remove(&member)),
            },
            "catalog" => {
                let catalog = change.after::<Catalog>();
                self.changed = if catalog.is_none() { now } else { self.changed };
                let listed = catalog.iter().flat_map(|catalog| &catalog.duties);
                let listed = listed.map(|duty| (duty.name.clone(), duty.version.clone())).collect();
                self.lists.insert(id.to_owned(), listed);
            }
            "report" => {
                let report = change.after::<Report>();
                let prepared = report.iter().flat_map(|report| &report.prepared);
                self.prepared.extend(prepared.map(|duty| (member.clone(), duty.clone())));
            }
            "intent" => {
                self.changed = now;
                self.asks.remove(key);
                let intent = change.after::<Intent>();
                let open = intent.filter(|intent| intent.state == IntentState::Open);
                if let Some(Ask::Pin { duty, .. } | Ask::Move { duty, .. }) =
                    open.as_ref().map(|intent| &intent.ask)
                {
                    self.asks.insert(key.to_owned(), duty.clone());
                }
            }
            _ => {}
        }
    }

    fn check(&mut self, now: u64, member: &MemberId, roster: &Roster) -> Verdict {
        let before = self.rosters.insert(member.clone(), roster.duties.clone()).unwrap_or_default();
        let newest = self.is_newest(member);
        for duty in before.difference(&roster.duties) {
            let successor = roster.successors.get(duty).cloned();
            if successor.is_some_and(|to| self.prepared.contains(&(to, duty.clone()))) {
                // It went over to one that was prepared. Should that one die, any will do.
                self.old.remove(duty);
            } else if let Some((had, _, until)) = self.old.get_mut(duty)
                && had == member
            {
                *until = now;
            }
        }
        let family = self.profiles.get(member).and_then(|(it, _)| it.families.get(FAMILY));
        let prepares = family.is_some_and(|family| family.prepares);
        for duty in roster.duties.difference(&before) {
            if !newest {
                self.old.insert(duty.clone(), (member.clone(), now, u64::MAX));
                continue;
            }
            let Some((had, since, until)) = self.old.remove(duty) else { continue };
            // Where nothing has changed about it for long, the plan knew all that is known here.
            let described = self.profiles.get(&had).map_or(now, |(_, since)| *since);
            let changed = self.changed.max(since).max(described);
            let steady = now.saturating_sub(changed) > 3 * self.ttl
                && until.saturating_add(self.ttl) > now
                && self.alive.contains(&had)
                && !self.asks.values().any(|asked| asked == duty.as_str());
            let steady = steady && self.is_listed_twice(now, duty, &had);
            let prepared = self.prepared.contains(&(member.clone(), duty.clone()));
            if steady && prepares && !prepared {
                return Err(format!(
                    "{duty} is taken from {had}, which runs it, for {member}, which isn't prepared"
                ));
            }
        }
        Ok(())
    }
}

impl Invariant for Deploys {
    fn forgot(&mut self, forgotten: &Forgotten) {
        // Nobody knows any more who had what.
        self.old.clear();
        for change in &forgotten.changes {
            self.note(forgotten.at, change);
            if let Some(id) = change.key.as_str().strip_prefix("roster/") {
                let roster = change.after::<Roster>();
                let duties = roster.map(|roster| roster.duties.clone()).unwrap_or_default();
                self.rosters.insert(MemberId::new(id), duties);
            }
        }
    }

    fn applied(&mut self, Landing { now, change, .. }: Landing<'_>) -> Verdict {
        self.note(now, change);
        if !change.key.as_str().starts_with("roster/") {
            return Ok(());
        }
        match change.after::<Roster>() {
            Some(roster) => self.check(now, &roster.member, &roster),
            None => Ok(()),
        }
    }
}
