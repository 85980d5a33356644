//! Why duties have no node.

use std::collections::{BTreeMap, HashMap};

use crate::index::{ClassAt, DutyAt, KindAt};
use crate::layout::Layout;
use crate::outcome::Reason;
use crate::rule::Rule;
use crate::situation::Pin;

/// How many nodes each rule takes away.
type Tally = BTreeMap<Rule, usize>;

/// Why duties have no node. Those of one kind share the reason, and those that differ in weight
/// alone share most of it.
pub(crate) struct Reasons<'l, 'p, 'a> {
    layout: &'l Layout<'p, 'a>,
    by_kind: HashMap<KindAt, Tally>,
    by_class: HashMap<ClassAt, Weighed>,
}

/// The nodes of a class, by what they have left.
struct Weighed {
    /// Those that take nothing of the class, whatever its weight.
    closed: Tally,
    /// What the others have left.
    left: Vec<u128>,
}

impl<'l, 'p, 'a> Reasons<'l, 'p, 'a> {
    pub(crate) fn new(layout: &'l Layout<'p, 'a>) -> Self {
        Self { layout, by_kind: HashMap::new(), by_class: HashMap::new() }
    }

    /// Why a duty, which no strategy detached, has no node.
    pub(crate) fn reason(&mut self, duty: DutyAt) -> Reason {
        let problem = self.layout.problem;
        let facts = &problem.duties[duty];
        if facts.duty.paused {
            return Reason::Paused;
        }
        if problem.nodes.len() == 0 {
            return Reason::NoNodes;
        }
        if let (Some(Pin::Required(name)), Some((_, []))) = (&facts.duty.pin, problem.pinned(duty))
        {
            return Reason::UnknownPin(name.clone());
        }
        let rules = self.rules(duty);
        // A node that no rule takes away is one that wasn't reached.
        let all = rules.values().sum::<usize>() == problem.nodes.len();
        if all { Reason::RuledOut(rules) } else { Reason::NotTried }
    }

    fn rules(&mut self, duty: DutyAt) -> Tally {
        let facts = &self.layout.problem.duties[duty];
        if facts.is_plain() && facts.running.is_none() {
            let weighed = self.by_class.entry(facts.class);
            return weighed.or_insert_with(|| weigh(self.layout, duty)).rules(facts.duty.weight);
        }
        let kind = self.layout.problem.kinds().of(duty);
        self.by_kind.entry(kind).or_insert_with(|| count(self.layout, duty)).clone()
    }
}

impl Weighed {
    /// What keeps a duty of this weight off the nodes.
    fn rules(&self, weight: u64) -> Tally {
        let mut rules = self.closed.clone();
        let full = self.left.partition_point(|left| *left < u128::from(weight));
        if full > 0 {
            *rules.entry(Rule::Capacity).or_insert(0) += full;
        }
        rules
    }
}

fn count(layout: &Layout<'_, '_>, duty: DutyAt) -> Tally {
    let class = layout.problem.class(duty);
    let mut rules = class.unable.clone();
    for node in layout.problem.nodes.keys().filter(|node| class.is_able(*node)) {
        if let Some(rule) = layout.verdict(duty, node) {
            *rules.entry(rule).or_insert(0) += 1;
        }
    }
    rules
}

fn weigh(layout: &Layout<'_, '_>, duty: DutyAt) -> Weighed {
    let class = layout.problem.class(duty);
    let (mut closed, mut left) = (class.unable.clone(), Vec::new());
    for node in layout.problem.nodes.keys().filter(|node| class.is_able(*node)) {
        match layout.verdict(duty, node) {
            // More than full, so that not even a weight of nothing fits.
            Some(Rule::Capacity) if layout.is_overfull(node) => {
                *closed.entry(Rule::Capacity).or_insert(0) += 1;
            }
            None | Some(Rule::Capacity) => left.push(layout.left(node)),
            Some(rule) => *closed.entry(rule).or_insert(0) += 1,
        }
    }
    left.sort_unstable();
    Weighed { closed, left }
}
