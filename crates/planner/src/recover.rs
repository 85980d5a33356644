//! Homes for duties that have none, or should leave theirs at once.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use crate::draft::Draft;
use crate::index::{ClassAt, Column, DutyAt, NodeAt};
use crate::layout::Layout;
use crate::mutant::Mutant;
use crate::preference::Rank;
use crate::problem::Problem;
use crate::rule::Rule;

/// Places every homeless duty that fits somewhere, the choosiest and heaviest first. Returns
/// whether any was placed.
pub(crate) fn recover(draft: &mut Draft<'_, '_>) -> bool {
    let problem = draft.layout.problem;
    let mut homeless = std::mem::take(&mut draft.homeless);
    homeless.retain(|&duty| draft.needs_home(duty));
    homeless.sort_by_cached_key(|&duty| {
        (choices(problem, duty), Reverse(problem.duties[duty].duty.weight), duty)
    });
    let mut queues = Queues::new(problem, &homeless);
    let mut any = false;
    for duty in homeless {
        match home(draft, &mut queues, duty) {
            Some(node) => {
                draft.layout.lift(duty);
                draft.layout.put(duty, node);
                any = true;
                if Rank::of(&draft.layout, duty, node).urgency() > 0 {
                    draft.homeless.push(duty);
                }
            }
            None => draft.homeless.push(duty),
        }
    }
    any
}

/// How many nodes could run a duty, if they were empty.
fn choices(problem: &Problem<'_>, duty: DutyAt) -> usize {
    let open = problem.class(duty).open;
    match problem.pinned(duty) {
        Some((true, nodes)) => nodes.len().min(open),
        _ => open,
    }
}

/// The best node for a duty that is less urgent to leave than where it is now.
fn home(draft: &Draft<'_, '_>, queues: &mut Queues, duty: DutyAt) -> Option<NodeAt> {
    let layout = &draft.layout;
    let problem = layout.problem;
    let facts = &problem.duties[duty];
    let here = layout.target(duty);
    let urgency = here.map_or(u8::MAX, |node| Rank::of(layout, duty, node).urgency());
    let better = |nodes: &[NodeAt], welcome: u8| {
        let fits = |node: &&NodeAt| {
            let rank = Rank::of(layout, duty, **node);
            rank.urgency() <= welcome
                && rank.urgency() < urgency
                && here != Some(**node)
                && layout.verdict(duty, **node).is_none()
        };
        let nodes = nodes.iter().filter(fits);
        nodes
            .min_by_key(|node| (Rank::of(layout, duty, **node), layout.fill(**node), **node))
            .copied()
    };
    match problem.pinned(duty) {
        Some((true, nodes)) => return better(nodes, u8::MAX),
        Some((false, nodes)) => {
            if let Some(node) = better(nodes, 0) {
                return Some(node);
            }
        }
        None => {}
    }
    // Last, what is better than nothing: where it failed, or where it runs and may stay.
    let resort = || facts.avoid.iter().copied().chain(facts.running).collect::<Vec<_>>();
    queues.first_fit(layout, duty).or_else(|| better(&resort(), u8::MAX))
}

/// For each class its nodes, least loaded first. Valid while nodes only fill up.
struct Queues {
    by_class: Column<ClassAt, Option<Vec<Queue>>>,
    /// The lightest plain duty that fitted nowhere, and the lightest to come.
    misfit: Column<ClassAt, Option<u64>>,
    lightest: Column<ClassAt, u64>,
}

type Queue = BinaryHeap<Reverse<Entry>>;

/// How loaded a node is, for a class: in all, and with its family.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    fill: u128,
    family: u32,
    node: NodeAt,
}

impl Entry {
    fn of(layout: &Layout<'_, '_>, class: ClassAt, node: NodeAt) -> Self {
        let family = layout.family(layout.problem.classes[class].family, node);
        Self { fill: layout.fill(node), family, node }
    }
}

impl Queues {
    fn new(problem: &Problem<'_>, homeless: &[DutyAt]) -> Self {
        let classes = problem.classes.len();
        let mut lightest = Column::filled(classes, u64::MAX);
        for &duty in homeless {
            let facts = &problem.duties[duty];
            lightest[facts.class] = facts.duty.weight.min(lightest[facts.class]);
        }
        Self {
            by_class: Column::filled(classes, None),
            misfit: Column::filled(classes, None),
            lightest,
        }
    }

    /// The least loaded node that a duty fits on and didn't fail on; zones and the leader first.
    fn first_fit(&mut self, layout: &Layout<'_, '_>, duty: DutyAt) -> Option<NodeAt> {
        let facts = &layout.problem.duties[duty];
        let class = facts.class;
        let (plain, weight) = (facts.is_plain(), facts.duty.weight);
        if plain && self.misfit[class].is_some_and(|misfit| weight >= misfit) {
            return None;
        }
        let lightest = self.lightest[class];
        let queues = self.by_class[class].get_or_insert_with(|| sections(layout, class));
        let kind = &layout.problem.classes[class];
        let key = |entry: Entry| {
            let on_leader = kind.avoids_leader && layout.problem.nodes[entry.node].node.leader;
            (on_leader, layout.zone(kind, entry.node), entry)
        };
        let firsts = queues.iter_mut().filter_map(|queue| first_of(queue, layout, duty, lightest));
        let best = firsts.min_by_key(|entry| key(*entry)).map(|entry| entry.node);
        if best.is_none() && plain {
            self.misfit[class] = Some(weight);
        }
        best
    }
}

/// The open nodes of a class, in one queue for each zone, and the leader apart if it is avoided.
fn sections(layout: &Layout<'_, '_>, class: ClassAt) -> Vec<Queue> {
    let problem = layout.problem;
    let kind = &problem.classes[class];
    let zones = kind.spread.map_or(1, |spread| problem.spreads[spread].count);
    let mut sections = vec![Vec::new(); zones * 2];
    for (node, facts) in problem.nodes.iter() {
        let taken = facts.open || problem.planted.is(Mutant::CordonIgnored) && !facts.node.draining;
        if !taken || !kind.is_able(node) {
            continue;
        }
        let zone = kind.spread.map_or(0, |spread| problem.spreads[spread].of[node]);
        let section = zone * 2 + usize::from(kind.avoids_leader && facts.node.leader);
        if let Some(section) = sections.get_mut(section) {
            section.push(Reverse(Entry::of(layout, class, node)));
        }
    }
    sections.into_iter().filter(|section| !section.is_empty()).map(Queue::from).collect()
}

/// The first of a queue on which a duty fits.
fn first_of(
    queue: &mut Queue,
    layout: &Layout<'_, '_>,
    duty: DutyAt,
    lightest: u64,
) -> Option<Entry> {
    let facts = &layout.problem.duties[duty];
    let planted = layout.problem.planted;
    let mut passed = Vec::new();
    let mut first = None;
    while let Some(mut top) = queue.peek_mut() {
        let Reverse(entry) = *top;
        let now = Entry::of(layout, facts.class, entry.node);
        if now != entry && !planted.is(Mutant::AllToOne) {
            *top = Reverse(now);
            continue;
        }
        let verdict = layout.verdict(duty, entry.node);
        if verdict.is_none() && !facts.avoid.contains(&entry.node) {
            first = Some(entry);
            break;
        }
        let for_good = match verdict {
            Some(Rule::MaxDuties | Rule::FamilyMax) => true,
            Some(Rule::Capacity) => layout.left(entry.node) < u128::from(lightest),
            _ => false,
        };
        let entry = PeekMut::pop(top);
        if !for_good {
            passed.push(entry);
        }
        if planted.is(Mutant::GivesUpEarly) {
            break;
        }
    }
    queue.extend(passed);
    first
}
