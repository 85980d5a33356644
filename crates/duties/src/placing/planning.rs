use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use incumbent_planner::{self as planner, Plan, Rebalance};

use super::rollout::{Soundings, Trying};
use super::{Avoided, KnownDuties, Placement};
use crate::duty::DutyId;
use crate::records::{Catalog, MAX_UNPLACED, Moved, Moves, Rollout, Roster};
use crate::survey::{ASKED, LeaderMemory, PlanAnswer, PlanBasis, Question, Survey};
use crate::version::Lineage;
use incumbent_core::Moment;
use incumbent_core::mutant::{Mutant, Planted};
use incumbent_core::names::MemberId;
use incumbent_core::records::{Ask, Content, Intent, IntentState, Profile};
use incumbent_core::store::{Expect, Key, Version};
use incumbent_core::stored::Stored;

/// Names a plan until its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PlanningId(pub u64);

/// A plan to be made, and all that it depends on.
///
/// Whatever costs in proportion to the number of duties is in here, and so is the application's own
/// placement. None of it may run where beats are sent: [`Self::run`] is to be called on another
/// thread, under `catch_unwind`.
#[derive(Clone, Debug)]
pub struct Planning {
    /// To be given back with the result.
    pub id: PlanningId,
    pub(super) at_ms: u64,
    pub(super) term: u64,
    pub(super) own: MemberId,
    pub(super) members: BTreeMap<MemberId, Arc<Profile>>,
    pub(super) loads: BTreeMap<MemberId, u64>,
    pub(super) prepared: BTreeSet<(MemberId, DutyId)>,
    pub(super) intents: Vec<(Key, Version, Intent)>,
    /// The lists that members name, as far as they are there.
    pub(super) lists: BTreeMap<String, Arc<Catalog>>,
    /// Whether others are missing.
    pub(super) lists_missing: bool,
    /// The duties that were known before, and whether they are those of these very lists.
    pub(super) known: Arc<KnownDuties>,
    pub(super) up_to_date: bool,
    /// Who still has what no roster names, as far as it was reported.
    pub(super) ending: Vec<(MemberId, Vec<DutyId>)>,
    pub(super) rosters: BTreeMap<MemberId, Stored<Arc<Roster>>>,
    pub(super) unsettled: BTreeSet<MemberId>,
    pub(super) ran: BTreeMap<DutyId, BTreeSet<String>>,
    /// Who has, or had, duties without a node, and which duties their member may not have held yet.
    pub(super) bereft: BTreeMap<DutyId, MemberId>,
    pub(super) unsure: BTreeMap<MemberId, BTreeSet<DutyId>>,
    /// To whom duties were on their way when a write failed.
    pub(super) on_the_way: BTreeMap<DutyId, MemberId>,
    pub(super) avoided: Arc<Avoided>,
    pub(super) moves: Stored<Moves>,
    pub(super) rollout: Stored<Rollout>,
    pub(super) rollout_unwritten: bool,
    /// What members say about themselves that are gone and didn't leave in order.
    pub(super) lingering: Vec<Arc<Profile>>,
    pub(super) soundings: Soundings,
    pub(super) placement: Placement,
    pub(super) may_rebalance: bool,
    pub(super) max_value: usize,
    pub(super) planted: Planted,
}

/// What became of a [`Planning`]: records to be written.
#[derive(Clone, Debug)]
pub struct Planned {
    pub(super) duties: Arc<KnownDuties>,
    pub(super) lists: BTreeSet<String>,
    /// Whether others were missing, so that the duties are not all that there are.
    pub(super) incomplete: bool,
    pub(super) rosters: Vec<RosterDraft>,
    pub(super) moves: Option<(Moves, Vec<u8>)>,
    pub(super) rollout: Option<(Rollout, Vec<u8>)>,
    pub(super) trying: Vec<Trying>,
    pub(super) obeyed: Vec<(Key, Version, Vec<u8>)>,
    /// Duties that may return to those they avoided before this moment.
    pub(super) forgiven: Vec<(DutyId, Moment)>,
    pub(super) rebalances: bool,
    pub(super) balanced: bool,
    /// How many duties go elsewhere.
    pub moved: usize,
    /// How many run nowhere.
    pub unplaced: usize,
}

/// A roster to be written.
#[derive(Clone, Debug)]
pub(super) struct RosterDraft {
    pub(super) roster: Roster,
    pub(super) bytes: Vec<u8>,
    pub(super) expect: Expect,
    /// What the roster before didn't name.
    pub(super) new: Vec<DutyId>,
}

/// What a roster is to say.
#[derive(Default)]
pub(super) struct WantedRoster {
    duties: BTreeSet<DutyId>,
    preparing: BTreeSet<DutyId>,
    pub(super) successors: BTreeMap<DutyId, MemberId>,
    pub(super) former: BTreeMap<DutyId, MemberId>,
}

impl Planning {
    /// Makes the plan. It depends on nothing but what is in here.
    #[must_use]
    pub fn run(mut self) -> Planned {
        let mut survey = self.survey();
        self.give_up(&mut survey);
        let mut answer = self.ask(&survey);
        let forgiven = self.forgive(&answer.question, &answer.plan);
        if !forgiven.is_empty() {
            survey.avoided = whom(&self.avoided);
            answer = self.ask(&survey);
        }
        let PlanAnswer { question, plan, preparing } = answer;
        let (rosters, cut) = self.rosters(&survey, &question, &plan, &preparing);
        let moves = self.account(&survey, &question, &plan, &cut);
        let mut obeyed = self.obeyed(&survey, &question, &plan);
        obeyed.extend(self.heeded());
        Planned {
            rosters,
            moves: moves.map(|moves| (moves.clone(), moves.bytes())),
            trying: self.trying(&survey),
            rollout: self.remember(survey.rollout),
            obeyed,
            forgiven,
            rebalances: plan.moves.iter().any(|step| step.why.is_rebalancing()),
            balanced: plan.balanced,
            moved: plan.moves.len(),
            unplaced: plan.unplaced.len() + cut.len(),
            incomplete: self.lists_missing,
            lists: self.lists.into_keys().collect(),
            duties: survey.duties,
        }
    }

    /// All that the plan depends on. The duties are put together only where that was not done before.
    fn survey(&self) -> Survey {
        let basis = self.basis();
        let duties =
            if self.up_to_date { Arc::clone(&self.known) } else { Arc::new(basis.duties()) };
        let rebalance =
            if self.may_rebalance { self.placement.limits(duties.len()) } else { Rebalance::Not };
        let policy = planner::Policy {
            strategy: self.placement.strategy.clone(),
            families: self.placement.families.clone(),
            rebalance,
        };
        basis.survey_of(duties, policy)
    }

    /// What the plan goes by: records, as the leader keeps them, and what it remembers beside them.
    fn basis(&self) -> PlanBasis<'_> {
        PlanBasis {
            members: self.members.iter().map(|(id, it)| (id, it.as_ref())).collect(),
            leader: Some(&self.own),
            term: self.term,
            rosters: self
                .rosters
                .iter()
                .filter_map(|(id, stored)| Some((id, stored.content.as_deref()?)))
                .collect(),
            loads: self.loads.clone(),
            prepared: self.prepared.clone(),
            lists: self.lists.values().map(Arc::as_ref).collect(),
            lists_missing: self.lists_missing,
            intents: self.intents.iter().map(|(_, _, intent)| intent).collect(),
            avoided: whom(&self.avoided),
            rollout: self.rollout.content.as_ref(),
            memory: LeaderMemory {
                known: Some(self.known.as_ref()),
                ending: self.ending.clone(),
                on_the_way: self.on_the_way.clone(),
                ran: self.ran.clone(),
                lingering: self.lingering.iter().map(AsRef::as_ref).collect(),
                passed: self.soundings.passed.clone(),
            },
            planted: self.planted,
        }
    }

    /// The answer, and what a planted mistake makes of it.
    fn ask(&self, survey: &Survey) -> PlanAnswer {
        let room = survey.room(self.max_value);
        survey.answer(room, &|situation| {
            if !self.planted.is(Mutant::CapabilityIgnored) {
                return planner::plan(situation);
            }
            let mut situation = situation.clone();
            for duty in &mut situation.duties {
                duty.version = None;
            }
            let families: Vec<_> =
                situation.nodes.iter().flat_map(|node| node.families.clone()).collect();
            for node in &mut situation.nodes {
                node.families.extend(families.iter().cloned());
            }
            planner::plan(&situation)
        })
    }

    /// The record about versions, if there is something new in it, or if this leader hasn't written
    /// it yet: only a write shows that what it read wasn't stale.
    fn remember(&self, mut rollout: Rollout) -> Option<(Rollout, Vec<u8>)> {
        let unchanged = match &self.rollout.content {
            Some(before) => {
                *before == rollout && before.term == self.term && self.rollout.version.is_some()
            }
            None => rollout.families.is_empty() && self.rollout.version.is_none(),
        };
        if unchanged && !self.rollout_unwritten {
            return None;
        }
        rollout.term = self.term;
        let bytes = rollout.bytes();
        Some((rollout, bytes))
    }

    /// A duty that had to be placed on a node it avoids has avoided too many: it may return to
    /// all but the last.
    fn forgive(&mut self, question: &Question, plan: &Plan) -> Vec<(DutyId, Moment)> {
        if self.avoided.is_empty() {
            return Vec::new();
        }
        let mut forgiven = Vec::new();
        for (duty, target) in question.duties.iter().zip(&plan.target) {
            let member = target.and_then(|target| question.members.get(target));
            let (Some(member), Some(avoided)) = (member, self.avoided.get(duty)) else {
                continue;
            };
            if avoided.len() > 1
                && avoided.contains_key(member)
                && let Some(last) = avoided.values().max().copied()
            {
                forgiven.push((duty.clone(), last));
            }
        }
        super::forgive(&mut self.avoided, &forgiven);
        forgiven
    }

    /// The rosters that changed, or still have the term of a former leader.
    fn rosters(
        &self,
        survey: &Survey,
        question: &Question,
        plan: &Plan,
        preparing: &BTreeMap<DutyId, MemberId>,
    ) -> (Vec<RosterDraft>, Vec<DutyId>) {
        let mut wanted: BTreeMap<&MemberId, WantedRoster> =
            self.members.keys().map(|id| (id, WantedRoster::default())).collect();
        let mut placed = vec![Vec::new(); question.members.len()];
        for (duty, target) in question.duties.iter().zip(&plan.target) {
            if let Some(placed) = target.and_then(|target| placed.get_mut(target)) {
                placed.push(duty.clone());
            }
        }
        for (id, placed) in question.members.iter().zip(placed) {
            if let Some(wanted) = wanted.get_mut(id) {
                wanted.duties = placed.into_iter().collect();
            }
        }
        for (duty, id) in preparing {
            if let Some(wanted) = wanted.get_mut(id) {
                wanted.preparing.insert(duty.clone());
            }
        }
        self.name_successors(survey, question, plan, &mut wanted);
        let mut cut = Vec::new();
        let draft = |(id, wanted)| self.draft(&survey.duties, id, wanted, &mut cut);
        (wanted.into_iter().filter_map(draft).collect(), cut)
    }

    fn draft(
        &self,
        known: &KnownDuties,
        id: &MemberId,
        wanted: WantedRoster,
        cut: &mut Vec<DutyId>,
    ) -> Option<RosterDraft> {
        let WantedRoster { mut duties, preparing, successors, mut former } = wanted;
        let stored = self.rosters.get(id);
        let before = stored.and_then(|stored| stored.content.as_ref());
        let keeps = self.lists_missing && !self.planted.is(Mutant::MissingListMeansNone);
        if keeps && let Some(before) = before {
            // Of what a missing list described nothing is known: it stays where it is.
            let unknown = |duty: &&DutyId| !known.contains_key(*duty);
            duties.extend(before.duties.iter().filter(unknown).cloned());
        }
        let earlier = before.into_iter().flat_map(|before| &before.former);
        let lasts = |(duty, _): &(&DutyId, &MemberId)| {
            duties.contains(*duty) && self.is_unsure(id, duty) && !former.contains_key(*duty)
        };
        let lasting: Vec<_> = earlier.filter(lasts).map(|(a, b)| (a.clone(), b.clone())).collect();
        former.extend(lasting);
        self.name_former(id, before, &duties, &mut former);
        let serves = self.members.get(id).is_some_and(|member| !member.families.is_empty())
            && !self.planted.is(Mutant::NoEmptyRosters);
        if stored.is_none() && duties.is_empty() && !serves {
            // Who serves gets an empty one: then no roster of an earlier attempt, or of an
            // earlier leader, can still come to be there.
            return None;
        }
        let empty = Roster::empty(id.clone(), self.term);
        let mut roster = Roster { duties, preparing, successors, former, ..empty };
        cut.extend(roster.cut(self.max_value));
        let duties = &roster.duties;
        let same = |it: &Arc<Roster>| it.duties == *duties && it.preparing == roster.preparing;
        let same = before.is_some_and(same);
        let stamped = before.is_some_and(|before| before.term == self.term);
        let settled = !self.unsettled.contains(id);
        if same && stamped && settled && !self.planted.is(Mutant::RewritesSteadyRosters) {
            return None;
        }
        let is_new = |duty: &&DutyId| before.is_none_or(|before| !before.duties.contains(*duty));
        let new = duties.iter().filter(is_new).cloned().collect();
        let expect = stored.map_or(Expect::Absent, Stored::expect);
        if same && let Some(before) = before {
            roster.successors.clone_from(&before.successors);
        }
        roster.revision = before.map_or(0, |before| before.revision) + u64::from(!same);
        Some(RosterDraft { bytes: roster.bytes(), roster, expect, new })
    }

    /// What was moved and what could not be placed, for people and for the next leader.
    fn account(
        &self,
        survey: &Survey,
        question: &Question,
        plan: &Plan,
        cut: &[DutyId],
    ) -> Option<Moves> {
        let before = self.moves.content.clone().unwrap_or_else(|| Moves::none(self.term));
        let mut moves = before.clone();
        let duty = |at: usize| question.duties.get(at).cloned();
        let name = |at| survey.node_at(question, at).map(ToOwned::to_owned);
        // Most plans place everything, and what a roster has room for takes a look at each duty.
        let room = (!plan.unplaced.is_empty()).then(|| survey.room(self.max_value)).flatten();
        let limit = room.map_or_else(String::new, |room| {
            let bytes = self.max_value;
            format!(
                "; a value of {bytes} bytes, as this store takes, names {room} duties of a node"
            )
        });
        let unplaced = plan.unplaced.iter().filter_map(|unplaced| {
            Some((duty(unplaced.duty)?, format!("{}{limit}", unplaced.reason)))
        });
        let cut_why =
            format!("its node's roster would exceed the store's {} bytes", self.max_value);
        let cut = cut.iter().map(|duty| (duty.clone(), cut_why.clone()));
        moves.unplaced_total = (plan.unplaced.len() + cut.len()) as u64;
        moves.unplaced = unplaced.chain(cut).take(MAX_UNPLACED).collect();
        moves.avoided = self
            .avoided
            .iter()
            .map(|(duty, avoided)| (duty.clone(), avoided.keys().cloned().collect()))
            .collect();
        moves.strategy = self.placement.strategy.to_string().chars().take(200).collect();
        moves.own = self.placement.families.keys().cloned().collect();
        let at_ms = self.at_ms;
        let asked = survey.asked_for(question, plan).into_iter().map(|(duty, from, to)| {
            let (from, to) = (from.map(ToOwned::to_owned), Some(to.to_owned()));
            Moved { duty: duty.clone(), from, to, why: ASKED.to_owned(), at_ms }
        });
        moves.remember(asked);
        let lineages = if plan.moves.is_empty() { BTreeMap::new() } else { survey.lineages() };
        moves.remember(plan.moves.iter().filter_map(|step| {
            let (from, to) = (name(step.from), name(step.to));
            let duty = duty(step.duty)?;
            let member = step.from.and_then(|at| question.members.get(at));
            let why = member.and_then(|it| back(survey, it, &duty, lineages.get(duty.family())));
            let why = why.unwrap_or_else(|| step.why.to_string());
            Some(Moved { duty, from, to, why, at_ms })
        }));
        if moves == before {
            return None;
        }
        moves.cut(self.max_value);
        if moves == before {
            return None;
        }
        moves.term = self.term;
        Some(moves)
    }

    /// A move that an operator asked for is done once it was planned, or can't be.
    fn obeyed(
        &self,
        survey: &Survey,
        question: &Question,
        plan: &Plan,
    ) -> Vec<(Key, Version, Vec<u8>)> {
        let target = |duty: &str| {
            let at = question.duties.iter().position(|known| known.as_str() == duty)?;
            survey.node_at(question, *plan.target.get(at)?)
        };
        let mut obeyed = Vec::new();
        for (key, version, intent) in &self.intents {
            let Ask::Move { duty, node } = &intent.ask else { continue };
            let done = target(duty) == Some(node.as_str());
            let mut intent = intent.clone();
            intent.state = if done { IntentState::Done } else { IntentState::Obsolete };
            obeyed.push((key.clone(), version.clone(), intent.bytes()));
        }
        obeyed
    }
}

/// Why a duty goes back from the version that it runs as on a member, if it does.
fn back(
    survey: &Survey,
    member: &MemberId,
    duty: &DutyId,
    lineage: Option<&Lineage>,
) -> Option<String> {
    let specs = survey.duties.get(duty).filter(|specs| specs.len() > 1)?;
    let version = survey.runs_as(member, duty, specs, lineage)?.version.clone()?;
    let known = survey.rollout.families.get(duty.family())?;
    let why = known.against(duty.name(), &version)?;
    Some(format!("back from version {version}: {why}"))
}

fn whom(avoided: &Avoided) -> BTreeMap<DutyId, BTreeSet<MemberId>> {
    avoided
        .iter()
        .map(|(duty, avoided)| (duty.clone(), avoided.keys().cloned().collect()))
        .collect()
}

#[cfg(test)]
mod tests;
