//! What every plan must be, said a second time and without the planner's own code.

use std::collections::BTreeMap;

use incumbent_planner::mutant::PlantedInPlan;
use incumbent_planner::{
    LeaderRule, Pin, Plan, PlanDuty, PlanNode, Reason, Rebalance, Rule, Situation, Why, plan_within,
};

use super::history::History;
use super::{Planner, counts, remove};

/// Nothing if it holds, otherwise what is wrong.
pub type Verdict = Result<(), String>;

macro_rules! must {
    ($holds:expr, $($story:tt)*) => {
        if !$holds {
            return Err(format!($($story)*));
        }
    };
}

/// No rule is ever broken.
pub fn keeps_rules(planner: Planner, situation: &Situation) -> Verdict {
    let plan = planner.plan(situation);
    for (duty, at) in placed(situation, &plan) {
        let broken = obstacle(situation, &plan, duty, at);
        must!(broken.is_none(), "duty {duty} is on node {at} against {broken:?}: {plan:?}");
    }
    for (index, duty) in situation.duties.iter().enumerate() {
        must!(!duty.paused || plan.target[index].is_none(), "duty {index} is paused and placed");
    }
    Ok(())
}

/// What the plan says of itself is true.
pub fn is_truthful(planner: Planner, situation: &Situation) -> Verdict {
    let plan = planner.plan(situation);
    must!(plan.target.len() == situation.duties.len(), "targets for other duties");
    let nowhere: Vec<usize> =
        (0..plan.target.len()).filter(|duty| plan.target[*duty].is_none()).collect();
    let mut unplaced: Vec<usize> = plan.unplaced.iter().map(|unplaced| unplaced.duty).collect();
    unplaced.sort_unstable();
    must!(nowhere == unplaced, "{nowhere:?} have no node, {unplaced:?} are said to");
    for unplaced in &plan.unplaced {
        reason_is_true(situation, &plan, unplaced.duty, &unplaced.reason)?;
    }
    let known = |node: &usize| *node < situation.nodes.len();
    let mut moves = BTreeMap::new();
    for step in &plan.moves {
        must!(moves.insert(step.duty, step).is_none(), "duty {} moves twice", step.duty);
    }
    for (index, duty) in situation.duties.iter().enumerate() {
        let (from, to) = (duty.running.filter(known), plan.target[index]);
        let told = moves.get(&index).map(|step| (step.from, step.to));
        must!(
            told == (from != to).then_some((from, to)),
            "duty {index}: {from:?} to {to:?}, {told:?}"
        );
    }
    Ok(())
}

fn reason_is_true(situation: &Situation, plan: &Plan, index: usize, reason: &Reason) -> Verdict {
    let duty = &situation.duties[index];
    match reason {
        Reason::Paused => must!(duty.paused, "duty {index} isn't paused"),
        Reason::NoNodes => must!(situation.nodes.is_empty(), "there are nodes"),
        Reason::UnknownPin(name) => {
            must!(duty.pin == Some(Pin::Required(name.clone())), "duty {index} has another pin");
            must!(situation.nodes.iter().all(|node| node.name != *name), "node {name} exists");
        }
        Reason::NotTried => must!(false, "duty {index} wasn't tried in so small a fleet"),
        Reason::Detached => must!(false, "nobody detached duty {index}"),
        Reason::RuledOut(rules) => {
            let mut expected = BTreeMap::new();
            for at in 0..situation.nodes.len() {
                if let Some(rule) = obstacle(situation, plan, index, at) {
                    *expected.entry(rule).or_insert(0) += 1;
                }
            }
            must!(*rules == expected, "duty {index}: {rules:?} is said, {expected:?} is true");
            let ruled_out: usize = rules.values().sum();
            must!(ruled_out == situation.nodes.len(), "duty {index} fits somewhere: {rules:?}");
        }
    }
    Ok(())
}

/// Every duty that fits somewhere runs somewhere.
pub fn is_total(planner: Planner, situation: &Situation) -> Verdict {
    let plan = planner.plan(situation);
    for unplaced in &plan.unplaced {
        let index = unplaced.duty;
        if situation.duties[index].paused {
            continue;
        }
        let fits =
            (0..situation.nodes.len()).find(|at| obstacle(situation, &plan, index, *at).is_none());
        must!(fits.is_none(), "duty {index} would fit on {fits:?}: {plan:?}");
    }
    Ok(())
}

/// A duty is on a node that is being emptied, or on which it failed, only if it fits on no better.
pub fn is_urgent(planner: Planner, situation: &Situation) -> Verdict {
    let plan = planner.plan(situation);
    let urgency = |duty: usize, at: usize| {
        let failed = situation.duties[duty].avoid.contains(&at);
        2 * u8::from(situation.nodes[at].draining) + u8::from(failed)
    };
    for (duty, at) in placed(situation, &plan) {
        for other in (0..situation.nodes.len()).filter(|other| *other != at) {
            let better = urgency(duty, other) < urgency(duty, at);
            let fits = obstacle(situation, &plan, duty, other).is_none();
            must!(!(better && fits), "duty {duty} should leave {at} for {other}: {plan:?}");
        }
    }
    Ok(())
}

/// What a balanced plan made true needs no other. Others get there.
pub fn comes_to_rest(planner: Planner, situation: &Situation) -> Verdict {
    let mut situation = situation.clone();
    let mut plan = planner.plan(&situation);
    for _ in 0..200 {
        plan.apply(&mut situation);
        let next = planner.plan(&situation);
        let rests = plan.balanced || situation.policy.rebalance == Rebalance::Not;
        must!(!rests || next.moves.is_empty(), "{:?} follow a balanced plan", next.moves);
        if next.moves.is_empty() {
            return Ok(());
        }
        must!(situation.policy.rebalance != Rebalance::UNLIMITED, "{:?} are left", next.moves);
        plan = next;
    }
    Err("it never comes to rest".to_owned())
}

/// A rolling restart while rebalancing waits, and evening out after it, start each duty once, and
/// about two nodes' share twice: that of the first node to go, which must go to one that restarts
/// later, and that of the last, which comes back to nothing. With a node's share again for what
/// can't be divided evenly.
pub fn restarts_once(planner: Planner, situation: &Situation) -> Verdict {
    let mut situation = situation.clone();
    planner.plan(&situation).apply(&mut situation);
    let (nodes, duties) = (situation.nodes.len(), situation.duties.len());
    let starts = rolling_restart(planner, &mut situation)?;
    let most = duties + 4 * duties.div_ceil(nodes);
    must!(starts <= most, "{starts} starts where {most} will do");
    let last = planner.plan(&situation);
    must!(last.moves.is_empty() && last.balanced, "{:?} are left", last.moves);
    Ok(())
}

/// Every node leaves, and comes back as another member; then things are evened out. Returns how
/// many duties were started.
pub fn rolling_restart(planner: Planner, situation: &mut Situation) -> Result<usize, String> {
    let mut starts = 0;
    let mut round = |situation: &mut Situation| -> Verdict {
        let plan = planner.plan(situation);
        plan.apply(situation);
        let alone = situation.nodes.is_empty();
        must!(alone || plan.unplaced.is_empty(), "not all run: {:?}", plan.unplaced);
        starts += plan.moves.iter().filter(|step| step.to.is_some()).count();
        Ok(())
    };
    let rebalance = situation.policy.rebalance;
    situation.policy.rebalance = Rebalance::Not;
    for number in 0..situation.nodes.len() {
        let mut back = situation.nodes[0].clone();
        remove(situation, 0);
        round(situation)?;
        back.id = format!("after-{number:03}");
        situation.nodes.push(back);
        round(situation)?;
    }
    situation.policy.rebalance = rebalance;
    round(situation)?;
    Ok(starts)
}

/// With next to no work allowed, little more is done.
pub fn keeps_its_effort(planner: Planner, situation: &Situation) -> Verdict {
    let (_, steps) = planner.plan_within(situation, 0);
    let most = 8 * situation.duties.len() as u64;
    must!(steps <= most, "{steps} steps where {most} are allowed");
    Ok(())
}

/// A plan that was cut short breaks no rule, and says that it was.
pub fn is_sound_when_cut_short(planner: Planner, situation: &Situation) -> Verdict {
    for limit in [0, 20, 100] {
        let (plan, _) = planner.plan_within(situation, limit);
        for (duty, at) in placed(situation, &plan) {
            let broken = obstacle(situation, &plan, duty, at);
            must!(broken.is_none(), "duty {duty} is on node {at} against {broken:?}: {plan:?}");
        }
        let untried = plan.unplaced.iter().any(|unplaced| unplaced.reason == Reason::NotTried);
        let ends = plan.balanced && !plan.moves.is_empty();
        must!(!(untried && ends), "it goes on, and says that it doesn't: {plan:?}");
    }
    Ok(())
}

/// No more moves for balance than are allowed.
pub fn keeps_limits(planner: Planner, situation: &Situation) -> Verdict {
    let plan = planner.plan(situation);
    let (per_round, per_node) = match situation.policy.rebalance {
        Rebalance::Not => (0, 0),
        Rebalance::UpTo { per_round, per_node } => (per_round, per_node),
    };
    let moves = || plan.moves.iter().filter(|step| step.why.is_rebalancing());
    must!(moves().count() <= per_round, "{} moves of {per_round} allowed", moves().count());
    for at in 0..situation.nodes.len() {
        let touching = moves().filter(|step| step.from == Some(at) || step.to == Some(at)).count();
        must!(touching <= per_node, "{touching} moves at node {at} of {per_node} allowed");
    }
    Ok(())
}

/// The order of nodes and duties decides nothing.
pub fn ignores_order(planner: Planner, situation: &Situation) -> Verdict {
    let mut turned = situation.clone();
    turned.nodes.reverse();
    turned.duties.reverse();
    let last = situation.nodes.len();
    let turn = |node: usize| if node < last { last - 1 - node } else { node };
    for duty in &mut turned.duties {
        duty.running = duty.running.map(turn);
        duty.avoid = duty.avoid.iter().copied().map(turn).collect();
    }
    let (plan, other) = (planner.plan(situation), planner.plan(&turned));
    let mut back: Vec<_> = other.target.iter().map(|node| node.map(turn)).collect();
    back.reverse();
    must!(plan.target == back, "{:?} against {back:?} the other way round", plan.target);
    must!(plan.balanced == other.balanced, "balanced in one order alone");
    Ok(())
}

/// Without rules, all nodes carry the same number, give or take one.
pub fn is_even(planner: Planner, situation: &Situation) -> Verdict {
    let plan = planner.plan(situation);
    let counts = counts(situation, &plan);
    let spread = counts.iter().max().unwrap_or(&0) - counts.iter().min().unwrap_or(&0);
    must!(spread <= 1, "{counts:?} isn't even");
    Ok(())
}

/// Without rules, no plan that ends even moves less.
pub fn moves_least(planner: Planner, situation: &Situation) -> Verdict {
    let plan = planner.plan(situation);
    let mut settled = vec![0_usize; situation.nodes.len()];
    situation.duties.iter().filter_map(|duty| duty.running).for_each(|node| settled[node] += 1);
    settled.sort_unstable_by(|one, other| other.cmp(one));
    let nodes = situation.nodes.len();
    let (each, more) = (situation.duties.len() / nodes, situation.duties.len() % nodes);
    let least = |(position, count): (usize, usize)| {
        count.saturating_sub(each + usize::from(position < more))
    };
    let bound: usize = settled.into_iter().enumerate().map(least).sum();
    let homeless = situation.duties.iter().filter(|duty| duty.running.is_none()).count();
    let moves = plan.moves.len();
    must!(moves == homeless + bound, "{moves} moves where {homeless} + {bound} do");
    let starts = plan.moves.iter().filter(|step| step.why == Why::Homeless).count();
    must!(starts == homeless, "{starts} starts of {homeless}");
    Ok(())
}

/// A planner that was told what changed makes the very plan, with as much work, that is made of everything.
pub fn follows_changes(planner: Planner, history: &History) -> Verdict {
    let planted = PlantedInPlan::new(planner.0);
    let mut kept = incumbent_planner::Planner::new(history.situation.clone()).planted(planted);
    let mut before = kept.plan();
    for (number, round) in history.rounds.iter().enumerate() {
        if round.applied {
            kept.apply(&before);
        }
        round.changes.iter().for_each(|change| change.tell(&mut kept));
        let (plan, steps) = kept.plan_counted();
        let whole = plan_within(kept.situation(), planted, None);
        must!(
            (&plan, steps) == (&whole.0, whole.1),
            "round {number}: {plan:?} in {steps} steps, and of everything {whole:?}"
        );
        before = plan;
    }
    Ok(())
}

fn placed(situation: &Situation, plan: &Plan) -> Vec<(usize, usize)> {
    let at = |duty: usize| plan.target[duty].map(|at| (duty, at));
    (0..situation.duties.len()).filter_map(at).collect()
}

/// The first rule that keeps a duty off a node. Load doesn't count against one that stays there.
fn obstacle(situation: &Situation, plan: &Plan, index: usize, at: usize) -> Option<Rule> {
    let (duty, node) = (&situation.duties[index], &situation.nodes[at]);
    let stays = duty.running == Some(at);
    let mates: Vec<&PlanDuty> = situation
        .duties
        .iter()
        .enumerate()
        .filter(|(mate, _)| *mate != index && plan.target[*mate] == Some(at))
        .map(|(_, mate)| mate)
        .collect();
    let family = mates.iter().filter(|mate| mate.family == duty.family).count();
    let most = node.families.get(&duty.family).and_then(|support| support.max_per_node);
    let weight: u64 = mates.iter().map(|mate| mate.weight).sum::<u64>() + duty.weight;
    let load = if stays && plan.target[index] == Some(at) { 0 } else { node.load };
    let checks = [
        (Rule::Cordoned, node.cordoned && !node.draining && !stays),
        (Rule::Draining, node.draining && !stays),
        (Rule::MaxDuties, node.max_duties.is_some_and(|most| mates.len() >= most as usize)),
        (Rule::FamilyMax, most.is_some_and(|most| family >= most as usize)),
        (Rule::Capacity, node.capacity.is_some_and(|capacity| weight + load > capacity)),
        (Rule::Apart, duty.apart.is_some() && mates.iter().any(|mate| mate.apart == duty.apart)),
    ];
    inability(duty, node)
        .or_else(|| checks.into_iter().find(|(_, broken)| *broken).map(|(rule, _)| rule))
}

fn inability(duty: &PlanDuty, node: &PlanNode) -> Option<Rule> {
    let Some(support) = node.families.get(&duty.family) else { return Some(Rule::Family) };
    let checks = [
        (Rule::Version, duty.version.as_ref().is_some_and(|it| !support.versions.contains(it))),
        (
            Rule::Selector,
            duty.selector.iter().any(|(key, value)| node.labels.get(key) != Some(value)),
        ),
        (Rule::LeaderOnly, duty.leader == LeaderRule::Only && !node.leader),
        (Rule::Pin, matches!(&duty.pin, Some(Pin::Required(name)) if *name != node.name)),
    ];
    checks.into_iter().find(|(_, broken)| *broken).map(|(rule, _)| rule)
}
