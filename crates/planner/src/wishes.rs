//! Lets users' strategies place duties, and does what they wish within the limits.

use crate::draft::Draft;
use crate::grid::Grid;
use crate::index::{DutyAt, NodeAt};
use crate::outcome::Why;
use crate::policy::{Place, Policy, Strategy};
use crate::preference::Rank;
use crate::ready::Together;

/// Whether any strategy places duties through the grid.
pub(crate) fn has_own_strategies(policy: &Policy) -> bool {
    let for_all = match policy.strategy {
        Strategy::Even | Strategy::Weighted | Strategy::PreferredNode(_) => false,
        Strategy::GroupAffinity | Strategy::Own(_) => true,
    };
    for_all || !policy.families.is_empty()
}

/// Lets all strategies place their duties. Returns whether anything changed.
pub(crate) fn fulfil(draft: &mut Draft<'_, '_>) -> bool {
    let policy = &draft.layout.problem.situation.policy;
    let mut changed = false;
    match &policy.strategy {
        Strategy::Even | Strategy::Weighted | Strategy::PreferredNode(_) => {}
        Strategy::GroupAffinity => changed |= ask(draft, None, &Together),
        Strategy::Own(own) => changed |= ask(draft, None, own.as_ref()),
    }
    for (family, own) in &policy.families {
        changed |= ask(draft, Some(family), own.as_ref());
    }
    changed
}

fn ask<'a>(draft: &mut Draft<'_, 'a>, family: Option<&'a str>, own: &dyn Place) -> bool {
    let mut grid = Grid::new(draft.layout.clone(), family, draft.effort.half());
    own.place(&mut grid);
    draft.cut_short |= grid.effort.is_spent();
    draft.effort.spend(usize::try_from(grid.effort.spent()).unwrap_or(usize::MAX));
    let scope = grid.scope();
    let mut changed = false;
    for duty in scope {
        draft.fixed[*duty] = true;
        let detached = grid.detached.contains(duty);
        if detached != draft.detached[*duty] {
            changed = true;
            draft.detached[*duty] = detached;
            if detached {
                draft.layout.lift(*duty);
                draft.why[*duty] = Why::Stopped;
            } else {
                draft.homeless.push(*duty);
            }
        }
    }
    // One wish may wait for the room that another leaves.
    let wishes: Vec<(DutyAt, NodeAt)> =
        scope.iter().filter_map(|duty| Some((*duty, grid.layout.target(*duty)?))).collect();
    for _ in 0..wishes.len().max(1) {
        let mut any = false;
        for (duty, node) in &wishes {
            any |= grant(draft, *duty, *node);
        }
        if !any {
            break;
        }
        changed = true;
    }
    changed
}

/// Puts a duty where its strategy wishes it, if that is allowed now.
fn grant(draft: &mut Draft<'_, '_>, duty: DutyAt, node: NodeAt) -> bool {
    let here = draft.layout.target(duty);
    if here == Some(node) || draft.layout.verdict(duty, node).is_some() {
        return false;
    }
    let urgency = |node| Rank::of(&draft.layout, duty, node).urgency();
    // A node on which the duty failed is the last resort, also for a strategy.
    if urgency(node) > here.map_or(0, urgency) {
        return false;
    }
    match here {
        Some(here) if urgency(here) == urgency(node) => {
            draft.relocate(duty, here, node, Why::Strategy)
        }
        _ => {
            // Recovery: it has no node, or should leave it at once.
            draft.layout.lift(duty);
            draft.layout.put(duty, node);
            true
        }
    }
}
