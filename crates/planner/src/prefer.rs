//! Moves duties to nodes that are preferred for them: a preferred pin, off the leader, a zone
//! with fewer of the family.

use crate::draft::Draft;
use crate::index::{DutyAt, NodeAt};
use crate::layout::Layout;
use crate::outcome::Why;
use crate::preference::Rank;

/// Moves duties to nodes that are preferred for them. Returns whether anything moved.
pub(crate) fn prefer(draft: &mut Draft<'_, '_>) -> bool {
    let problem = draft.layout.problem;
    let mut any = false;
    for duty in problem.duties.keys() {
        let class = problem.class(duty);
        let choosy =
            problem.duties[duty].pin.is_some() || class.avoids_leader || class.spread.is_some();
        if !choosy || draft.fixed[duty] {
            continue;
        }
        let Some(here) = draft.layout.target(duty) else { continue };
        if problem.nodes[here].node.cordoned {
            continue;
        }
        if let Some(there) = preferred(&draft.layout, duty, here) {
            any |= draft.relocate(duty, here, there, Why::Preferred);
        }
    }
    any
}

/// The node that is preferred most to where a duty is, if any is.
fn preferred(layout: &Layout<'_, '_>, duty: DutyAt, here: NodeAt) -> Option<NodeAt> {
    let problem = layout.problem;
    let class = problem.class(duty);
    let (rank, crowd) = (Rank::of(layout, duty, here), layout.zone(class, here));
    let better = |&node: &NodeAt| {
        let there = Rank::of(layout, duty, node);
        let roomier = !layout.same_zone(class, here, node) && layout.zone(class, node) + 1 < crowd;
        node != here
            && class.is_able(node)
            && (there < rank || there == rank && roomier)
            && layout.verdict(duty, node).is_none()
    };
    let key = |node: &NodeAt| {
        (Rank::of(layout, duty, *node), layout.zone(class, *node), layout.fill(*node), *node)
    };
    let pinned = if rank.is_not_preferred() { problem.pinned(duty) } else { None };
    let nodes = pinned.map_or(&[][..], |(_, nodes)| nodes);
    if let Some(node) = nodes.iter().copied().filter(better).min_by_key(key) {
        return Some(node);
    }
    if rank.is_best() && layout.emptiest_zone(class) + 1 >= crowd {
        return None;
    }
    problem.nodes.keys().filter(better).min_by_key(key)
}
