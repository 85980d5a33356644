//! What the leader remembers and finds out about new versions: part of a plan.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::setbacks::LASTING;
use super::{Placing, Planning, Round};
use crate::duty::DutyId;
use crate::records::{DutySpec, Report};
use crate::survey::{self, Survey};
use crate::version::Lineage;
use incumbent_core::Moment;
use incumbent_core::mutant::Mutant;
use incumbent_core::names::MemberId;
use incumbent_core::records::{Ask, FamilyProfile, IntentState, MemberState};
use incumbent_core::store::{Key, Version};

/// What reports say that matters to versions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Soundings {
    /// Who can't be, and why.
    pub(super) unprepared: Vec<(MemberId, DutyId, String)>,
    /// What was given up where, and why.
    pub(super) failed: BTreeMap<DutyId, (MemberId, String)>,
    /// What had too many setbacks on nodes that can run these versions, and why.
    pub(super) setbacks: Vec<(DutyId, BTreeSet<String>, String)>,
    /// What isn't known to run where it should.
    pub(super) unwell: BTreeSet<(MemberId, DutyId)>,
    /// Versions that have been well for long enough, by family.
    pub(super) passed: BTreeSet<(String, String)>,
}

/// A version on trial: whether all that run it are well, and for how long they must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Trying {
    pub(super) family: String,
    pub(super) version: String,
    pub(super) well: bool,
    pub(super) well_for: Duration,
}

impl Planning {
    /// What fails on a version goes back to an older one while nodes of that live, and doesn't try
    /// it again.
    pub(super) fn give_up(&self, survey: &mut Survey) {
        if self.planted.is(Mutant::FailedVersionStays) {
            return;
        }
        let mut failed = Vec::new();
        let lineages = survey.lineages();
        for (duty, (member, why)) in &self.soundings.failed {
            let lineage = lineages.get(duty.family());
            if survey.homes.get(duty) == Some(member)
                && let Some(version) = runs_as(survey, member, duty, lineage)
                && has_older(survey, duty, &version, lineage)
            {
                failed.push((duty, version, why.clone()));
            }
        }
        for (member, duty, error) in &self.soundings.unprepared {
            let preparing = survey.preparing.get(duty).is_some_and(|(who, _)| who == member);
            if preparing
                && let Some(version) = runs_as(survey, member, duty, lineages.get(duty.family()))
            {
                failed.push((duty, version, format!("preparing for it failed: {error}")));
            }
        }
        for (duty, versions, why) in &self.soundings.setbacks {
            let lineage = lineages.get(duty.family());
            let able = FamilyProfile { versions: versions.clone(), ..FamilyProfile::default() };
            let specs = survey.duties.get(duty);
            if let Some(spec) = specs.and_then(|specs| survey::runs_as(&able, specs, lineage))
                && let Some(version) = spec.version.clone()
                && has_older(survey, duty, &version, lineage)
            {
                failed.push((duty, version, why.clone()));
            }
        }
        for (duty, version, why) in failed {
            survey.rollout.give_up(duty.family(), duty.name(), &version, &why);
        }
    }

    /// How the versions on trial get on.
    pub(super) fn trying(&self, survey: &Survey) -> Vec<Trying> {
        let mut trying = Vec::new();
        for (family, lineage) in survey.lineages() {
            let Some(trial) = survey.trial(family, &lineage) else { continue };
            let unwell = |duty: &DutyId| {
                let home = survey.homes.get(duty).cloned();
                home.is_none_or(|home| self.soundings.unwell.contains(&(home, duty.clone())))
            };
            let under_way = survey.preparing.keys().any(|duty| duty.family() == family);
            let well = !trial.there.is_empty()
                && trial.failed == 0
                && !under_way
                && !trial.there.iter().any(unwell);
            let well_for = Duration::from_millis(trial.canary.well_ms);
            let (family, version) = (family.to_owned(), trial.version);
            trying.push(Trying { family, version, well, well_for });
        }
        trying
    }

    /// Promotions and aborts are done once the store has them; what is meant by them may be gone.
    pub(super) fn heeded(&self) -> Vec<(Key, Version, Vec<u8>)> {
        use incumbent_core::records::Content;
        let stored = self.rollout.content.as_ref().filter(|_| !self.rollout_unwritten);
        let known = |family: &str| stored.and_then(|stored| stored.families.get(family));
        let mut heeded = Vec::new();
        for (key, at, intent) in &self.intents {
            let (is_known, done) = match &intent.ask {
                Ask::Promote { family, version } => {
                    let known = known(family);
                    let there = known.is_some_and(|it| it.appeared.contains_key(version));
                    (there, known.is_some_and(|it| it.promoted.contains(version)))
                }
                Ask::Abort { family, version } => {
                    let known = known(family);
                    let there = known.is_some_and(|it| it.appeared.contains_key(version));
                    (there, known.is_some_and(|it| it.aborted.contains_key(version)))
                }
                _ => continue,
            };
            if done || (stored.is_some() && !is_known) {
                let mut intent = intent.clone();
                intent.state = if done { IntentState::Done } else { IntentState::Obsolete };
                heeded.push((key.clone(), at.clone(), intent.bytes()));
            }
        }
        heeded
    }
}

impl Placing {
    /// What reports say that matters to versions.
    pub(super) fn soundings(&self) -> Soundings {
        let mut soundings = Soundings {
            failed: self.failed.clone(),
            passed: self.passed.clone(),
            setbacks: self.setbacks.too_many(),
            ..Soundings::default()
        };
        for (id, report) in &self.reports {
            let with = |duty: &DutyId| (id.clone(), duty.clone());
            let unprepared = report.unprepared.iter();
            soundings
                .unprepared
                .extend(unprepared.map(|(duty, error)| (id.clone(), duty.clone(), error.clone())));
            let ill = report.waiting.iter().chain(&report.starting).chain(report.failing.keys());
            soundings.unwell.extend(ill.map(with));
        }
        for (id, pending) in &self.pending {
            soundings.unwell.extend(pending.keys().map(|duty| (id.clone(), duty.clone())));
        }
        soundings
    }

    /// Notes who is gone without leaving in order, and what has run for long enough.
    pub(super) fn note_setbacks(&mut self, round: &Round<'_>) {
        // That a process has ended shows only after its ttl.
        let (now, lasting) = (round.now, LASTING + round.timing.ttl);
        for id in self.setbacks.members() {
            if !round.leader.is_alive(&id) {
                let record = round.leader.member(&id).map(|(record, _)| record);
                let left = record.is_some_and(|record| record.state == MemberState::Left);
                let roster = self.rosters.get(&id).and_then(|stored| stored.content.as_deref());
                self.setbacks.end(now, lasting, &id, left, roster);
            }
        }
        let pending = &self.pending;
        self.setbacks.settle(now, lasting, |id, duty| {
            pending.get(id).is_some_and(|pending| pending.contains_key(duty))
        });
    }

    /// Notes what duties ran as that have lost their node.
    pub(super) fn note_lost(&mut self, round: &Round<'_>) {
        self.ran.retain(|duty, _| self.duties.contains_key(duty));
        self.bereft.retain(|duty, _| self.duties.contains_key(duty));
        for (id, roster) in self.rosters.iter().filter(|(id, _)| !round.leader.is_alive(id)) {
            let unsure = self.unsure(id);
            let duties = roster.content.iter().flat_map(|roster| &roster.duties);
            let held = duties.filter(|duty| !unsure.contains(duty));
            self.bereft.extend(held.map(|duty| (duty.clone(), id.clone())));
            let Some(profile) = round.leader.profile(id) else { continue };
            for duty in roster.content.iter().flat_map(|roster| &roster.duties) {
                let versions = self.duties.get(duty).map_or(0, BTreeMap::len);
                if let Some(family) = profile.families.get(duty.family()).filter(|_| versions > 1) {
                    self.ran.insert(duty.clone(), family.versions.clone());
                }
            }
        }
    }

    /// Notes since when versions on trial have been well.
    pub(super) fn try_versions(&mut self, now: Moment, trying: Vec<Trying>) {
        let mut well = BTreeMap::new();
        for it in trying.into_iter().filter(|it| it.well) {
            let key = (it.family, it.version);
            let since = self.well.get(&key).map_or(now, |(since, _)| *since);
            well.insert(key, (since, it.well_for));
        }
        self.well = well;
    }

    /// Which of them have been for long enough.
    pub(super) fn pass_versions(&mut self, round: &Round<'_>) {
        let over = |(since, well_for): &(Moment, Duration)| round.now >= *since + *well_for;
        let passed = self.well.iter().filter(|(_, it)| over(it)).map(|(key, _)| key.clone());
        self.passed = passed.collect();
    }

    /// What a report says of failures: what runs has not failed, whatever was thought.
    pub(super) fn observe_failures(&mut self, report: &Report) {
        let member = &report.member;
        let down = |duty: &DutyId| {
            report.waiting.contains(duty)
                || report.starting.contains(duty)
                || report.failing.get(duty).is_some_and(|failing| failing.gave_up)
        };
        self.failed.retain(|duty, (who, _)| who != member || down(duty));
        let pending = self.pending.get(member);
        for (duty, failing) in report.failing.iter().filter(|(_, failing)| failing.gave_up) {
            // A report on an older roster speaks of an earlier stay.
            let new = pending.and_then(|pending| pending.get(duty));
            if new.is_none_or(|(_, revision)| report.roster >= *revision) {
                let why = format!("it failed {} times: {}", failing.times, failing.error);
                self.failed.insert(duty.clone(), (member.clone(), why));
            }
        }
    }
}

/// The version that a duty runs as on a member.
fn runs_as(
    survey: &Survey,
    member: &MemberId,
    duty: &DutyId,
    lineage: Option<&Lineage>,
) -> Option<String> {
    survey.runs_as(member, duty, survey.duties.get(duty)?, lineage)?.version.clone()
}

/// Whether a living node could run an older version of a duty that nothing speaks against.
fn has_older(survey: &Survey, duty: &DutyId, version: &str, lineage: Option<&Lineage>) -> bool {
    let rank = |version: Option<&str>| lineage.map_or(0, |lineage| lineage.rank(version));
    let is_older = |spec: &DutySpec| rank(spec.version.as_deref()) < rank(Some(version));
    let runs_it = |spec: &DutySpec| {
        let served = survey.members.values().filter_map(|it| it.families.get(duty.family()));
        let mut served = served.filter(|it| !it.versions.contains(version));
        served.any(|it| spec.version.as_ref().is_none_or(|version| it.versions.contains(version)))
    };
    let specs = survey.duties.get(duty).into_iter().flat_map(BTreeMap::values);
    specs.into_iter().any(|it| is_older(it) && !survey.is_against(duty, it) && runs_it(it))
}
