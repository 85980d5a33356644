//! Which version of itself each duty runs, while nodes of several are there.
//!
//! What runs keeps running as it is. A duty goes to another version, mostly a newer one, when a
//! node of that version has room for it and is prepared. What fits nowhere as it should takes any
//! version rather than none.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use incumbent_planner::{Plan, PlanMove, Reason, Rebalance, Situation, Why};

use super::{Asks, Descriptions, Question, Survey, described};
use crate::duty::DutyId;
use crate::records::DutySpec;
use crate::survey::versions::{Trial, is_able, rank, runs_as};
use crate::version::Lineage;
use incumbent_core::mutant::Mutant;
use incumbent_core::names::MemberId;
use incumbent_core::records::{FamilyProfile, Profile};

/// A plan, with the question that it answers.
#[derive(Clone, Debug)]
pub struct PlanAnswer {
    /// What was asked.
    pub question: Question,
    /// Where every duty runs.
    pub plan: Plan,
    /// Who is to prepare for a duty that runs on another version meanwhile.
    pub preparing: BTreeMap<DutyId, MemberId>,
}

impl Survey {
    /// Asks the planner for a plan in which every duty has the version that it should run, and no roster
    /// names more duties than there is [room](Self::room) for.
    #[must_use]
    pub fn answer(&self, room: Option<u32>, plan: &dyn Fn(&Situation) -> Plan) -> PlanAnswer {
        let lineages = self.lineages();
        let trial = |(family, lineage): (&&'_ str, &Lineage)| {
            Some(((*family).to_owned(), self.trial(family, lineage)?))
        };
        let trials = lineages.iter().filter_map(trial).collect();
        let asks = Asks::sort(&self.asks);
        let held = asks.held.iter().copied();
        let held = held.map(|it| (it, self.newest_run(it, lineages.get(it)))).collect();
        Deploy { survey: self, asks, lineages, trials, held, room }.answer(plan)
    }

    fn newest_run(&self, family: &str, lineage: Option<&Lineage>) -> Option<usize> {
        let homes = self.homes.iter().filter(|(id, _)| id.family() == family);
        let runs = |(id, home): (&DutyId, &MemberId)| {
            self.runs_as(home, id, self.duties.get(id)?, lineage).map(|spec| rank(lineage, spec))
        };
        homes.filter_map(runs).max()
    }
}

/// What decides about versions.
struct Deploy<'a> {
    survey: &'a Survey,
    asks: Asks<'a>,
    lineages: BTreeMap<&'a str, Lineage>,
    trials: BTreeMap<String, Trial>,
    /// The newest that any duty of a held family runs.
    held: BTreeMap<&'a str, Option<usize>>,
    /// How many duties a roster can name, if it is fewer than there are.
    room: Option<u32>,
}

/// What a duty may run as.
struct Choice<'a> {
    /// Its descriptions, the best first.
    order: Vec<&'a DutySpec>,
    /// The one that is asked for.
    at: usize,
    /// What it should run as, once a node is prepared for that.
    next: Option<&'a DutySpec>,
    /// That is so only if it must leave its node, and no other has room for it as it is.
    evades: bool,
}

/// What was found out about nodes: by family, the versions that describe a duty, and the one that
/// it is to run as.
type Others<'a> = BTreeMap<(String, Vec<&'a Option<String>>, &'a Option<String>), Vec<usize>>;

impl<'a> Deploy<'a> {
    fn answer(&self, plan: &dyn Fn(&Situation) -> Plan) -> PlanAnswer {
        let duties = self.survey.duties.iter();
        let mut choices: Vec<Choice<'_>> = duties.map(|(id, it)| self.choose(id, it)).collect();
        let ask = |choices: &[Choice<'_>]| {
            let chosen = choices.iter().map(|choice| choice.order.get(choice.at).copied());
            let mut question = self.survey.question(&self.asks, chosen);
            for node in &mut question.situation.nodes {
                node.max_duties = [node.max_duties, self.room].into_iter().flatten().min();
            }
            let mut others = Others::default();
            for ((id, specs), (duty, choice)) in
                self.survey.duties.iter().zip(question.situation.duties.iter_mut().zip(choices))
            {
                if let Some(spec) = choice.order.get(choice.at).filter(|_| specs.len() > 1) {
                    duty.avoid.extend(self.others(&mut others, id, specs, spec));
                }
            }
            let plan = plan(&question.situation);
            PlanAnswer { question, plan, preparing: BTreeMap::new() }
        };
        let mut answer = ask(&choices);
        // This ends: each duty has as many versions as it has, and takes each once.
        while fall_back(&mut choices, &answer.plan) {
            answer = ask(&choices);
        }
        self.deploy(&mut answer, &choices, plan);
        self.name_origins(&mut answer);
        answer
    }

    /// What an operator asked to move is imagined to be there already. If it goes elsewhere after all, it
    /// comes from where it is: there its lease may be held, and nowhere else.
    fn name_origins(&self, answer: &mut PlanAnswer) {
        if self.asks.moves.is_empty() || self.survey.planted.is(Mutant::AskedIsThere) {
            return;
        }
        let Question { members, duties, .. } = &answer.question;
        answer.plan.moves.retain_mut(|step| {
            let asked = |id: &&DutyId| self.asks.moves.contains_key(id.as_str());
            let Some(id) = duties.get(step.duty).filter(asked) else { return true };
            let home = self.survey.homes.get(id);
            step.from = home.and_then(|home| members.iter().position(|member| member == home));
            step.from != step.to
        });
    }

    fn choose(&self, id: &DutyId, specs: &'a Descriptions) -> Choice<'a> {
        let mut order: Vec<&DutySpec> = specs.values().map(Box::as_ref).collect();
        if order.len() == 1 {
            return Choice { order, at: 0, next: None, evades: false };
        }
        let survey = self.survey;
        let (family, lineage) = (id.family(), self.lineages.get(id.family()));
        let rank = |spec: &DutySpec| rank(lineage, spec);
        let against = |spec: &DutySpec| survey.is_against(id, spec);
        let asked = self.asks.moves.get(id.as_str()).and_then(|node| survey.named(node));
        let home = asked.or_else(|| survey.homes.get(id));
        let current = home.and_then(|home| survey.runs_as(home, id, specs, lineage));
        // A version that is held back, or on trial, isn't for those that merely lost their node.
        let held = self.asks.held.contains(family);
        if survey.planted.is(Mutant::NewestVersionOnly) {
            order.sort_by_key(|spec| Reverse(rank(spec)));
            order.truncate(1);
            return Choice { order, at: 0, next: None, evades: false };
        }
        let newest = order.iter().map(|spec| rank(spec)).max();
        let most = self.most(id, specs);
        let tried = |spec: &DutySpec| {
            let trial = held || self.trials.contains_key(family);
            let is_tried = trial && Some(rank(spec)) == newest;
            current.is_none() && (is_tried || most.is_some_and(|most| rank(spec) > most))
        };
        order.sort_by_key(|spec| (against(spec), tried(spec), Reverse(rank(spec))));
        let (Some(home), Some(current), Some(best)) = (home, current, order.first().copied())
        else {
            return Choice { order, at: 0, next: None, evades: false };
        };
        let stays = against(best) || (rank(best) == rank(current) && !against(current));
        if !stays && against(current) && survey.is_down(id, home, current) {
            return Choice { order, at: 0, next: None, evades: false };
        }
        order.sort_by_key(|spec| spec.version != current.version);
        let held = held && rank(best) > rank(current);
        let mut next = (!stays && !held).then_some(best);
        let evades = next.is_none() && self.is_drained(home);
        if evades {
            // Its node is to be emptied: an older version will do.
            let older = |spec: &&&DutySpec| rank(spec) < rank(current) && !against(spec);
            next = order.iter().filter(older).max_by_key(|spec| rank(spec)).copied();
        }
        Choice { order, at: 0, next, evades }
    }

    /// The newest that a duty of a held family takes without need, when it lost its node: what it
    /// ran, or if that isn't known, what others of its family run.
    fn most(&self, id: &DutyId, specs: &Descriptions) -> Option<usize> {
        let (lineage, others) = (self.lineages.get(id.family()), self.held.get(id.family())?);
        let ran = self.survey.ran.get(id).and_then(|versions| {
            let able = FamilyProfile { versions: versions.clone(), ..FamilyProfile::default() };
            runs_as(&able, specs, lineage)
        });
        ran.map(|ran| rank(lineage, ran)).or(*others)
    }

    fn is_drained(&self, member: &MemberId) -> bool {
        let profile = self.survey.members.get(member);
        profile.is_some_and(|profile| self.asks.drained.contains(profile.node.as_str()))
    }

    /// Finds room for duties that should run as another version, without moving any other, and
    /// has them change over where a node is prepared.
    fn deploy(
        &self,
        answer: &mut PlanAnswer,
        choices: &[Choice<'_>],
        plan: &dyn Fn(&Situation) -> Plan,
    ) {
        let runs = |(at, choice): &(usize, &Choice<'_>)| {
            let running = answer.question.situation.duties.get(*at).and_then(|duty| duty.running);
            let target = answer.plan.target.get(*at).copied().flatten();
            running.is_some() && target.is_some() && (!choice.evades || target == running)
        };
        let candidates: BTreeMap<usize, &DutySpec> = choices
            .iter()
            .enumerate()
            .filter(runs)
            .filter_map(|(at, choice)| Some((at, choice.next?)))
            .collect();
        if candidates.is_empty() || self.survey.incomplete {
            return;
        }
        let imagined = plan(&self.imagine(answer, &candidates));
        let disturbed = disturbed(&answer.plan, &imagined, &candidates);
        let mut room = self.room_on_trial();
        let mut handed = BTreeMap::new();
        for (at, spec) in candidates {
            let Some(to) = imagined.target.get(at).copied().flatten() else { continue };
            if disturbed.get(to).copied().unwrap_or(true) {
                continue;
            }
            let (Some(id), Some(member)) =
                (answer.question.duties.get(at).cloned(), answer.question.members.get(to).cloned())
            else {
                continue;
            };
            let preparing = self.survey.preparing.get(&id);
            let there = preparing.filter(|(who, _)| *who == member);
            if preparing.is_none() && !may_try(&mut room, id.family(), spec) {
                continue;
            }
            if self.is_prepared(&member, &id, there) {
                handed.insert(at, to);
            } else {
                answer.preparing.insert(id, member);
            }
        }
        hand_over(answer, &handed);
    }

    /// The situation in which every candidate runs where it should, and all others where they do.
    fn imagine(&self, answer: &PlanAnswer, candidates: &BTreeMap<usize, &DutySpec>) -> Situation {
        let mut situation = answer.question.situation.clone();
        answer.plan.apply(&mut situation);
        situation.policy.rebalance = Rebalance::Not;
        let mut others = Others::default();
        let places: BTreeMap<&MemberId, usize> =
            answer.question.members.iter().enumerate().map(|(at, id)| (id, at)).collect();
        for (at, duty) in situation.duties.iter_mut().enumerate() {
            let Some(spec) = candidates.get(&at) else {
                // What fits nowhere now must not take the room that others would leave.
                duty.paused |= duty.running.is_none();
                continue;
            };
            let Some(id) = answer.question.duties.get(at) else { continue };
            let preparing = self.survey.preparing.get(id);
            let running = preparing.and_then(|(member, _)| places.get(member).copied());
            let pin = self.asks.pins.get(id.as_str()).cloned();
            let paused = duty.paused;
            *duty = described(id, spec);
            let avoided = self.survey.avoided.get(id).into_iter().flatten();
            duty.avoid = avoided.filter_map(|member| places.get(member).copied()).collect();
            if let Some(specs) = self.survey.duties.get(id) {
                duty.avoid.extend(self.others(&mut others, id, specs, spec));
            }
            duty.paused = paused;
            duty.running = running;
            duty.pin = pin.or_else(|| duty.pin.take());
        }
        situation
    }

    /// The nodes that would run a duty as another version than the one described, although they
    /// may run that one: a duty that needs none runs on any.
    fn others<'o>(
        &self,
        others: &'o mut Others<'a>,
        id: &DutyId,
        specs: &'a Descriptions,
        spec: &'a DutySpec,
    ) -> impl Iterator<Item = usize> + 'o {
        let key = (id.family().to_owned(), specs.keys().collect(), &spec.version);
        let lineage = self.lineages.get(id.family());
        let other = |(at, profile): (usize, &Profile)| {
            let family = profile.families.get(id.family()).filter(|it| is_able(it, spec))?;
            let runs = runs_as(family, specs, lineage)?;
            (runs.version != spec.version).then_some(at)
        };
        let found = others.entry(key).or_insert_with(|| {
            self.survey.members.values().enumerate().filter_map(other).collect()
        });
        found.iter().copied()
    }

    fn is_prepared(
        &self,
        member: &MemberId,
        id: &DutyId,
        there: Option<&(MemberId, bool)>,
    ) -> bool {
        if self.survey.planted.is(Mutant::OldStoppedBeforePrepared) {
            return true;
        }
        let profile = self.survey.members.get(member);
        let family = profile.and_then(|profile| profile.families.get(id.family()));
        family.is_some_and(|family| !family.prepares)
            || there.is_some_and(|(_, prepared)| *prepared)
    }

    /// How many more duties may go to a version that is on trial.
    fn room_on_trial(&self) -> BTreeMap<&str, (&str, usize)> {
        let room = |(family, trial): (&'_ String, &'_ Trial)| {
            let preparing = self.survey.preparing.keys().filter(|id| id.family() == family);
            let used = trial.there.len() + trial.failed + preparing.count();
            trial.limit.saturating_sub(used)
        };
        let trials = self.trials.iter();
        trials.map(|it| (it.0.as_str(), (it.1.version.as_str(), room(it)))).collect()
    }
}

/// Has what fits nowhere try its next version; says whether there was one.
fn fall_back(choices: &mut [Choice<'_>], plan: &Plan) -> bool {
    let mut found = false;
    for unplaced in &plan.unplaced {
        let Reason::RuledOut(_) = unplaced.reason else { continue };
        if let Some(choice) = choices.get_mut(unplaced.duty)
            && choice.at + 1 < choice.order.len()
        {
            choice.at += 1;
            found = true;
        }
    }
    found
}

/// Which nodes would have room only because others left them, which they don't.
fn disturbed(plan: &Plan, imagined: &Plan, candidates: &BTreeMap<usize, &DutySpec>) -> Vec<bool> {
    let nodes = plan.target.iter().chain(&imagined.target).flatten().max().map_or(0, |it| it + 1);
    let mut disturbed = vec![false; nodes];
    let both = plan.target.iter().zip(&imagined.target).enumerate();
    for (at, (before, after)) in both {
        if before != after
            && !candidates.contains_key(&at)
            && let Some(node) = before.and_then(|node| disturbed.get_mut(node))
        {
            *node = true;
        }
    }
    disturbed
}

/// Whether one more duty may go to a version, which is counted then.
fn may_try(room: &mut BTreeMap<&str, (&str, usize)>, family: &str, spec: &DutySpec) -> bool {
    match room.get_mut(family) {
        Some((version, left)) if spec.version.as_deref() == Some(*version) => {
            let may = *left > 0;
            *left = left.saturating_sub(1);
            may
        }
        Some(_) | None => true,
    }
}

/// Duties go to nodes that are prepared for them, whatever else was planned for them.
fn hand_over(answer: &mut PlanAnswer, handed: &BTreeMap<usize, usize>) {
    answer.plan.moves.retain(|step| !handed.contains_key(&step.duty));
    for (duty, to) in handed {
        let from = answer.question.situation.duties.get(*duty).and_then(|duty| duty.running);
        if let Some(target) = answer.plan.target.get_mut(*duty) {
            *target = Some(*to);
        }
        answer.plan.moves.push(PlanMove { duty: *duty, from, to: Some(*to), why: Why::Deployed });
    }
}

#[cfg(test)]
#[path = "deploy_tests.rs"]
mod tests;
