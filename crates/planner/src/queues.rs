//! The nodes of each class, least loaded first, for as long as nodes only fill up.

use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, HashMap};

use crate::effort::Effort;
use crate::index::{ClassAt, Column, DutyAt, NodeAt, PinAt};
use crate::layout::Layout;
use crate::mutant::PlanMutant;
use crate::problem::Problem;
use crate::rule::Rule;

/// How many zones are looked at, and nodes passed over, once the effort is spent.
pub(crate) const HURRIED: usize = 4;

/// For each class its nodes, least loaded first. Valid while nodes only fill up.
pub(crate) struct Queues {
    /// Whether what runs stays where it is for now.
    waits: bool,
    by_class: Column<ClassAt, Option<Vec<ZoneQueue>>>,
    /// The same among the nodes of a name, for duties that are pinned to it.
    by_pin: HashMap<(ClassAt, PinAt), Vec<ZoneQueue>>,
}

/// The open nodes of a class that are in one zone. The leader is apart if it is avoided.
struct ZoneQueue {
    on_leader: bool,
    /// What the nodes of the zone carry on average: those that carry less get more when all is
    /// evened out. Nothing for duties that aren't spread, or if that is done at once.
    average: u128,
    waiting: BinaryHeap<Reverse<Burden>>,
    /// Nodes that were too full for a duty, with the capacity that they had left. They come back
    /// for a lighter one.
    parked: BinaryHeap<(u128, NodeAt)>,
}

/// How loaded a node is, for a class: in all, and with its family.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Burden {
    fill: u128,
    family: u32,
    node: NodeAt,
}

impl Burden {
    fn of(layout: &Layout<'_, '_>, class: ClassAt, node: NodeAt) -> Self {
        let family = layout.family(layout.problem.classes[class].family, node);
        Self { fill: layout.fill(node), family, node }
    }
}

impl Queues {
    pub(crate) fn new(problem: &Problem<'_>, waits: bool) -> Self {
        let none = problem.classes.iter().map(|_| None);
        Self { waits, by_class: none.collect(), by_pin: HashMap::new() }
    }

    /// The least loaded node that a duty fits on: one that it is pinned to, if it is; then one on
    /// which it didn't fail, unless any will do as a last resort.
    pub(crate) fn first_fit(
        &mut self,
        layout: &Layout<'_, '_>,
        duty: DutyAt,
        resort: bool,
        effort: &mut Effort,
    ) -> Option<NodeAt> {
        let problem = layout.problem;
        let facts = &problem.duties[duty];
        let (class, waits) = (facts.class, self.waits);
        if let Some(pin) = facts.pin {
            let named = problem.pins[pin.name].iter().copied();
            let queues = self.by_pin.entry((class, pin.name));
            let queues = queues.or_insert_with(|| sections(layout, class, named, waits));
            // Where it failed there are better ones than that of a preferred pin.
            let resort = resort && pin.required;
            let found = first_fit(queues, layout, duty, resort, effort);
            if found.is_some() || pin.required {
                return found;
            }
        }
        let queues = &mut self.by_class[class];
        let queues =
            queues.get_or_insert_with(|| sections(layout, class, problem.nodes.keys(), waits));
        first_fit(queues, layout, duty, resort, effort)
    }
}

/// The least loaded node that a duty fits on. Before that counts that it didn't fail there, that
/// the node isn't the leader if that is avoided, and that the zone has the fewest.
///
/// While what runs stays where it is, a node that carries less than its zone on average comes before
/// one in an emptier zone: it would get more later, and what it gets now needs no second move.
fn first_fit(
    queues: &mut [ZoneQueue],
    layout: &Layout<'_, '_>,
    duty: DutyAt,
    resort: bool,
    effort: &mut Effort,
) -> Option<NodeAt> {
    let facts = &layout.problem.duties[duty];
    let kind = &layout.problem.classes[facts.class];
    let bulk = u128::from(facts.bulk());
    let mut best = None;
    for (looked, queue) in queues.iter_mut().enumerate() {
        if effort.is_spent() && looked >= HURRIED {
            break;
        }
        effort.spend(1);
        let Some(entry) = queue.first_fit(layout, duty, resort, effort) else { continue };
        let lacks = layout.bulk(entry.node) + bulk <= queue.average
            && !layout.problem.planted.is(PlanMutant::ZonesBeforeAll);
        let crowd = if lacks { 0 } else { 1 + layout.zone(kind, entry.node) };
        let key = (facts.avoids(entry.node), queue.on_leader, crowd, entry);
        if best.is_none_or(|best| key < best) {
            best = Some(key);
        }
    }
    best.map(|(_, _, _, entry)| entry.node)
}

/// Those nodes that are open to a class, in one queue for each zone, and the leader apart if it is
/// avoided.
fn sections(
    layout: &Layout<'_, '_>,
    class: ClassAt,
    nodes: impl Iterator<Item = NodeAt>,
    waits: bool,
) -> Vec<ZoneQueue> {
    let problem = layout.problem;
    let kind = &problem.classes[class];
    let zones = kind.spread.map_or(1, |spread| problem.spreads[spread].count);
    let mut sections = vec![Vec::new(); zones * 2];
    for node in nodes {
        let (facts, place) = (&problem.nodes[node], problem.node(node));
        let taken = facts.open || problem.planted.is(PlanMutant::CordonIgnored) && !place.draining;
        if !taken || !kind.is_able(node) {
            continue;
        }
        let zone = kind.spread.map_or(0, |spread| problem.spreads[spread].of[node]);
        let section = zone * 2 + usize::from(kind.avoids_leader && place.leader);
        if let Some(section) = sections.get_mut(section) {
            section.push(Reverse(Burden::of(layout, class, node)));
        }
    }
    let queue = |(at, entries): (usize, Vec<Reverse<Burden>>)| {
        let bulk: u128 = entries.iter().map(|Reverse(entry)| layout.bulk(entry.node)).sum();
        let average =
            if waits && kind.spread.is_some() { bulk / entries.len().max(1) as u128 } else { 0 };
        let waiting = BinaryHeap::from(entries);
        ZoneQueue { on_leader: at % 2 == 1, average, waiting, parked: BinaryHeap::new() }
    };
    let all = sections.into_iter().enumerate().filter(|(_, entries)| !entries.is_empty());
    all.map(queue).collect()
}

impl ZoneQueue {
    /// The first on which a duty fits and didn't fail; as a last resort the first on which it fits.
    fn first_fit(
        &mut self,
        layout: &Layout<'_, '_>,
        duty: DutyAt,
        resort: bool,
        effort: &mut Effort,
    ) -> Option<Burden> {
        let facts = &layout.problem.duties[duty];
        let planted = layout.problem.planted;
        self.bring_back(layout, facts.class, facts.weight);
        let mut passed = Vec::new();
        let (mut first, mut failed) = (None, None);
        while let Some(mut top) = self.waiting.peek_mut() {
            let Reverse(entry) = *top;
            let now = Burden::of(layout, facts.class, entry.node);
            if now != entry && !planted.is(PlanMutant::AllToOne) {
                *top = Reverse(now);
                continue;
            }
            let verdict = layout.verdict(duty, entry.node);
            if verdict.is_none() && !facts.avoids(entry.node) {
                first = Some(entry);
                break;
            }
            effort.spend(1);
            let entry = PeekMut::pop(top);
            match verdict {
                None => {
                    failed = failed.or(Some(entry.0));
                    passed.push(entry);
                }
                Some(Rule::MaxDuties | Rule::FamilyMax) => {}
                Some(Rule::Capacity) => {
                    self.parked.push((layout.left(entry.0.node), entry.0.node));
                }
                Some(_) => passed.push(entry),
            }
            let hurried = effort.is_spent() && passed.len() >= HURRIED;
            if hurried || planted.is(PlanMutant::GivesUpEarly) {
                break;
            }
        }
        self.waiting.extend(passed);
        first.or(failed.filter(|_| resort))
    }

    /// Nodes that were too full for a heavier duty, and may not be for this one.
    fn bring_back(&mut self, layout: &Layout<'_, '_>, class: ClassAt, weight: u64) {
        while let Some(top) = self.parked.peek_mut() {
            if top.0 < u128::from(weight) {
                break;
            }
            let (_, node) = PeekMut::pop(top);
            self.waiting.push(Reverse(Burden::of(layout, class, node)));
        }
    }
}
