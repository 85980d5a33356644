//! From a situation to a plan that can be made elsewhere, and from its result to writes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::planning::RosterDraft;
use super::{Placing, Planned, Planning, PlanningId, Round, Subject, Underway, Writes};
use crate::duty::DutyId;
use crate::survey;
use incumbent_core::Moment;
use incumbent_core::keys;
use incumbent_core::leader::WantedWrite;
use incumbent_core::mutant::Mutant;
use incumbent_core::names::MemberId;
use incumbent_core::records::{Ask, Content};
use incumbent_core::store::Expect;

/// So many results in a row may be dropped because the situation has moved on. The next is used
/// as far as it still holds, so that news without end delays duties and doesn't stop them.
const MOST_DROPPED: u32 = 2;

/// A plan could not be made.
pub(crate) struct PlanFailure {
    pub(crate) reason: String,
    pub(crate) again_in: Duration,
}

impl Underway {
    pub(super) fn to_begin(may_rebalance: bool) -> Self {
        let members = BTreeMap::new();
        Self { may_rebalance, id: None, upsets: 0, members, overtaken: false }
    }

    /// Whether what was planned for this member still counts.
    fn holds_for(&self, round: &Round<'_>, draft: &RosterDraft) -> bool {
        let id = &draft.roster.member;
        let now = round.leader.profile(id).filter(|_| round.leader.is_alive(id));
        self.members.get(id).copied() == now.map(|profile| profile.revision)
    }
}

impl Placing {
    /// Whether a plan waits to be handed out.
    pub(crate) fn wants_plan(&self) -> bool {
        self.underway.as_ref().is_some_and(|underway| underway.id.is_none())
    }

    /// Hands out the plan that is to be made.
    pub(crate) fn next_planning(&mut self, round: &Round<'_>, id: PlanningId) -> Option<Planning> {
        let ending = self.still_ending();
        let unsure = self.rosters.keys().map(|id| (id.clone(), self.unsure(id))).collect();
        let mut bereft = self.bereft.clone();
        for (id, duties) in &self.draining {
            bereft.extend(duties.keys().map(|duty| (duty.clone(), id.clone())));
        }
        let soundings = self.soundings();
        let on_the_way = self.on_the_way();
        let underway = self.underway.as_mut().filter(|underway| underway.id.is_none())?;
        let leader = round.leader;
        let members: BTreeMap<_, _> = leader
            .living()
            .map(|(member, _, profile)| (member.clone(), Arc::clone(profile)))
            .collect();
        underway.id = Some(id);
        underway.upsets = leader.upsets();
        underway.members =
            members.iter().map(|(member, profile)| (member.clone(), profile.revision)).collect();
        let list = |hash: &String| Some((hash.clone(), Arc::clone(self.catalogs.get(hash)?)));
        let ask = |(key, version, intent): (&_, &_, &_)| {
            (Clone::clone(key), Clone::clone(version), Clone::clone(intent))
        };
        Some(Planning {
            id,
            at_ms: round.wall_ms,
            term: self.term,
            own: round.own.clone(),
            members,
            loads: survey::loads(&self.reports),
            prepared: survey::prepared(&self.reports),
            intents: leader.intents().map(ask).collect(),
            lists: self.lists.iter().filter_map(list).collect(),
            lists_missing: self.lists_missing,
            known: Arc::clone(&self.duties),
            up_to_date: self.duties_of.as_ref() == Some(&self.lists) && !self.lists_missing,
            ending,
            rosters: self.rosters.clone(),
            unsettled: self.unsettled.clone(),
            ran: self.ran.clone(),
            bereft,
            unsure,
            on_the_way,
            avoided: Arc::clone(&self.avoided),
            moves: self.moves.clone(),
            rollout: self.rollout.clone(),
            rollout_unwritten: self.rollout_unwritten,
            lingering: leader.lingering().cloned().collect(),
            soundings,
            placement: round.placement.clone(),
            may_rebalance: underway.may_rebalance,
            max_value: round.max_value,
            planted: round.planted,
        })
    }

    /// Of the leader before it isn't known why a duty is on no roster: where it still is, it stays.
    fn still_ending(&self) -> Vec<(MemberId, Vec<DutyId>)> {
        if self.was_placed {
            return Vec::new();
        }
        let duties = |draining: &BTreeMap<DutyId, Moment>| draining.keys().cloned().collect();
        self.draining.iter().map(|(id, draining)| (id.clone(), duties(draining))).collect()
    }

    /// The duties on a member's roster of which it isn't known that it has held their leases.
    pub(super) fn unsure(&self, id: &MemberId) -> BTreeSet<DutyId> {
        let report = self.reports.get(id);
        let starts = |duty: &DutyId| report.is_some_and(|it| it.starting.contains(duty));
        let fails = |duty: &DutyId| report.is_some_and(|it| it.failing.contains_key(duty));
        let pending = self.pending.get(id).into_iter().flat_map(BTreeMap::keys);
        // Whoever didn't start one in its time may have waited for its lease.
        let avoided = self.avoided.iter().filter(|(_, avoided)| avoided.contains_key(id));
        let late = avoided.map(|(duty, _)| duty).filter(|duty| !fails(duty));
        // Of what a report had no room for nothing is known, not even to the leader before.
        let roster = self.rosters.get(id).and_then(|stored| stored.content.as_ref());
        let cut = roster.filter(|_| report.is_some_and(|report| report.more > 0));
        let listed = |duty: &DutyId| report.is_some_and(|report| report.shows_held(duty));
        let unknown = cut.into_iter().flat_map(|roster| &roster.duties);
        let unknown = unknown.filter(|duty| !listed(duty));
        pending.filter(|duty| !starts(duty)).chain(late).chain(unknown).cloned().collect()
    }

    /// Takes in a plan that was made, or that it could not be.
    pub(crate) fn planned(
        &mut self,
        round: &Round<'_>,
        id: PlanningId,
        result: Result<Planned, String>,
    ) -> Result<Writes, PlanFailure> {
        let Some(underway) = self.underway.take_if(|underway| underway.id == Some(id)) else {
            return Ok(Vec::new());
        };
        let now = round.now;
        self.dirty |= underway.overtaken;
        let planned = match result {
            Ok(planned) => planned,
            Err(reason) => {
                let again_in = Duration::from_secs(1 << self.failures.min(6)).min(MOST_PATIENT);
                self.failures = self.failures.saturating_add(1);
                self.not_before = now + again_in;
                self.next = self.not_before;
                return Err(PlanFailure { reason, again_in });
            }
        };
        self.failures = 0;
        if self.superseded().is_some() {
            return Ok(Vec::new());
        }
        let mut upset = underway.upsets != round.leader.upsets();
        if round.planted.is(Mutant::StalePlanApplied) {
            (upset, self.dirty) = (false, false);
            self.generation = round.leader.generation();
        }
        if upset && self.dropped < MOST_DROPPED {
            self.dropped += 1;
            self.dirty = true;
            return Ok(Vec::new());
        }
        self.dropped = 0;
        self.dirty |= upset;
        Ok(self.apply(round, &underway, planned, upset))
    }

    fn apply(
        &mut self,
        round: &Round<'_>,
        underway: &Underway,
        planned: Planned,
        upset: bool,
    ) -> Writes {
        self.duties = planned.duties;
        self.duties_of = (!planned.incomplete).then_some(planned.lists);
        super::forgive(&mut self.avoided, &planned.forgiven);
        if planned.rebalances {
            self.rebalanced = round.now;
        }
        self.on_the_way.clear();
        let mut writes = Vec::new();
        for mut draft in planned.rosters {
            if upset {
                if !underway.holds_for(round, &draft) {
                    self.not_written(&draft.roster.member, &draft.roster);
                    continue;
                }
                leave_out_paused(round, &mut draft);
            }
            writes.push(self.write_roster(round, draft));
        }
        if let Some((moves, bytes)) = planned.moves {
            let put = WantedWrite::Put(keys::moves(), self.moves.expect(), bytes);
            self.writing_moves = Some(moves);
            writes.push((Subject::Moves, put));
        }
        if let Some((rollout, bytes)) = planned.rollout {
            let put = WantedWrite::Put(keys::rollout(), self.rollout.expect(), bytes);
            self.writing_rollout = Some(rollout);
            writes.push((Subject::Rollout, put));
        }
        self.try_versions(round.now, planned.trying);
        if !upset {
            let put =
                |(key, version, bytes)| WantedWrite::Put(key, Expect::Version(version), bytes);
            writes.extend(planned.obeyed.into_iter().map(|done| (Subject::Aside, put(done))));
        }
        self.was_placed = true;
        self.next = self.next_round(round, planned.balanced);
        writes
    }

    fn write_roster(&mut self, round: &Round<'_>, draft: RosterDraft) -> (Subject, WantedWrite) {
        let RosterDraft { roster, bytes, expect, new } = draft;
        let id = roster.member.clone();
        let pending = self.pending.entry(id.clone()).or_default();
        pending.extend(new.iter().map(|duty| (duty.clone(), (round.now, roster.revision))));
        pending.retain(|duty, _| roster.duties.contains(duty));
        let profile = round.leader.profile(&id);
        self.setbacks.assign(round.now, &roster, &new, |duty| {
            // Without another version there is none to go back to.
            self.duties.get(duty).filter(|specs| specs.len() > 1)?;
            Some(profile?.families.get(duty.family())?.versions.clone())
        });
        let put = WantedWrite::Put(keys::roster(&id), expect, bytes);
        self.writing.insert(id.clone(), Arc::new(roster));
        (Subject::Roster(id), put)
    }
}

/// The longest pause after plans that could not be made.
const MOST_PATIENT: Duration = Duration::from_secs(60);

/// What was paused while the plan was made isn't started by it.
fn leave_out_paused(round: &Round<'_>, draft: &mut RosterDraft) {
    let paused: BTreeSet<&str> = round
        .leader
        .intents()
        .filter_map(|(_, _, intent)| match &intent.ask {
            Ask::Pause { duty } => Some(duty.as_str()),
            Ask::Resign { .. }
            | Ask::Pin { .. }
            | Ask::Move { .. }
            | Ask::Cordon { .. }
            | Ask::Drain { .. }
            | Ask::Freeze
            | Ask::Hold { .. }
            | Ask::Canary { .. }
            | Ask::Promote { .. }
            | Ask::Abort { .. } => None,
        })
        .collect();
    let before = draft.roster.duties.len();
    draft.roster.duties.retain(|duty| !paused.contains(duty.as_str()));
    if draft.roster.duties.len() < before {
        draft.new.retain(|duty| draft.roster.duties.contains(duty));
        draft.bytes = draft.roster.bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::{Report, Roster};
    use incumbent_core::store::{Found, Record, Reply, Version};

    #[test]
    fn of_what_a_report_had_no_room_for_it_is_not_known_who_held_it() {
        let id = MemberId::new("m");
        let [runs, waits] = ["runs", "waits"].map(|name| DutyId::new("work", name).unwrap());
        let unsure = |more: u64, listed: bool| {
            let mut report = Report { revision: 1, more, ..Report::empty(id.clone()) };
            report.progress.insert(runs.clone(), "half".to_owned());
            if listed {
                report.waiting.insert(waits.clone());
            }
            let duties = [runs.clone(), waits.clone()].into();
            let roster = Roster { duties, ..Roster::empty(id.clone(), 1) };
            report.roster = roster.revision;
            let record = |key, value| {
                Found::Record(Record { key, value, version: Version::new("1"), age: None })
            };
            let (roster_key, report_key) = (keys::roster(&id), keys::report(&id));
            let mut placing = Placing::new(2);
            placing.stage = super::super::PlacingStage::Reading;
            placing.asked = vec![report_key.clone(), roster_key.clone()];
            let reads =
                vec![record(report_key, report.bytes()), record(roster_key, roster.bytes())];
            let reply = Reply { writes: Vec::new(), reads };
            placing.was_read(Moment::START, Ok(&reply), Default::default());
            placing.unsure(&id)
        };
        assert_eq!(unsure(0, false), BTreeSet::new(), "all of it runs");
        assert_eq!(unsure(0, true), [waits.clone()].into());
        assert_eq!(unsure(1, false), [waits.clone()].into(), "it may be what was left out");
    }
}
