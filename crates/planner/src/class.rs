//! Classes of duties that the same nodes can run.

use std::collections::BTreeMap;

use crate::index::{At, Column, FamilyAt, NodeAt, SpreadAt};
use crate::mutant::{Mutant, Planted};
use crate::problem::NodeFacts;
use crate::rule::Rule;
use crate::situation::{Duty, LeaderRule, Node};

/// What makes two duties belong to one class.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ClassKey<'a> {
    family: &'a str,
    version: Option<&'a str>,
    selector: &'a BTreeMap<String, String>,
    leader: LeaderRule,
    spread: Option<&'a str>,
}

impl<'a> ClassKey<'a> {
    pub(crate) fn of(duty: &'a Duty) -> Self {
        Self {
            family: &duty.family,
            version: duty.version.as_deref(),
            selector: &duty.selector,
            leader: duty.leader,
            spread: duty.spread.as_deref(),
        }
    }
}

/// A class of duties that the same nodes can run.
pub(crate) struct Class<'a> {
    pub(crate) family: FamilyAt,
    pub(crate) spread: Option<SpreadAt>,
    pub(crate) avoids_leader: bool,
    /// One of its duties.
    sample: &'a Duty,
    /// A bit for each node, set if the node can run the class.
    able: Vec<u64>,
    /// How many nodes can run the class and get new duties.
    pub(crate) open: usize,
    /// How many duties of the family each node may run; absent if none has a limit.
    limits: Option<Column<NodeAt, u32>>,
    planted: Planted,
    /// How many nodes can't run the class, by the rule that keeps them from it.
    pub(crate) unable: BTreeMap<Rule, usize>,
}

impl<'a> Class<'a> {
    pub(crate) fn new(
        nodes: &Column<NodeAt, NodeFacts<'_>>,
        sample: &'a Duty,
        family: FamilyAt,
        spread: Option<SpreadAt>,
        planted: Planted,
    ) -> Self {
        let mut able = vec![0_u64; nodes.len().div_ceil(64)];
        let mut open = 0;
        let mut unable = BTreeMap::new();
        for (at, facts) in nodes.iter() {
            if let Some(rule) = fixed_rule(sample, facts.node, planted) {
                *unable.entry(rule).or_insert(0) += 1;
                continue;
            }
            if let Some(word) = able.get_mut(at.index() / 64) {
                *word |= 1 << (at.index() % 64);
            }
            open += usize::from(facts.open);
        }
        let limit = |node: &Node| node.families.get(&sample.family)?.max_per_node;
        let limited = nodes.iter().any(|(_, facts)| limit(facts.node).is_some());
        let all = || nodes.iter().map(|(_, facts)| limit(facts.node).unwrap_or(u32::MAX)).collect();
        let limits = limited.then(all);
        let avoids_leader = sample.leader == LeaderRule::Avoid;
        Self { family, spread, avoids_leader, sample, able, open, limits, planted, unable }
    }

    /// Whether a node can run the class, whatever else it runs.
    pub(crate) fn is_able(&self, node: NodeAt) -> bool {
        self.able.get(node.index() / 64).is_some_and(|word| word >> (node.index() % 64) & 1 == 1)
    }

    /// Why a node can't run the class.
    pub(crate) fn fixed_rule(&self, node: &Node) -> Option<Rule> {
        fixed_rule(self.sample, node, self.planted)
    }

    /// How many duties of the family a node may run.
    pub(crate) fn limit(&self, node: NodeAt) -> u32 {
        self.limits.as_ref().map_or(u32::MAX, |limits| limits[node])
    }
}

/// The rules that don't depend on what else a node runs, nor on operators.
fn fixed_rule(duty: &Duty, node: &Node, planted: Planted) -> Option<Rule> {
    let Some(support) = node.families.get(&duty.family) else { return Some(Rule::Family) };
    let known = |version: &String| support.versions.contains(version);
    if !duty.version.as_ref().is_none_or(known) && !planted.is(Mutant::VersionsIgnored) {
        return Some(Rule::Version);
    }
    if duty.selector.iter().any(|(label, value)| node.labels.get(label) != Some(value)) {
        return Some(Rule::Selector);
    }
    (duty.leader == LeaderRule::Only && !node.leader).then_some(Rule::LeaderOnly)
}

/// The values of a label, as zones over which a family is spread.
pub(crate) struct Zones {
    pub(crate) of: Column<NodeAt, usize>,
    pub(crate) count: usize,
}

impl Zones {
    /// Nodes without the label are a zone of their own.
    pub(crate) fn by_label(nodes: &Column<NodeAt, NodeFacts<'_>>, label: &str) -> Self {
        let mut zones = BTreeMap::new();
        let zone = |(_, facts): (NodeAt, &NodeFacts<'_>)| {
            let next = zones.len();
            *zones.entry(facts.node.labels.get(label).cloned()).or_insert(next)
        };
        let of = nodes.iter().map(zone).collect();
        Self { of, count: zones.len() }
    }
}
