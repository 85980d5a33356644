//! Homes for duties that have none, or should leave theirs at once.

use std::cmp::Reverse;

use crate::draft::Draft;
use crate::index::{Column, DutyAt, KindAt, NodeAt};
use crate::preference::Rank;
use crate::problem::Problem;
use crate::queues::Queues;

/// Places every homeless duty that fits somewhere, the choosiest and heaviest first. Returns
/// whether any was placed.
pub(crate) fn recover(draft: &mut Draft<'_, '_>) -> bool {
    let problem = draft.layout.problem;
    let mut homeless = std::mem::take(&mut draft.homeless);
    homeless.retain(|&duty| draft.needs_home(duty));
    if homeless.is_empty() {
        return false;
    }
    homeless.sort_by_cached_key(|&duty| {
        (choices(problem, duty), Reverse(problem.duties[duty].weight), duty)
    });
    let mut queues = Queues::new(problem, !draft.budget.has_round());
    let mut hopeless = Hopeless::default();
    let mut any = false;
    for duty in homeless {
        let urgency = urgency(draft, duty);
        if hopeless.contains(problem, duty, urgency) {
            draft.homeless.push(duty);
            continue;
        }
        if let Some(node) = home(draft, &mut queues, duty) {
            draft.layout.lift(duty);
            draft.layout.put(duty, node);
            any = true;
            if Rank::of(&draft.layout, duty, node).urgency() > 0 {
                draft.homeless.push(duty);
            }
        } else {
            draft.homeless.push(duty);
            if draft.effort.is_spent() {
                draft.cut_short = true;
            } else {
                hopeless.insert(problem, duty, urgency);
            }
        }
    }
    any
}

/// Kinds of duties that wanted a home in vain, and how urgently. Nodes only fill up meanwhile.
/// Empty until there is one: where all fits, kinds needn't be known.
#[derive(Default)]
struct Hopeless {
    kinds: Option<Column<KindAt, Option<u8>>>,
}

impl Hopeless {
    fn contains(&self, problem: &Problem<'_>, duty: DutyAt, urgency: u8) -> bool {
        let Some(kinds) = &self.kinds else { return false };
        kinds[problem.kinds().of(duty)].is_some_and(|before| urgency <= before)
    }

    fn insert(&mut self, problem: &Problem<'_>, duty: DutyAt, urgency: u8) {
        let kinds = self.kinds.get_or_insert_with(|| problem.kinds().column(None));
        kinds[problem.kinds().of(duty)] = Some(urgency);
    }
}

/// How many nodes could run a duty, if they were empty.
fn choices(problem: &Problem<'_>, duty: DutyAt) -> usize {
    let open = problem.class(duty).open;
    match problem.pinned(duty) {
        Some((true, nodes)) => nodes.len().min(open),
        _ => open,
    }
}

/// How urgently a duty should leave where it is.
fn urgency(draft: &Draft<'_, '_>, duty: DutyAt) -> u8 {
    let here = draft.layout.target(duty);
    here.map_or(u8::MAX, |node| Rank::of(&draft.layout, duty, node).urgency())
}

/// The best node for a duty that is less urgent to leave than where it is now.
fn home(draft: &mut Draft<'_, '_>, queues: &mut Queues, duty: DutyAt) -> Option<NodeAt> {
    let urgency = urgency(draft, duty);
    let layout = &draft.layout;
    // Where it failed is better than nowhere, and than on a node that is being emptied.
    let resort = urgency > Rank::FAILED_URGENCY;
    queues.first_fit(layout, duty, resort, &mut draft.effort).or_else(|| {
        // Last, where it runs: it may stay there although nothing new comes.
        let running = layout.problem.running[duty]?;
        let better = Rank::of(layout, duty, running).urgency() < urgency
            && layout.target(duty) != Some(running)
            && layout.verdict(duty, running).is_none();
        better.then_some(running)
    })
}
