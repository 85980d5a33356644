//! From records to all that a plan depends on: in one place, for the leader that makes plans and for whoever
//! only wants to know what it would do.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use incumbent_core::mutant::{Mutant, Planted};
use incumbent_core::names::MemberId;
use incumbent_core::records::{Ask, Intent, Profile};
use incumbent_planner as planner;

use super::{Descriptions, Survey, known, versions};
use crate::duty::DutyId;
use crate::records::{Catalog, Report, Rollout, Roster};

/// Why a duty moves that an operator asked for.
pub const ASKED: &str = "an operator asked for it";

/// What a plan goes by: what the records say, and what a leader remembers beside them. Whoever reads all
/// records at once has no such memory, as a leader that has just been elected has none.
#[derive(Clone, Debug, Default)]
pub struct PlanBasis<'a> {
    /// The members that are alive and have said who they are.
    pub members: BTreeMap<&'a MemberId, &'a Profile>,
    /// Which of them leads, and in which term.
    pub leader: Option<&'a MemberId>,
    /// The leader's term.
    pub term: u64,
    /// What is wanted where.
    pub rosters: BTreeMap<&'a MemberId, &'a Roster>,
    /// What members have to do beside their duties; see [`loads`].
    pub loads: BTreeMap<MemberId, u64>,
    /// Who says that it is prepared for what; see [`prepared`].
    pub prepared: BTreeSet<(MemberId, DutyId)>,
    /// The lists that living members name, as far as they are there.
    pub lists: Vec<&'a Catalog>,
    /// Whether others are missing.
    pub lists_missing: bool,
    /// What operators ask for.
    pub intents: Vec<&'a Intent>,
    /// Where each duty failed or never started.
    pub avoided: BTreeMap<DutyId, BTreeSet<MemberId>>,
    /// What is remembered about versions, if anything is.
    pub rollout: Option<&'a Rollout>,
    /// What the leader remembers beside the records.
    pub memory: LeaderMemory<'a>,
    /// A mistake that is made on purpose.
    pub planted: Planted,
}

/// What isn't in the records, or not any more.
#[derive(Clone, Debug, Default)]
pub struct LeaderMemory<'a> {
    /// The duties that were known before a list was missing.
    pub known: Option<&'a BTreeMap<DutyId, Descriptions>>,
    /// Who still has what no roster names, and keeps it.
    pub ending: Vec<(MemberId, Vec<DutyId>)>,
    /// To whom duties were on their way when a write failed, or the leader changed.
    pub on_the_way: BTreeMap<DutyId, MemberId>,
    /// What the last node of a duty could run, where it is known to be gone.
    pub ran: BTreeMap<DutyId, BTreeSet<String>>,
    /// What members say about themselves that are gone and didn't leave in order.
    pub lingering: Vec<&'a Profile>,
    /// Versions that have been well for long enough, by family.
    pub passed: BTreeSet<(String, String)>,
}

impl PlanBasis<'_> {
    /// All that the plan depends on.
    #[must_use]
    pub fn survey(&self, policy: planner::Policy) -> Survey {
        self.survey_of(Arc::new(self.duties()), policy)
    }

    /// The same, where the duties are known already.
    pub(crate) fn survey_of(
        &self,
        duties: Arc<BTreeMap<DutyId, Descriptions>>,
        policy: planner::Policy,
    ) -> Survey {
        let owned = |(id, profile): (&&MemberId, &&Profile)| ((*id).clone(), (*profile).clone());
        Survey {
            members: self.members.iter().map(owned).collect(),
            leader: self.leader.cloned(),
            loads: self.loads.clone(),
            homes: self.homes(),
            ran: self.memory.ran.clone(),
            avoided: self.avoided.clone(),
            asks: self.asks(),
            incomplete: self.lists_missing,
            rollout: self.rollout_of(&duties),
            preparing: self.preparing(),
            duties,
            policy,
            planted: self.planted,
        }
    }

    /// The duties that living members know. A list that is missing removes nothing.
    pub(crate) fn duties(&self) -> BTreeMap<DutyId, Descriptions> {
        let mut duties = known(self.lists.iter().copied());
        if self.lists_missing && !self.planted.is(Mutant::MissingListMeansNone) {
            // What was known stays known until all lists are there.
            for (duty, specs) in self.memory.known.into_iter().flatten() {
                let described = duties.entry(duty.clone()).or_default();
                for (version, spec) in specs {
                    described.entry(version.clone()).or_insert_with(|| spec.clone());
                }
            }
            self.set_aside(&mut duties);
        }
        duties
    }

    /// While lists are missing, what runs on a node and is described as none of its versions may be
    /// on one of them: it counts as unknown, and stays.
    fn set_aside(&self, duties: &mut BTreeMap<DutyId, Descriptions>) {
        for (id, roster) in &self.rosters {
            let Some(profile) = self.members.get(id) else { continue };
            for duty in &roster.duties {
                let Some(family) = profile.families.get(duty.family()) else { continue };
                let own = |version: &Option<String>| match version {
                    Some(version) => family.versions.contains(version),
                    None => family.versions.is_empty(),
                };
                if duties.get(duty).is_some_and(|described| !described.keys().any(own)) {
                    duties.remove(duty);
                }
            }
        }
    }

    /// Where every duty is: on whose roster, or if it is on none, where it still runs, or to whom it
    /// was on its way.
    fn homes(&self) -> BTreeMap<DutyId, MemberId> {
        let there = |(_, to): &(&DutyId, &MemberId)| {
            self.members.contains_key(*to) && !self.planted.is(Mutant::MoveForgotten)
        };
        let on_the_way = self.memory.on_the_way.iter().filter(there);
        let ending = self.memory.ending.iter();
        let ending = ending.flat_map(|(id, ending)| ending.iter().map(move |duty| (duty, id)));
        let rosters = self.rosters.iter();
        let named = rosters.flat_map(|(id, it)| it.duties.iter().map(move |duty| (duty, *id)));
        let homes = on_the_way.chain(ending).chain(named);
        // Of several homes the last counts. All at once they are sorted, which costs far less than
        // to look for the place of each.
        homes.map(|(duty, id)| (duty.clone(), id.clone())).collect()
    }

    /// Who prepares for what, as rosters say.
    #[must_use]
    pub fn preparing(&self) -> BTreeMap<DutyId, (MemberId, bool)> {
        let mut preparing = BTreeMap::new();
        for (id, roster) in self.rosters.iter().filter(|(id, _)| self.members.contains_key(*id)) {
            for duty in &roster.preparing {
                let prepared = self.prepared.contains(&((*id).clone(), duty.clone()));
                preparing.insert(duty.clone(), ((*id).clone(), prepared));
            }
        }
        preparing
    }

    /// What operators ask for, oldest first: of two that can't both be obeyed the later counts.
    fn asks(&self) -> Vec<Ask> {
        let paused = |ask: &Ask| matches!(ask, Ask::Pause { .. });
        let forgets = self.planted.is(Mutant::PausedIsPlaced);
        let asks = self.oldest_first().into_iter().map(|intent| intent.ask.clone());
        asks.filter(|ask| !(forgets && paused(ask))).collect()
    }

    fn oldest_first(&self) -> Vec<&Intent> {
        let mut intents = self.intents.clone();
        intents.sort_by(|one, other| (one.at_ms, &one.id).cmp(&(other.at_ms, &other.id)));
        intents
    }

    /// What is remembered, brought up to date with who is there and what operators ask for.
    fn rollout_of(&self, duties: &BTreeMap<DutyId, Descriptions>) -> Rollout {
        let mut rollout = self.rollout.cloned().unwrap_or_else(|| Rollout::none(self.term));
        let nodes = self.members.values().chain(&self.memory.lingering).copied();
        let there = versions(nodes, duties).into_iter();
        rollout.follow(&there.map(|(family, it)| (family.to_owned(), it)).collect());
        for intent in self.oldest_first() {
            match &intent.ask {
                Ask::Promote { family, version } => rollout.promote(family, version),
                Ask::Abort { family, version } => rollout.abort(family, version, ASKED),
                Ask::Resign { .. }
                | Ask::Pin { .. }
                | Ask::Pause { .. }
                | Ask::Move { .. }
                | Ask::Cordon { .. }
                | Ask::Drain { .. }
                | Ask::Freeze
                | Ask::Hold { .. }
                | Ask::Canary { .. } => {}
            }
        }
        for (family, version) in &self.memory.passed {
            rollout.promote(family, version);
        }
        rollout
    }
}

/// What members say that they have to do beside their duties.
pub fn loads<'a>(
    reports: impl IntoIterator<Item = (&'a MemberId, &'a Report)>,
) -> BTreeMap<MemberId, u64> {
    reports.into_iter().map(|(id, report)| (id.clone(), report.load)).collect()
}

/// Who says that it is prepared for what.
pub fn prepared<'a>(
    reports: impl IntoIterator<Item = (&'a MemberId, &'a Report)>,
) -> BTreeSet<(MemberId, DutyId)> {
    let with = |(id, report): (&'a MemberId, &'a Report)| {
        report.prepared.iter().map(move |duty| (id.clone(), duty.clone()))
    };
    reports.into_iter().flat_map(with).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duty_is_where_a_roster_says_or_else_where_it_still_runs_or_was_on_its_way() {
        let [one, two, three, gone] = ["m1", "m2", "m3", "gone"].map(MemberId::new);
        let duties = ["a", "b", "c", "d", "e"].map(|name| DutyId::new("p", name).unwrap());
        let [a, b, c, d, e] = duties.clone();
        let profile = Profile::named("node");
        let named =
            Roster { duties: [a.clone(), e.clone()].into(), ..Roster::empty(one.clone(), 1) };
        let later = Roster { duties: [e.clone()].into(), ..Roster::empty(three.clone(), 1) };
        let on_the_way = [(a, &three), (b.clone(), &three), (c.clone(), &three), (d, &gone)];
        let mut basis = PlanBasis {
            members: [&one, &two, &three].map(|id| (id, &profile)).into(),
            rosters: [(&one, &named), (&three, &later)].into(),
            memory: LeaderMemory {
                ending: vec![(two.clone(), vec![duties[0].clone(), b.clone()])],
                on_the_way: on_the_way.map(|(duty, to)| (duty, to.clone())).into(),
                ..LeaderMemory::default()
            },
            ..PlanBasis::default()
        };
        let homes = [(&duties[0], &one), (&b, &two), (&c, &three), (&e, &three)];
        let homes = homes.map(|(duty, id)| (duty.clone(), id.clone()));
        assert_eq!(basis.homes(), homes.clone().into(), "and of two rosters the last counts");
        // The order of what is told makes no difference to that.
        basis.memory.ending.insert(0, (three.clone(), vec![e]));
        assert_eq!(basis.homes(), homes.into());
    }
}
