//! Makes room for duties that fit nowhere, where one other duty can step aside. So a pin to a
//! full node works, and a picky duty isn't shut out by ones that could be anywhere.

use std::collections::{BTreeSet, HashMap};

use crate::draft::Draft;
use crate::index::{ClassAt, DutyAt, NodeAt};
use crate::layout::Layout;
use crate::outcome::Why;
use crate::preference::Rank;
use crate::rule::Rule;

/// Makes room for homeless duties. Returns whether any was placed.
pub(crate) fn make_room(draft: &mut Draft<'_, '_>) -> bool {
    let problem = draft.layout.problem;
    let waiting: Vec<DutyAt> = draft.homeless.clone();
    let mut hopeless = BTreeSet::new();
    let mut any = false;
    for duty in waiting {
        let facts = &problem.duties[duty];
        let kind = (facts.class, facts.duty.weight);
        let plain = facts.is_plain() && facts.running.is_none();
        let settled = draft.layout.target(duty).is_some();
        if settled || !draft.needs_home(duty) || plain && hopeless.contains(&kind) {
            continue;
        }
        if let Some(swap) = find(draft, duty) {
            carry_out(draft, duty, swap);
            hopeless.clear();
            any = true;
        } else if plain {
            hopeless.insert(kind);
        }
    }
    any
}

/// One duty steps aside from a node to another.
struct Swap {
    aside: DutyAt,
    from: NodeAt,
    to: NodeAt,
}

fn carry_out(draft: &mut Draft<'_, '_>, duty: DutyAt, Swap { aside, from, to }: Swap) {
    if draft.layout.problem.duties[aside].running == Some(from) {
        draft.why[aside] = Why::MakesRoom;
    }
    draft.layout.lift(aside);
    draft.layout.put(aside, to);
    draft.layout.put(duty, from);
}

/// The least loaded node where a duty fits if another steps aside, and who that is.
fn find(draft: &mut Draft<'_, '_>, duty: DutyAt) -> Option<Swap> {
    let problem = draft.layout.problem;
    let crowded = |node: &NodeAt| {
        let verdict = draft.layout.verdict(duty, *node);
        matches!(verdict, Some(Rule::MaxDuties | Rule::FamilyMax | Rule::Capacity | Rule::Apart))
    };
    let mut nodes: Vec<NodeAt> = problem.nodes.keys().filter(crowded).collect();
    let key =
        |node: &NodeAt| (Rank::of(&draft.layout, duty, *node), draft.layout.fill(*node), *node);
    nodes.sort_by_cached_key(key);
    let mut spare = Spare::default();
    for from in nodes {
        for aside in candidates(draft, from) {
            draft.layout.lift(aside);
            let helps = draft.layout.verdict(duty, from).is_none();
            draft.layout.put(aside, from);
            let to = if helps { spare.other(&draft.layout, aside, from) } else { None };
            if let Some(to) = to {
                return Some(Swap { aside, from, to });
            }
        }
    }
    None
}

/// Who may step aside from a node: those first that move anyway, then the lightest. Of those
/// that differ in nothing but their names, one is enough.
fn candidates(draft: &Draft<'_, '_>, node: NodeAt) -> Vec<DutyAt> {
    let problem = draft.layout.problem;
    let mut held: Vec<DutyAt> =
        draft.layout.held(node).iter().copied().filter(|duty| !draft.fixed[*duty]).collect();
    held.sort_by_cached_key(|duty| {
        let facts = &problem.duties[*duty];
        (facts.running == Some(node), facts.duty.weight, *duty)
    });
    let mut seen = BTreeSet::new();
    held.retain(|duty| {
        let facts = &problem.duties[*duty];
        !facts.is_plain() || seen.insert((facts.class, facts.duty.weight))
    });
    held
}

/// Nodes that have room to spare for a kind of duty.
#[derive(Default)]
struct Spare {
    /// The two best for each class and weight: one of them may be the node to leave.
    plain: HashMap<(ClassAt, u64), Vec<NodeAt>>,
}

impl Spare {
    /// The best node for a duty other than the one that it leaves.
    fn other(&mut self, layout: &Layout<'_, '_>, duty: DutyAt, from: NodeAt) -> Option<NodeAt> {
        let facts = &layout.problem.duties[duty];
        let urgency = Rank::of(layout, duty, from).urgency();
        let welcome =
            |node: &NodeAt| *node != from && Rank::of(layout, duty, *node).urgency() <= urgency;
        if !facts.is_plain() {
            return best(layout, duty).into_iter().find(welcome);
        }
        let key = (facts.class, facts.duty.weight);
        let nodes = self.plain.entry(key).or_insert_with(|| {
            let mut nodes = best(layout, duty);
            nodes.truncate(2);
            nodes
        });
        nodes.iter().copied().find(welcome)
    }
}

/// The nodes that get new duties and that a duty fits on, best first.
fn best(layout: &Layout<'_, '_>, duty: DutyAt) -> Vec<NodeAt> {
    let problem = layout.problem;
    let class = problem.class(duty);
    let fits = |node: &NodeAt| problem.nodes[*node].open && layout.verdict(duty, *node).is_none();
    let mut nodes: Vec<NodeAt> = problem.nodes.keys().filter(fits).collect();
    nodes.sort_by_cached_key(|node| {
        (Rank::of(layout, duty, *node), layout.zone(class, *node), layout.fill(*node), *node)
    });
    nodes
}
