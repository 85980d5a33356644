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
    /// How many nodes can't run each class, whatever else they run.
    unable: HashMap<ClassAt, Tally>,
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
        Self { layout, unable: HashMap::new(), by_kind: HashMap::new(), by_class: HashMap::new() }
    }

    /// Why a duty, which no strategy detached, has no node.
    pub(crate) fn reason(&mut self, duty: DutyAt) -> Reason {
        let problem = self.layout.problem;
        let facts = &problem.duties[duty];
        if facts.paused {
            return Reason::Paused;
        }
        if problem.nodes.len() == 0 {
            return Reason::NoNodes;
        }
        if let (Some(Pin::Required(name)), Some((_, []))) =
            (&problem.duty(duty).pin, problem.pinned(duty))
        {
            return Reason::UnknownPin(name.clone());
        }
        let rules = self.rules(duty);
        // A node that no rule takes away is one that wasn't reached.
        let all = rules.values().sum::<usize>() == problem.nodes.len();
        if all { Reason::RuledOut(rules) } else { Reason::NotTried }
    }

    fn rules(&mut self, duty: DutyAt) -> Tally {
        let problem = self.layout.problem;
        let facts = &problem.duties[duty];
        if facts.is_plain() && problem.running[duty].is_none() {
            if !self.by_class.contains_key(&facts.class) {
                let weighed = weigh(self.layout, duty, self.unable(facts.class).clone());
                self.by_class.insert(facts.class, weighed);
            }
            let weighed = self.by_class.get(&facts.class);
            return weighed.map_or_else(Tally::new, |weighed| weighed.rules(facts.weight));
        }
        let kind = problem.kinds().of(duty);
        if let Some(rules) = self.by_kind.get(&kind) {
            return rules.clone();
        }
        let rules = count(self.layout, duty, self.unable(facts.class).clone());
        self.by_kind.insert(kind, rules.clone());
        rules
    }

    /// How many nodes can't run a class, by the rule that keeps them from it.
    fn unable(&mut self, class: ClassAt) -> &Tally {
        let problem = self.layout.problem;
        self.unable.entry(class).or_insert_with(|| {
            let mut unable = Tally::new();
            let class = &problem.classes[class];
            for node in problem.nodes.keys().filter(|node| !class.is_able(*node)) {
                if let Some(rule) = class.fixed_rule(problem.node(node)) {
                    *unable.entry(rule).or_insert(0) += 1;
                }
            }
            unable
        })
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

fn count(layout: &Layout<'_, '_>, duty: DutyAt, mut rules: Tally) -> Tally {
    let class = layout.problem.class(duty);
    for node in layout.problem.nodes.keys().filter(|node| class.is_able(*node)) {
        if let Some(rule) = layout.verdict(duty, node) {
            *rules.entry(rule).or_insert(0) += 1;
        }
    }
    rules
}

/// What is known of the nodes for a class, from those that can't run it on.
fn weigh(layout: &Layout<'_, '_>, duty: DutyAt, mut closed: Tally) -> Weighed {
    let class = layout.problem.class(duty);
    let mut left = Vec::new();
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
