//! A situation in canonical order, with everything resolved that planning asks for often.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use crate::class::{Class, ClassKey, Zones};
use crate::index::{ApartAt, At, ClassAt, Column, DutyAt, FamilyAt, NodeAt, PinAt, SpreadAt};
use crate::kinds::Kinds;
use crate::mutant::{Mutant, Planted};
use crate::policy::Strategy;
use crate::situation::{Duty, Node, Pin, Situation};

/// A situation in canonical order.
pub(crate) struct Problem<'a> {
    pub(crate) situation: &'a Situation,
    pub(crate) nodes: Column<NodeAt, NodeFacts<'a>>,
    pub(crate) duties: Column<DutyAt, DutyFacts<'a>>,
    pub(crate) classes: Column<ClassAt, Class<'a>>,
    pub(crate) families: Column<FamilyAt, &'a str>,
    /// The nodes of each name that duties are pinned to; maybe none.
    pub(crate) pins: Column<PinAt, Vec<NodeAt>>,
    pub(crate) spreads: Column<SpreadAt, Zones>,
    /// The weight of the lightest duty.
    pub(crate) lightest: u64,
    /// How many groups there are whose duties are kept apart.
    pub(crate) aparts: usize,
    /// Whether all nodes should carry the same, as opposed to shares.
    pub(crate) equal_shares: bool,
    pub(crate) planted: Planted,
    /// Made when first asked for: where all is well, nobody asks.
    kinds: OnceLock<Kinds>,
}

pub(crate) struct NodeFacts<'a> {
    /// Its index in the situation.
    pub(crate) given: usize,
    pub(crate) node: &'a Node,
    /// The part of all weight that it should carry, in proportion to the others'.
    pub(crate) share: u64,
    /// Whether it gets new duties.
    pub(crate) open: bool,
}

pub(crate) struct DutyFacts<'a> {
    /// Its index in the situation.
    pub(crate) given: usize,
    pub(crate) duty: &'a Duty,
    pub(crate) class: ClassAt,
    /// Where it runs, if that node exists.
    pub(crate) running: Option<NodeAt>,
    pub(crate) avoid: Vec<NodeAt>,
    pub(crate) pin: Option<PinFacts>,
    pub(crate) apart: Option<ApartAt>,
}

#[derive(Clone, Copy)]
pub(crate) struct PinFacts {
    pub(crate) required: bool,
    pub(crate) name: PinAt,
}

impl DutyFacts<'_> {
    /// What it counts for evenness.
    pub(crate) fn bulk(&self) -> u64 {
        self.duty.weight.max(1)
    }

    /// Whether it failed on a node.
    pub(crate) fn avoids(&self, node: NodeAt) -> bool {
        self.avoid.binary_search(&node).is_ok()
    }

    /// Whether only its class and weight matter to where it fits.
    pub(crate) fn is_plain(&self) -> bool {
        self.pin.is_none() && self.avoid.is_empty() && self.apart.is_none()
    }
}

impl<'a> Problem<'a> {
    pub(crate) fn new(situation: &'a Situation, planted: Planted) -> Self {
        let equal_shares = !matches!(situation.policy.strategy, Strategy::Weighted);
        let (nodes, places) = canonical_nodes(situation, equal_shares, planted);
        let mut problem = Self {
            situation,
            nodes,
            duties: Vec::new().into(),
            classes: Vec::new().into(),
            families: Vec::new().into(),
            pins: Vec::new().into(),
            spreads: Vec::new().into(),
            lightest: 0,
            aparts: 0,
            equal_shares,
            planted,
            kinds: OnceLock::new(),
        };
        problem.resolve_duties(&places);
        problem
    }

    pub(crate) fn class(&self, duty: DutyAt) -> &Class<'a> {
        &self.classes[self.duties[duty].class]
    }

    /// Which duties differ in nothing that matters.
    pub(crate) fn kinds(&self) -> &Kinds {
        self.kinds.get_or_init(|| Kinds::new(self))
    }

    /// The nodes that a duty is pinned to, if it is; in their order.
    pub(crate) fn pinned(&self, duty: DutyAt) -> Option<(bool, &[NodeAt])> {
        let pin = self.duties[duty].pin?;
        Some((pin.required, &self.pins[pin.name]))
    }

    fn resolve_duties(&mut self, places: &[NodeAt]) {
        let situation = self.situation;
        let mut order: Vec<usize> = (0..situation.duties.len()).collect();
        if !self.planted.is(Mutant::InputOrder) {
            let key = |&index: &usize| {
                situation.duties.get(index).map(|duty| (duty.family.as_str(), duty.name.as_str()))
            };
            // A caller mostly keeps its duties in order; looking is cheaper than sorting.
            if !situation.duties.is_sorted_by_key(|duty| (&duty.family, &duty.name)) {
                order.sort_by_key(key);
            }
        }
        let place = |given: usize| places.get(given).copied();
        let mut names = Names::default();
        let mut last: Option<(ClassKey<'a>, ClassAt)> = None;
        let preferred = match &situation.policy.strategy {
            Strategy::PreferredNode(name) => Some(name.as_str()),
            Strategy::Even | Strategy::Weighted | Strategy::GroupAffinity | Strategy::Own(_) => {
                None
            }
        };
        let mut duties = Vec::with_capacity(order.len());
        for given in order {
            let Some(duty) = situation.duties.get(given) else { continue };
            let key = ClassKey::of(duty);
            let class = match last {
                Some((before, class)) if before == key => class,
                _ => self.class_of(key, duty, &mut names),
            };
            last = Some((key, class));
            let pin = match &duty.pin {
                Some(Pin::Required(name)) => Some((true, name.as_str())),
                Some(Pin::Preferred(name)) => Some((false, name.as_str())),
                None => preferred.map(|name| (false, name)),
            };
            let pin =
                pin.map(|(required, name)| PinFacts { required, name: self.pin(name, &mut names) });
            let apart = duty.apart.as_deref().map(|name| names.apart(name));
            let mut avoid: Vec<NodeAt> = duty.avoid.iter().copied().filter_map(place).collect();
            avoid.sort_unstable();
            avoid.dedup();
            let running = duty.running.and_then(place);
            duties.push(DutyFacts { given, duty, class, running, avoid, pin, apart });
        }
        self.lightest = duties.iter().map(|facts| facts.duty.weight).min().unwrap_or(0);
        self.duties = duties.into();
        self.aparts = names.aparts.len();
    }

    fn class_of(&mut self, key: ClassKey<'a>, duty: &'a Duty, names: &mut Names<'a>) -> ClassAt {
        if let Some(class) = names.classes.get(&key) {
            return *class;
        }
        let family =
            *names.families.entry(&duty.family).or_insert_with(|| self.families.push(&duty.family));
        let spread = duty.spread.as_deref().map(|label| {
            let new = || self.spreads.push(Zones::by_label(&self.nodes, label));
            *names.spreads.entry((family, label)).or_insert_with(new)
        });
        let class = self.classes.push(Class::new(&self.nodes, duty, family, spread, self.planted));
        names.classes.insert(key, class);
        class
    }

    fn pin(&mut self, name: &'a str, names: &mut Names<'a>) -> PinAt {
        *names.pins.entry(name).or_insert_with(|| {
            let named = self.nodes.iter().filter(|(_, facts)| facts.node.name == name);
            self.pins.push(named.map(|(node, _)| node).collect())
        })
    }
}

/// Names that were met so far.
#[derive(Default)]
struct Names<'a> {
    classes: BTreeMap<ClassKey<'a>, ClassAt>,
    families: BTreeMap<&'a str, FamilyAt>,
    pins: BTreeMap<&'a str, PinAt>,
    aparts: BTreeMap<&'a str, ApartAt>,
    spreads: BTreeMap<(FamilyAt, &'a str), SpreadAt>,
}

impl<'a> Names<'a> {
    fn apart(&mut self, name: &'a str) -> ApartAt {
        let next = ApartAt::at(self.aparts.len());
        *self.aparts.entry(name).or_insert(next)
    }
}

/// The nodes in canonical order, and where each of the situation's went.
fn canonical_nodes(
    situation: &Situation,
    equal_shares: bool,
    planted: Planted,
) -> (Column<NodeAt, NodeFacts<'_>>, Vec<NodeAt>) {
    let mut order: Vec<(usize, &Node)> = situation.nodes.iter().enumerate().collect();
    if !planted.is(Mutant::InputOrder) {
        order.sort_by_key(|(_, node)| (&node.id, &node.name));
    }
    let shares = Shares::of(&situation.nodes, equal_shares);
    let nodes: Column<NodeAt, NodeFacts<'_>> = order
        .into_iter()
        .map(|(given, node)| NodeFacts {
            given,
            node,
            share: shares.of_node(node),
            open: !node.cordoned && !node.draining,
        })
        .collect();
    let mut places: Vec<(usize, NodeAt)> =
        nodes.iter().map(|(at, facts)| (facts.given, at)).collect();
    places.sort_unstable();
    (nodes, places.into_iter().map(|(_, at)| at).collect())
}

/// How much each node should carry in proportion to the others.
enum Shares {
    Equal,
    /// By capacity, divided so that sums stay far from overflowing.
    Capacity {
        shift: u32,
        average: u64,
    },
}

impl Shares {
    fn of(nodes: &[Node], equal: bool) -> Self {
        let capacities = || nodes.iter().filter_map(|node| node.capacity);
        let known = capacities().count() as u128;
        if equal || known == 0 {
            return Self::Equal;
        }
        let largest = capacities().max().unwrap_or(1);
        let shift = (u64::BITS - largest.leading_zeros()).saturating_sub(32);
        let average = capacities().map(u128::from).sum::<u128>() / known;
        Self::Capacity { shift, average: u64::try_from(average).unwrap_or(u64::MAX) }
    }

    fn of_node(&self, node: &Node) -> u64 {
        match self {
            Self::Equal => 1,
            Self::Capacity { shift, average } => {
                (node.capacity.unwrap_or(*average) >> shift).max(1)
            }
        }
    }
}
