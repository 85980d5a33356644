//! Moves duties to nodes that are preferred for them: a preferred pin, off the leader, a zone
//! with fewer of the family.

use std::collections::{BTreeSet, HashMap};

use crate::draft::Draft;
use crate::index::{Column, DutyAt, KindAt, NodeAt};
use crate::outcome::Why;
use crate::preference::Rank;

/// Moves duties to nodes that are preferred for them. Returns whether anything moved.
///
/// The most loaded nodes give first: where a zone has too many it doesn't matter which of them
/// leave, and so evening out has the least to do afterwards.
pub(crate) fn prefer(draft: &mut Draft<'_, '_>) -> bool {
    let mut choosy = choosy(draft);
    let with_some = draft.layout.problem.nodes.keys().filter(|node| !choosy[*node].is_empty());
    let mut givers: BTreeSet<(u128, NodeAt)> =
        with_some.map(|node| (draft.layout.fill(node), node)).collect();
    if givers.is_empty() {
        return false;
    }
    let mut search = PreferenceSearch::new(draft);
    let mut any = false;
    while let Some((_, giver)) = givers.pop_last() {
        while let Some(duty) = choosy[giver].pop() {
            if draft.effort.is_spent() {
                draft.cut_short = true;
                return any;
            }
            let Some(there) = search.preferred(draft, duty, giver) else { continue };
            if draft.relocate(duty, giver, there, Why::Preferred) {
                any = true;
                givers.insert((draft.layout.fill(giver), giver));
                break;
            }
        }
    }
    any
}

/// For each node the duties that have preferences; last those that move anyway, which cost
/// nothing.
fn choosy(draft: &Draft<'_, '_>) -> Column<NodeAt, Vec<DutyAt>> {
    let problem = draft.layout.problem;
    let mut choosy: Column<NodeAt, Vec<DutyAt>> = Column::filled(problem.nodes.len(), Vec::new());
    let moves = |duty: DutyAt, here: NodeAt| problem.running[duty] != Some(here);
    for moving in [false, true] {
        for duty in problem.duties.keys().rev() {
            let class = problem.class(duty);
            let prefers =
                problem.duties[duty].pin.is_some() || class.avoids_leader || class.spread.is_some();
            if !prefers || draft.fixed[duty] {
                continue;
            }
            let Some(here) = draft.layout.target(duty) else { continue };
            if moves(duty, here) == moving && !problem.node(here).cordoned {
                choosy[here].push(duty);
            }
        }
    }
    choosy
}

/// What was found out in this round, in which nodes fill up. What room is made by those that
/// move is found in the next.
struct PreferenceSearch {
    /// The nodes that take more.
    roomy: Vec<NodeAt>,
    /// For duties of a kind, in a zone and of a rank: how crowded the zone was when nothing better
    /// was found.
    in_vain: HashMap<(KindAt, Option<usize>, Rank), u32>,
}

impl PreferenceSearch {
    fn new(draft: &Draft<'_, '_>) -> Self {
        Self { roomy: draft.layout.roomy(), in_vain: HashMap::new() }
    }

    /// The node that is preferred most to where a duty is, if any is.
    fn preferred(
        &mut self,
        draft: &mut Draft<'_, '_>,
        duty: DutyAt,
        here: NodeAt,
    ) -> Option<NodeAt> {
        let layout = &draft.layout;
        let problem = layout.problem;
        let class = problem.class(duty);
        let (rank, crowd) = (Rank::of(layout, duty, here), layout.zone(class, here));
        if rank.is_best() && layout.emptiest_zone(class) + 1 >= crowd {
            return None;
        }
        let settled = problem.running[duty] == Some(here);
        if settled && draft.wants_more && draft.budget.is_spent(here) {
            return None;
        }
        // Where recovery chose a node that lacks duties, although its zone doesn't, that zone can
        // give others away for it once things may move.
        let waits = !settled && rank.is_best() && !draft.budget.has_round();
        if waits && draft.wants_more {
            return None;
        }
        let zone = class.spread.map(|spread| problem.spreads[spread].of[here]);
        let key = (problem.kinds().of(duty), zone, rank);
        if self.in_vain.get(&key).is_some_and(|before| crowd <= *before) {
            return None;
        }
        let better = |&node: &NodeAt| {
            let roomier =
                || !layout.same_zone(class, here, node) && layout.zone(class, node) + 1 < crowd;
            let there = Rank::of(layout, duty, node);
            node != here && (there < rank || there == rank && roomier()) && layout.fits(duty, node)
        };
        let best = |node: &NodeAt| {
            (Rank::of(layout, duty, *node), layout.zone(class, *node), layout.fill(*node), *node)
        };
        let pinned = if rank.is_not_preferred() { problem.pinned(duty) } else { None };
        let nodes = pinned.map_or(&[][..], |(_, nodes)| nodes);
        draft.effort.spend(1 + nodes.len());
        let named = nodes.iter().copied().filter(better).min_by_key(best);
        let found = named.or_else(|| {
            draft.effort.spend(self.roomy.len());
            self.roomy.iter().copied().filter(better).min_by_key(best)
        });
        if found.is_none() {
            self.in_vain.insert(key, crowd);
        }
        draft.wants_more |= waits && found.is_some();
        found.filter(|_| !waits)
    }
}
