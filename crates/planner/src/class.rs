//! Classes of duties that the same nodes can run.

use std::collections::BTreeMap;

use crate::facts::NodeFacts;
use crate::index::{At, Column, FamilyAt, NodeAt, SpreadAt};
use crate::mutant::{PlanMutant, PlantedInPlan};
use crate::rule::Rule;
use crate::situation::{LeaderRule, PlanDuty, PlanNode, Situation};

/// What makes two duties belong to one class.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ClassKey<'a> {
    family: &'a str,
    version: Option<&'a str>,
    selector: &'a BTreeMap<String, String>,
    leader: LeaderRule,
    spread: Option<&'a str>,
}

impl<'a> ClassKey<'a> {
    pub(crate) fn of(duty: &'a PlanDuty) -> Self {
        Self {
            family: &duty.family,
            version: duty.version.as_deref(),
            selector: &duty.selector,
            leader: duty.leader,
            spread: duty.spread.as_deref(),
        }
    }

    /// A duty of this class.
    fn sample(&self) -> PlanDuty {
        PlanDuty {
            family: self.family.to_owned(),
            version: self.version.map(str::to_owned),
            selector: self.selector.clone(),
            leader: self.leader,
            spread: self.spread.map(str::to_owned),
            ..PlanDuty::default()
        }
    }
}

/// A class of duties that the same nodes can run.
pub(crate) struct Class {
    pub(crate) family: FamilyAt,
    pub(crate) spread: Option<SpreadAt>,
    pub(crate) avoids_leader: bool,
    /// A duty with all that makes duties belong to it, and nothing else.
    sample: PlanDuty,
    /// A bit for each node, set if the node can run the class.
    able: Vec<u64>,
    /// How many nodes can run the class and get new duties.
    pub(crate) open: usize,
    /// How many duties of the family each node may run; absent if none has a limit.
    limits: Option<Column<NodeAt, u32>>,
    planted: PlantedInPlan,
}

impl Class {
    pub(crate) fn new(
        nodes: &Column<NodeAt, NodeFacts>,
        situation: &Situation,
        sample: &PlanDuty,
        (family, spread): (FamilyAt, Option<SpreadAt>),
        planted: PlantedInPlan,
    ) -> Self {
        let avoids_leader = sample.leader == LeaderRule::Avoid;
        let (able, open, limits) = (Vec::new(), 0, None);
        let sample = ClassKey::of(sample).sample();
        let mut class = Self { family, spread, avoids_leader, sample, able, open, limits, planted };
        class.follow(nodes, situation, |_| None);
        class
    }

    /// What makes two duties belong to the class.
    pub(crate) fn key(&self) -> ClassKey<'_> {
        ClassKey::of(&self.sample)
    }

    /// Goes by these nodes. Those that are as they were say which they were.
    pub(crate) fn follow(
        &mut self,
        nodes: &Column<NodeAt, NodeFacts>,
        situation: &Situation,
        was: impl Fn(NodeAt) -> Option<NodeAt>,
    ) {
        let mut able = vec![0_u64; nodes.len().div_ceil(64)];
        let mut limits: Option<Column<NodeAt, u32>> = None;
        self.open = 0;
        for (at, facts) in nodes.iter() {
            let (is_able, limit) = match (was(at), situation.nodes.get(facts.given)) {
                (Some(before), _) => (self.is_able(before), self.limit(before)),
                (None, Some(node)) => (self.fixed_rule(node).is_none(), self.limit_of(node)),
                (None, None) => (false, u32::MAX),
            };
            if limit < u32::MAX {
                limits.get_or_insert_with(|| Column::filled(nodes.len(), u32::MAX))[at] = limit;
            }
            if let Some(word) = able.get_mut(at.index() / 64).filter(|_| is_able) {
                *word |= 1 << (at.index() % 64);
                self.open += usize::from(facts.open);
            }
        }
        (self.able, self.limits) = (able, limits);
    }

    /// Whether a node can run the class, whatever else it runs.
    pub(crate) fn is_able(&self, node: NodeAt) -> bool {
        self.able.get(node.index() / 64).is_some_and(|word| word >> (node.index() % 64) & 1 == 1)
    }

    /// Why a node can't run the class.
    pub(crate) fn fixed_rule(&self, node: &PlanNode) -> Option<Rule> {
        fixed_rule(&self.sample, node, self.planted)
    }

    /// How many duties of the family a node may run.
    pub(crate) fn limit(&self, node: NodeAt) -> u32 {
        self.limits.as_ref().map_or(u32::MAX, |limits| limits[node])
    }

    fn limit_of(&self, node: &PlanNode) -> u32 {
        let support = node.families.get(&self.sample.family);
        support.and_then(|support| support.max_per_node).unwrap_or(u32::MAX)
    }
}

/// The rules that don't depend on what else a node runs, nor on operators.
fn fixed_rule(duty: &PlanDuty, node: &PlanNode, planted: PlantedInPlan) -> Option<Rule> {
    let Some(support) = node.families.get(&duty.family) else { return Some(Rule::Family) };
    let known = |version: &String| support.versions.contains(version);
    if !duty.version.as_ref().is_none_or(known) && !planted.is(PlanMutant::VersionsIgnored) {
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
    pub(crate) fn by_label(
        nodes: &Column<NodeAt, NodeFacts>,
        situation: &Situation,
        label: &str,
    ) -> Self {
        let mut zones: BTreeMap<Option<&String>, usize> = BTreeMap::new();
        let zone = |(_, facts): (NodeAt, &NodeFacts)| {
            let next = zones.len();
            let node = situation.nodes.get(facts.given);
            *zones.entry(node.and_then(|node| node.labels.get(label))).or_insert(next)
        };
        let of = nodes.iter().map(zone).collect();
        Self { of, count: zones.len() }
    }
}
