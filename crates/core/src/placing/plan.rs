//! One round of planning: time-outs, the plan, and the rosters that follow from it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use incumbent_planner::{self as planner, Plan, Rebalance};

use super::reading::AGAIN;
use super::{Placement, Placing, Stage, Step, Subject};
use crate::duty::DutyId;
use crate::keys;
use crate::leader::{Leader, Wanted};
use crate::mutant::{Mutant, Planted};
use crate::names::MemberId;
use crate::records::{
    Content, Drain, IntentState, MAX_UNPLACED, MemberState, Moved, Moves, Profile, Roster, Wish,
};
use crate::settings::Timing;
use crate::store::Expect;
use crate::survey::{self, Question, Survey};
use crate::time::Moment;

/// Why a duty moves that an operator asked for.
const ASKED: &str = "an operator asked for it";

/// What a round of planning is given beside records.
pub(crate) struct Round<'a> {
    pub(crate) now: Moment,
    pub(crate) wall_ms: u64,
    pub(crate) leader: &'a Leader,
    pub(crate) own: &'a MemberId,
    pub(crate) placement: &'a Placement,
    pub(crate) timing: &'a Timing,
    pub(crate) planted: Planted,
}

type Writes = Vec<(Subject, Wanted)>;

impl Placing {
    pub(crate) fn step(&mut self, round: &Round<'_>) -> Option<Step> {
        match self.stage {
            Stage::Asleep => {
                let serves = |profile: &Profile| !profile.families.is_empty();
                let late = round.now >= self.next || self.next == Moment::NEVER;
                let wake = late && round.leader.living().any(|(_, _, profile)| serves(profile));
                wake.then(|| self.load())
            }
            Stage::Reading(_) | Stage::Superseded => None,
            Stage::Idle if self.is_writing() => None,
            Stage::Idle => self.review(round),
        }
    }

    fn review(&mut self, round: &Round<'_>) -> Option<Step> {
        let (now, leader) = (round.now, round.leader);
        let due = now >= self.next;
        if self.generation == leader.generation() && !self.dirty && !due {
            return None;
        }
        if let Some(reads) = self.reads(now, leader) {
            return Some(reads);
        }
        if self.moves_doubtful || !self.doubtful.is_empty() {
            self.next = now + AGAIN / 2;
            return None;
        }
        self.generation = leader.generation();
        self.dirty = false;
        let writes = self.place(round);
        (!writes.is_empty()).then_some(Step::Write(writes))
    }

    fn place(&mut self, round: &Round<'_>) -> Writes {
        let members: BTreeMap<MemberId, Profile> =
            round.leader.living().map(|(id, _, profile)| (id.clone(), profile.clone())).collect();
        self.follow_members(round, &members);
        self.follow_lists(round, &members);
        let mut writes = self.evict(round, &members);
        writes.extend(self.forget_lists(round));
        self.give_up_waiting(round);
        self.expire_avoided(round.now);

        let mut survey = self.survey(round, members);
        let mut question = ask(&survey, round.planted);
        let mut plan = planner::plan(&question.situation);
        if self.forgive(&question, &plan) {
            survey.avoided = self.whom_avoided();
            question = ask(&survey, round.planted);
            plan = planner::plan(&question.situation);
        }
        if round.planted.is(Mutant::RecoveryWaits) && !self.may_rebalance(round) {
            self.next = self.next_round(round, false);
            return writes;
        }
        if plan.moves.iter().any(|step| step.why.is_rebalancing()) {
            self.rebalanced = round.now;
        }
        let rosters = self.rosters_for(round, &survey, &question, &plan);
        writes.extend(rosters);
        writes.extend(self.account(round, &survey, &question, &plan));
        writes.extend(self.obeyed(round, &survey, &question, &plan));
        self.holders.clear();
        self.next = self.next_round(round, plan.balanced);
        writes
    }

    /// What belonged to members that are gone is forgotten.
    fn follow_members(&mut self, round: &Round<'_>, members: &BTreeMap<MemberId, Profile>) {
        let living: BTreeSet<MemberId> = members.keys().cloned().collect();
        if living != self.members {
            self.changed = round.now;
            self.members = living;
        }
        // Some may be alive although their profile was not read yet.
        let alive = |id: &MemberId| round.leader.is_alive(id);
        self.rosters.retain(|id, _| alive(id));
        self.reports.retain(|id, _| alive(id));
        self.pending.retain(|(id, _), _| alive(id));
        self.draining.retain(|(id, _), _| alive(id));
        self.doubtful.retain(alive);
        self.unsettled.retain(alive);
        for avoided in self.avoided.values_mut() {
            avoided.retain(|id, _| alive(id));
        }
    }

    /// The duties that living members know. A list that is missing removes nothing.
    fn follow_lists(&mut self, round: &Round<'_>, members: &BTreeMap<MemberId, Profile>) {
        let lists = members.values().flat_map(|profile| profile.families.values());
        let named: BTreeSet<String> =
            lists.flat_map(|family| family.catalogs.iter().cloned()).collect();
        for hash in &named {
            self.named.insert(hash.clone(), round.now);
        }
        self.absent.retain(|hash| named.contains(hash));
        let there: BTreeSet<String> =
            named.iter().filter(|hash| self.catalogs.contains_key(*hash)).cloned().collect();
        self.lists_missing = there.len() < named.len();
        if there == self.duties_of {
            return;
        }
        let catalogs = there.iter().filter_map(|hash| self.catalogs.get(hash));
        let mut duties = survey::known(catalogs);
        if there.len() < named.len() && !round.planted.is(Mutant::MissingListMeansNone) {
            // What was known stays known until all lists are there.
            for (duty, spec) in std::mem::take(&mut self.duties) {
                duties.entry(duty).or_insert(spec);
            }
        }
        self.changed = round.now;
        self.duties = duties;
        self.duties_of = there;
    }

    /// Lists that no living member names are deleted after a while. Should one be named again in
    /// that very moment, its member is told by the view and writes it again.
    fn forget_lists(&mut self, round: &Round<'_>) -> Writes {
        for profile in round.leader.profiles() {
            for hash in profile.families.values().flat_map(|family| &family.catalogs) {
                self.named.entry(hash.clone()).or_insert(round.now);
            }
        }
        let over = |at: &Moment| round.now.since(*at) >= round.timing.visible;
        let gone: Vec<String> =
            self.named.iter().filter(|(_, at)| over(at)).map(|(hash, _)| hash.clone()).collect();
        for hash in &gone {
            self.named.remove(hash);
            self.catalogs.remove(hash);
        }
        gone.iter().map(|hash| (Subject::Aside, Wanted::Delete(keys::catalog(hash)))).collect()
    }

    /// Members whose family asks for it are evicted when a duty doesn't stop in its time.
    fn evict(&mut self, round: &Round<'_>, members: &BTreeMap<MemberId, Profile>) -> Writes {
        let mut late = BTreeSet::new();
        for ((id, duty), since) in &self.draining {
            let family = members.get(id).and_then(|profile| profile.families.get(duty.family()));
            if let Some(family) = family
                && family.drain == Drain::Evict
                && round.now.since(*since) >= Duration::from_millis(family.drain_ms)
            {
                late.insert(id.clone());
            }
        }
        let evict = |id: &MemberId| {
            let (record, version) = round.leader.member(id)?;
            let closed = record.closed(MemberState::Evicted).bytes();
            let put = Wanted::Put(keys::member(id), Expect::Version(version.clone()), closed);
            Some((Subject::Aside, put))
        };
        late.iter().filter_map(evict).collect()
    }

    /// A duty that was not started in its time is placed elsewhere.
    fn give_up_waiting(&mut self, round: &Round<'_>) {
        let now = round.now;
        let mut late = Vec::new();
        let mut held_by: BTreeMap<&DutyId, Vec<&MemberId>> = BTreeMap::new();
        for (member, duty) in self.draining.keys() {
            held_by.entry(duty).or_default().push(member);
        }
        for ((id, duty), (since, _)) in &mut self.pending {
            let holders = held_by.get(duty);
            if holders.is_some_and(|holders| holders.iter().any(|member| *member != id)) {
                // Another has not let go of it yet: the time to start begins after that.
                *since = now;
            }
            if now >= *since + patience(round, id, duty) {
                late.push((duty.clone(), id.clone()));
            }
        }
        for (duty, id) in late {
            self.pending.remove(&(id.clone(), duty.clone()));
            if !round.planted.is(Mutant::AcknowledgeTimeoutIgnored) {
                self.avoid(&duty, &id, now);
            }
        }
    }

    fn expire_avoided(&mut self, now: Moment) {
        for avoided in self.avoided.values_mut() {
            avoided.retain(|_, until| now < *until);
        }
        self.avoided.retain(|_, avoided| !avoided.is_empty());
    }

    /// A duty that had to be placed on a node it avoids has avoided too many: it may return to
    /// all but the last. Says whether there was one.
    fn forgive(&mut self, question: &Question, plan: &Plan) -> bool {
        let mut forgave = false;
        for (duty, target) in question.duties.iter().zip(&plan.target) {
            let member = target.and_then(|target| question.members.get(target));
            let (Some(member), Some(avoided)) = (member, self.avoided.get_mut(duty)) else {
                continue;
            };
            if avoided.len() > 1 && avoided.contains_key(member) {
                let last = avoided.values().max().copied();
                avoided.retain(|_, until| Some(*until) == last);
                forgave = true;
            }
        }
        forgave
    }

    fn may_rebalance(&self, round: &Round<'_>) -> bool {
        let quiet = round.placement.quiet.unwrap_or(round.timing.ttl);
        // With a list missing, a node seems to carry less than it does.
        !self.lists_missing
            && round.now >= self.changed + quiet
            && round.now >= self.rebalanced + round.timing.beat
    }

    fn survey(&self, round: &Round<'_>, members: BTreeMap<MemberId, Profile>) -> Survey {
        let mut homes = BTreeMap::new();
        for (duty, holder) in &self.holders {
            homes.insert(duty.clone(), holder.clone());
        }
        for (id, roster) in &self.rosters {
            for duty in roster.content.iter().flat_map(|roster| &roster.duties) {
                homes.insert(duty.clone(), id.clone());
            }
        }
        let placement = round.placement;
        let rebalance = if self.may_rebalance(round) {
            placement.limits(self.duties.len())
        } else {
            Rebalance::Not
        };
        let paused = |wish: &Wish| matches!(wish, Wish::Pause { .. });
        let forgets = round.planted.is(Mutant::PausedIsPlaced);
        Survey {
            leader: Some(round.own.clone()),
            loads: self.reports.iter().map(|(id, report)| (id.clone(), report.load)).collect(),
            duties: self.duties.clone(),
            homes,
            avoided: self.whom_avoided(),
            wishes: round
                .leader
                .wishes()
                .map(|(_, _, intent)| intent.wish.clone())
                .filter(|wish| !(forgets && paused(wish)))
                .collect(),
            policy: planner::Policy {
                strategy: placement.strategy.clone(),
                families: placement.families.clone(),
                rebalance,
            },
            members,
        }
    }

    fn whom_avoided(&self) -> BTreeMap<DutyId, BTreeSet<MemberId>> {
        self.avoided
            .iter()
            .map(|(duty, avoided)| (duty.clone(), avoided.keys().cloned().collect()))
            .collect()
    }

    /// The rosters that changed, or still have the term of a former leader.
    fn rosters_for(
        &mut self,
        round: &Round<'_>,
        survey: &Survey,
        question: &Question,
        plan: &Plan,
    ) -> Writes {
        let mut wanted: BTreeMap<&MemberId, BTreeSet<DutyId>> =
            survey.members.keys().map(|id| (id, BTreeSet::new())).collect();
        for (duty, target) in question.duties.iter().zip(&plan.target) {
            let member = target.and_then(|target| question.members.get(target));
            if let Some(duties) = member.and_then(|id| wanted.get_mut(id)) {
                duties.insert(duty.clone());
            }
        }
        let mut writes = Vec::new();
        let keeps = self.lists_missing && !round.planted.is(Mutant::MissingListMeansNone);
        for (id, mut duties) in wanted {
            let stored = self.rosters.get(id);
            let before = stored.and_then(|stored| stored.content.as_ref());
            if keeps && let Some(before) = before {
                // Of what a missing list described nothing is known: it stays where it is.
                let unknown = |duty: &&DutyId| !self.duties.contains_key(*duty);
                duties.extend(before.duties.iter().filter(unknown).cloned());
            }
            let serves = survey.members.get(id).is_some_and(|member| !member.families.is_empty())
                && !round.planted.is(Mutant::NoEmptyRosters);
            if stored.is_none() && duties.is_empty() && !serves {
                // Who serves gets an empty one: then no roster of an earlier attempt, or of an
                // earlier leader, can still come to be there.
                continue;
            }
            let same = before.is_some_and(|before| before.duties == duties);
            let stamped = before.is_some_and(|before| before.term == self.term);
            let settled = !self.unsettled.contains(id);
            if same && stamped && settled && !round.planted.is(Mutant::RewritesSteadyRosters) {
                continue;
            }
            let revision = before.map_or(0, |before| before.revision) + u64::from(!same);
            let empty = BTreeSet::new();
            let former = before.map_or(&empty, |before| &before.duties);
            for duty in duties.difference(former) {
                self.pending.insert((id.clone(), duty.clone()), (round.now, revision));
            }
            self.pending.retain(|(member, duty), _| member != id || duties.contains(duty));
            let expect = stored.map_or(Expect::Absent, crate::leader::Stored::expect);
            let roster = Roster { revision, duties, ..Roster::empty(id.clone(), self.term) };
            let put = Wanted::Put(keys::roster(id), expect, roster.bytes());
            self.writing.insert(id.clone(), roster);
            writes.push((Subject::Roster(id.clone()), put));
        }
        writes
    }

    /// What was moved and what could not be placed, for people and for the next leader.
    fn account(
        &mut self,
        round: &Round<'_>,
        survey: &Survey,
        question: &Question,
        plan: &Plan,
    ) -> Option<(Subject, Wanted)> {
        let mut moves = self.moves.content.clone().unwrap_or_else(|| Moves::none(self.term));
        let before = moves.clone();
        let duty = |at: usize| question.duties.get(at).cloned();
        let name = |at: Option<usize>| {
            let id = question.members.get(at?)?;
            survey.members.get(id).map(|profile| profile.node.clone())
        };
        let unplaced = plan.unplaced.iter().take(MAX_UNPLACED);
        moves.unplaced = unplaced
            .filter_map(|unplaced| Some((duty(unplaced.duty)?, unplaced.reason.to_string())))
            .collect();
        moves.unplaced_total = plan.unplaced.len() as u64;
        moves.avoided = self
            .avoided
            .iter()
            .map(|(duty, avoided)| (duty.clone(), avoided.keys().cloned().collect()))
            .collect();
        moves.strategy = round.placement.strategy.to_string().chars().take(200).collect();
        moves.own = round.placement.families.keys().cloned().collect();
        let at_ms = round.wall_ms;
        let asked = survey.asked_for(question, plan).into_iter().map(|(duty, from, to)| {
            let (from, to) = (from.map(ToOwned::to_owned), Some(to.to_owned()));
            Moved { duty: duty.clone(), from, to, why: ASKED.to_owned(), at_ms }
        });
        moves.remember(asked);
        moves.remember(plan.moves.iter().filter_map(|step| {
            let (from, to) = (name(step.from), name(step.to));
            Some(Moved { duty: duty(step.duty)?, from, to, why: step.why.to_string(), at_ms })
        }));
        if moves == before {
            return None;
        }
        moves.term = self.term;
        let put = Wanted::Put(keys::moves(), self.moves.expect(), moves.bytes());
        self.writing_moves = Some(moves);
        Some((Subject::Moves, put))
    }

    /// A move that an operator asked for is done once it was planned, or can't be.
    fn obeyed(
        &self,
        round: &Round<'_>,
        survey: &Survey,
        question: &Question,
        plan: &Plan,
    ) -> Writes {
        let target = |duty: &str| {
            let at = question.duties.iter().position(|known| known.as_str() == duty)?;
            let id = question.members.get((*plan.target.get(at)?)?)?;
            survey.members.get(id).map(|profile| profile.node.as_str())
        };
        let mut writes = Vec::new();
        for (key, version, intent) in round.leader.wishes() {
            let Wish::Move { duty, node } = &intent.wish else { continue };
            let done = target(duty) == Some(node.as_str());
            let mut intent = intent.clone();
            intent.state = if done { IntentState::Done } else { IntentState::Obsolete };
            let expect = Expect::Version(version.clone());
            writes.push((Subject::Aside, Wanted::Put(key.clone(), expect, intent.bytes())));
        }
        writes
    }

    /// When something is due even without news.
    fn next_round(&self, round: &Round<'_>, balanced: bool) -> Moment {
        let now = round.now;
        if round.planted.is(Mutant::RewritesSteadyRosters) {
            return now + round.timing.beat;
        }
        let overdue = |((id, duty), (since, _)): (&(MemberId, DutyId), &(Moment, u64))| {
            *since + patience(round, id, duty)
        };
        let pending = self.pending.iter().map(overdue).min();
        let draining = self.draining.iter().filter_map(|((id, duty), since)| {
            let family = round.leader.profile(id)?.families.get(duty.family())?;
            let evicts = family.drain == Drain::Evict;
            evicts.then(|| *since + Duration::from_millis(family.drain_ms))
        });
        let avoided = self.avoided.values().flat_map(BTreeMap::values).copied();
        let quiet = round.placement.quiet.unwrap_or(round.timing.ttl);
        let rebalance = (self.changed + quiet).max(self.rebalanced + round.timing.beat);
        let behind = round.leader.living().any(|(id, record, _)| self.is_behind(id, record));
        let again = (behind || self.lists_missing).then_some(now + AGAIN);
        let unnamed = self.named.values().filter(|at| **at < now);
        let unnamed = unnamed.map(|at| *at + round.timing.visible).min();
        [unnamed, pending, draining.min(), avoided.min(), again, (!balanced).then_some(rebalance)]
            .into_iter()
            .flatten()
            .min()
            .map_or(Moment::NEVER, |at| at.max(now + Duration::from_millis(50)))
    }
}

/// How long to wait for word that a duty has started.
fn patience(round: &Round<'_>, id: &MemberId, duty: &DutyId) -> Duration {
    let family = round.leader.profile(id).and_then(|profile| profile.families.get(duty.family()));
    let ms = family.map_or(30_000, |family| family.acknowledge_ms);
    // A report comes once a beat, the next beat tells of it, and the leader lists once a beat.
    Duration::from_millis(ms) + round.timing.beat * 4
}

/// The question, and what a planted mistake makes of it.
fn ask(survey: &Survey, planted: Planted) -> Question {
    let mut question = survey.question();
    if planted.is(Mutant::CapabilityIgnored) {
        for duty in &mut question.situation.duties {
            duty.version = None;
        }
        let families: Vec<_> =
            question.situation.nodes.iter().flat_map(|node| node.families.clone()).collect();
        for node in &mut question.situation.nodes {
            node.families.extend(families.iter().cloned());
        }
    }
    question
}
