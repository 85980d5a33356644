//! Makes room for duties that fit nowhere, where one other duty can step aside. So a pin to a
//! full node works, and a picky duty isn't shut out by ones that could be anywhere.

use std::collections::BTreeSet;

use crate::draft::Draft;
use crate::effort::Effort;
use crate::index::{Column, DutyAt, KindAt, NodeAt};
use crate::layout::Layout;
use crate::outcome::Why;
use crate::preference::Rank;
use crate::problem::Problem;
use crate::rule::Rule;

/// Makes room for homeless duties. Returns whether any was placed.
pub(crate) fn make_room(draft: &mut Draft<'_, '_>) -> bool {
    let problem = draft.layout.problem;
    if draft.homeless.is_empty() {
        return false;
    }
    let mut search = RoomSearch::new(draft);
    let mut any = false;
    for duty in draft.homeless.clone() {
        let settled = draft.layout.target(duty).is_some();
        let kind = problem.kinds().of(duty);
        if settled || !draft.needs_home(duty) || search.hopeless[kind] {
            continue;
        }
        if search.effort.is_spent() {
            break;
        }
        if let Some(swap) = search.find(draft, duty) {
            search.carry_out(draft, duty, &swap);
            any = true;
        } else {
            search.hopeless[kind] = true;
        }
    }
    draft.cut_short |= search.effort.is_spent();
    draft.effort.spend(usize::try_from(search.effort.spent()).unwrap_or(usize::MAX));
    any
}

/// One duty steps aside from a node to another.
struct Swap {
    aside: DutyAt,
    from: NodeAt,
    to: NodeAt,
}

/// What was found out in this round. Where something leaves, more may have become possible than
/// is remembered: the next round finds that.
struct RoomSearch {
    /// What may be spent here; others need the rest.
    effort: Effort,
    /// Kinds for which no room can be made.
    hopeless: Column<KindAt, bool>,
    /// The nodes that take more, and the most that one of them has left.
    roomy: Vec<NodeAt>,
    most_left: u128,
    /// The two best nodes with room for each kind: one of them may be the node to leave.
    spare: Column<KindAt, Option<Vec<NodeAt>>>,
    /// For each node who may step aside and has somewhere to go.
    asides: Column<NodeAt, Option<Vec<DutyAt>>>,
}

impl RoomSearch {
    fn new(draft: &Draft<'_, '_>) -> Self {
        let problem = draft.layout.problem;
        let roomy = draft.layout.roomy();
        let left = roomy.iter().map(|node| draft.layout.left(*node));
        Self {
            most_left: left.max().unwrap_or(0),
            effort: draft.effort.half(),
            hopeless: problem.kinds().column(false),
            roomy,
            spare: problem.kinds().column(None),
            asides: Column::filled(problem.nodes.len(), None),
        }
    }

    /// The least loaded node where a duty fits if another steps aside, and who that is.
    fn find(&mut self, draft: &Draft<'_, '_>, duty: DutyAt) -> Option<Swap> {
        if self.roomy.is_empty() {
            return None;
        }
        let layout = &draft.layout;
        let problem = layout.problem;
        let mut nodes = Vec::new();
        for node in able(problem, duty) {
            self.effort.spend(1);
            if !self.asides(draft, node).is_empty() && is_crowded(layout, duty, node) {
                nodes.push((Rank::of(layout, duty, node), layout.fill(node), node));
            }
        }
        nodes.sort_unstable();
        for (_, _, from) in nodes {
            let held = self.asides(draft, from);
            // From a mate nothing helps but that it goes.
            let asides = match layout.mate(duty, from) {
                Some(mate) if held.contains(&mate) => vec![mate],
                Some(_) => Vec::new(),
                None => held.to_vec(),
            };
            self.effort.spend(asides.len());
            for aside in asides {
                if !layout.has_room_without(duty, from, aside) {
                    continue;
                }
                if let Some(to) = self.other(layout, aside, from) {
                    return Some(Swap { aside, from, to });
                }
            }
        }
        None
    }

    fn carry_out(&mut self, draft: &mut Draft<'_, '_>, duty: DutyAt, swap: &Swap) {
        let &Swap { aside, from, to } = swap;
        if draft.layout.problem.running[aside] == Some(from) {
            draft.why[aside] = Why::MakesRoom;
        }
        draft.layout.lift(aside);
        draft.layout.put(aside, to);
        draft.layout.put(duty, from);
        self.asides[from] = None;
        self.asides[to] = None;
    }

    /// Who may step aside from a node and has somewhere to go: those first that move anyway, then
    /// the lightest. Of those that differ in nothing that matters, one is enough.
    fn asides(&mut self, draft: &Draft<'_, '_>, node: NodeAt) -> &[DutyAt] {
        if self.asides[node].is_none() {
            let problem = draft.layout.problem;
            let mut seen = BTreeSet::new();
            let mut asides = Vec::new();
            for &duty in draft.layout.held(node) {
                self.effort.spend(1);
                if !draft.fixed[duty] && self.other(&draft.layout, duty, node).is_some() {
                    let facts = &problem.duties[duty];
                    asides.push((problem.running[duty] == Some(node), facts.weight, duty));
                }
            }
            asides.sort_unstable();
            let kind = |duty: DutyAt| problem.kinds().of(duty);
            let asides = asides.into_iter().map(|(_, _, duty)| duty);
            self.asides[node] = Some(asides.filter(|duty| seen.insert(kind(*duty))).collect());
        }
        self.asides[node].as_deref().unwrap_or_default()
    }

    /// The best node for a duty other than the one that it leaves.
    fn other(&mut self, layout: &Layout<'_, '_>, duty: DutyAt, from: NodeAt) -> Option<NodeAt> {
        let kind = layout.problem.kinds().of(duty);
        let urgency = Rank::of(layout, duty, from).urgency();
        let welcome =
            |node: &NodeAt| *node != from && Rank::of(layout, duty, *node).urgency() <= urgency;
        if let Some(known) = &self.spare[kind] {
            let node = known.iter().copied().find(welcome)?;
            if layout.fits(duty, node) {
                return Some(node);
            }
        }
        let nodes = self.best_two(layout, duty);
        let node = nodes.iter().copied().find(welcome);
        self.spare[kind] = Some(nodes);
        node
    }

    /// The two best of the nodes that get new duties and that a duty fits on.
    fn best_two(&mut self, layout: &Layout<'_, '_>, duty: DutyAt) -> Vec<NodeAt> {
        let class = layout.problem.class(duty);
        let weight = u128::from(layout.problem.duties[duty].weight);
        if weight > self.most_left || self.effort.is_spent() {
            return Vec::new();
        }
        self.effort.spend(self.roomy.len());
        let fits = |node: &&NodeAt| layout.fits(duty, **node);
        let key = |&node: &NodeAt| {
            (Rank::of(layout, duty, node), layout.zone(class, node), layout.fill(node), node)
        };
        let mut best: Vec<_> = self.roomy.iter().filter(fits).map(key).collect();
        best.sort_unstable();
        best.into_iter().take(2).map(|(_, _, _, node)| node).collect()
    }
}

/// The nodes that a duty might run on.
fn able<'p>(problem: &'p Problem<'_>, duty: DutyAt) -> impl Iterator<Item = NodeAt> + 'p {
    let class = problem.class(duty);
    let pinned = problem.pinned(duty).filter(|(required, _)| *required).map(|(_, nodes)| nodes);
    let all = pinned.is_none().then(|| problem.nodes.keys());
    let nodes = pinned.unwrap_or_default().iter().copied().chain(all.into_iter().flatten());
    nodes.filter(|node| class.is_able(*node))
}

/// Whether a duty fits on a node but for what else is there.
fn is_crowded(layout: &Layout<'_, '_>, duty: DutyAt, node: NodeAt) -> bool {
    let verdict = layout.verdict(duty, node);
    matches!(verdict, Some(Rule::MaxDuties | Rule::FamilyMax | Rule::Capacity | Rule::Apart))
}
