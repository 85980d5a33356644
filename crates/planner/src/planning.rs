//! From a situation to a plan.

use crate::balance::balance;
use crate::draft::Draft;
use crate::effort::Effort;
use crate::facts::Facts;
use crate::index::NodeAt;
use crate::layout::Layout;
use crate::mutant::{PlanMutant, PlantedInPlan};
use crate::outcome::{Plan, PlanMove, Reason, Unplaced, Why};
use crate::prefer::prefer;
use crate::problem::Problem;
use crate::reasons::Reasons;
use crate::recover::recover;
use crate::room::make_room;
use crate::situation::Situation;
use crate::wishes::{fulfil, has_own_strategies};

/// More rounds than settling needs; each makes something better for good.
const ROUNDS: usize = 16;

/// Decides where every duty should run.
///
/// It is a function of the situation alone: the same nodes and duties, in any order, give the
/// same plan.
#[must_use]
pub fn plan(situation: &Situation) -> Plan {
    plan_planted_within(situation, PlantedInPlan::default(), None).0
}

/// The same with a planted mistake.
#[cfg(feature = "mutants")]
#[must_use]
pub fn plan_planted(situation: &Situation, planted: PlantedInPlan) -> Plan {
    plan_planted_within(situation, planted, None).0
}

/// The same with so many steps of work; and how many it took.
#[cfg(feature = "mutants")]
#[must_use]
pub fn plan_within(
    situation: &Situation,
    planted: PlantedInPlan,
    steps: Option<u64>,
) -> (Plan, u64) {
    plan_planted_within(situation, planted, steps)
}

pub(crate) fn plan_planted_within(
    situation: &Situation,
    planted: PlantedInPlan,
    steps: Option<u64>,
) -> (Plan, u64) {
    let facts = Facts::new(situation, planted);
    let problem = Problem::new(situation, &facts);
    let effort = steps.map_or_else(|| enough(&problem), |steps| Effort::up_to(steps, planted));
    complete(Draft::new(&problem, effort))
}

/// As much work as a plan may take.
pub(crate) fn enough(problem: &Problem<'_>) -> Effort {
    Effort::enough_for(problem.duties.len(), problem.nodes.len(), problem.planted)
}

/// The plan that comes of what stays, and how many steps of work it took.
pub(crate) fn complete(mut draft: Draft<'_, '_>) -> (Plan, u64) {
    let planted = draft.layout.problem.planted;
    if !(planted.is(PlanMutant::BalancedMeansDone) && is_even(&draft.layout)) {
        settle(&mut draft);
    }
    (finish(&draft), draft.effort.spent())
}

/// Places and moves duties until nothing changes.
fn settle(draft: &mut Draft<'_, '_>) {
    for _ in 0..ROUNDS {
        let wished = fulfil(draft);
        // A strategy is asked again after recovery: it may want something else then.
        let mut recovered = false;
        while recover(draft) || make_room(draft) {
            recovered = has_own_strategies(&draft.layout.problem.situation.policy);
            if draft.effort.is_spent() {
                break;
            }
        }
        if draft.effort.is_spent() {
            draft.cut_short = true;
            return;
        }
        let preferred = prefer(draft);
        if !(balance(draft) | preferred | wished | recovered) {
            return;
        }
    }
    draft.wants_more = true;
}

/// For a planted mistake.
fn is_even(layout: &Layout<'_, '_>) -> bool {
    let fills = || layout.problem.nodes.keys().map(|node| layout.fill(node));
    fills().max().unwrap_or(0) - fills().min().unwrap_or(0) <= 1
}

fn finish(draft: &Draft<'_, '_>) -> Plan {
    let layout = &draft.layout;
    let problem = layout.problem;
    let given = |node: NodeAt| problem.nodes[node].given;
    let mut target = vec![None; problem.duties.len()];
    let (mut moves, mut unplaced) = (Vec::new(), Vec::new());
    let mut reasons = Reasons::new(layout);
    for (duty, facts) in problem.duties.iter() {
        let (to, running) = (layout.target(duty), problem.running[duty]);
        if let Some(cell) = target.get_mut(facts.given) {
            *cell = to.map(given);
        }
        if to.is_none() {
            let detached = draft.detached[duty];
            let reason = if detached { Reason::Detached } else { reasons.reason(duty) };
            unplaced.push(Unplaced { duty: facts.given, reason });
        }
        if to != running {
            let why = if running.is_none() { Why::Homeless } else { draft.why[duty] };
            let from = running.map(given);
            moves.push(PlanMove { duty: facts.given, from, to: to.map(given), why });
        }
    }
    // Where nothing moves, the next plan would search in the same places and find no more.
    let goes_on = draft.wants_more || draft.cut_short && !moves.is_empty();
    Plan { target, unplaced, moves, balanced: !goes_on }
}
