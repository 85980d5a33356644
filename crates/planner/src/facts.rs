//! What is known about nodes and duties, in canonical order, with everything resolved that planning
//! asks for often. It borrows nothing from the situation, so that it can be kept while that changes.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};

use crate::class::{Class, ClassKey, Zones};
use crate::index::{ApartAt, At, ClassAt, Column, DutyAt, FamilyAt, NodeAt, PinAt, SpreadAt};
use crate::mutant::{PlanMutant, PlantedInPlan};
use crate::policy::Strategy;
use crate::situation::{Pin, PlanDuty, PlanNode, Situation};

/// Nodes and duties in canonical order.
pub(crate) struct Facts {
    pub(crate) nodes: Column<NodeAt, NodeFacts>,
    pub(crate) duties: Column<DutyAt, DutyFacts>,
    /// Where each duty runs, if that node exists.
    pub(crate) running: Column<DutyAt, Option<NodeAt>>,
    pub(crate) classes: Column<ClassAt, Class>,
    /// The nodes of each name that duties are pinned to; maybe none.
    pub(crate) pins: Column<PinAt, Vec<NodeAt>>,
    pub(crate) spreads: Column<SpreadAt, Zones>,
    /// The weight of the lightest duty.
    pub(crate) lightest: u64,
    /// Whether all nodes should carry the same, as opposed to shares.
    pub(crate) equal_shares: bool,
    /// The name of the node that duties without a pin prefer.
    pub(crate) preferred: Option<String>,
    pub(crate) planted: PlantedInPlan,
    names: Names,
}

pub(crate) struct NodeFacts {
    /// Its index in the situation.
    pub(crate) given: usize,
    /// The part of all weight that it should carry, in proportion to the others'.
    pub(crate) share: u64,
    /// Whether it gets new duties.
    pub(crate) open: bool,
}

#[derive(Clone)]
pub(crate) struct DutyFacts {
    /// Its index in the situation.
    pub(crate) given: usize,
    pub(crate) weight: u64,
    pub(crate) avoid: Vec<NodeAt>,
    pub(crate) class: ClassAt,
    pub(crate) apart: Option<ApartAt>,
    pub(crate) pin: Option<PinFacts>,
    pub(crate) paused: bool,
}

#[derive(Clone, Copy)]
pub(crate) struct PinFacts {
    pub(crate) required: bool,
    pub(crate) name: PinAt,
}

impl DutyFacts {
    /// What it counts for evenness.
    pub(crate) fn bulk(&self) -> u64 {
        self.weight.max(1)
    }

    /// Whether it failed on a node.
    pub(crate) fn avoids(&self, node: NodeAt) -> bool {
        self.avoid.binary_search(&node).is_ok()
    }

    /// Whether only its class and weight matter to where it fits.
    pub(crate) fn is_plain(&self) -> bool {
        self.pin.is_none() && self.avoid.is_empty() && self.apart.is_none()
    }

    pub(crate) fn is_required(&self) -> bool {
        self.pin.is_some_and(|pin| pin.required)
    }
}

/// Names that were met so far.
#[derive(Default)]
struct Names {
    /// Classes by what makes two duties belong to one, hashed.
    classes: HashMap<u64, Vec<ClassAt>>,
    hashes: RandomState,
    families: BTreeMap<String, FamilyAt>,
    pins: BTreeMap<String, PinAt>,
    aparts: BTreeMap<String, ApartAt>,
    spreads: BTreeMap<(FamilyAt, String), SpreadAt>,
}

impl Facts {
    pub(crate) fn new(situation: &Situation, planted: PlantedInPlan) -> Self {
        let equal_shares = shares_equally(&situation.policy.strategy);
        let nodes = node_facts(situation, equal_shares, planted);
        let places = places(&nodes);
        let mut facts = Self {
            nodes,
            duties: Vec::new().into(),
            running: Vec::new().into(),
            classes: Vec::new().into(),
            pins: Vec::new().into(),
            spreads: Vec::new().into(),
            lightest: 0,
            equal_shares,
            preferred: preferred(&situation.policy.strategy).map(str::to_owned),
            planted,
            names: Names::default(),
        };
        let order = duty_order(situation, planted);
        let mut duties = Vec::with_capacity(order.len());
        let mut running = Vec::with_capacity(order.len());
        let mut reading = Reading { situation, places, last: None };
        for given in order {
            let Some((read, runs)) = facts.read(&mut reading, given) else { continue };
            duties.push(read);
            running.push(runs);
        }
        facts.duties = duties.into();
        facts.running = running.into();
        facts.weigh();
        facts
    }

    /// How many families there are.
    pub(crate) fn families(&self) -> usize {
        self.names.families.len()
    }

    /// How many names are known, although maybe no duty has them any more.
    pub(crate) fn names(&self) -> usize {
        self.classes.len() + self.pins.len() + self.aparts() + self.spreads.len()
    }

    pub(crate) fn pin_named(&self, name: &str) -> Option<PinAt> {
        self.names.pins.get(name).copied()
    }

    /// The labels over whose values families are spread.
    pub(crate) fn spread_labels(&self) -> Vec<(SpreadAt, String)> {
        let spreads = self.names.spreads.iter();
        spreads.map(|((_, label), spread)| (*spread, label.clone())).collect()
    }

    pub(crate) fn family(&self, name: &str) -> Option<FamilyAt> {
        self.names.families.get(name).copied()
    }

    /// How many groups there are whose duties are kept apart.
    pub(crate) fn aparts(&self) -> usize {
        self.names.aparts.len()
    }

    /// Whether these go by another strategy than this one, for which all duties are to be read again.
    pub(crate) fn differ_from(&self, strategy: &Strategy) -> bool {
        self.equal_shares != shares_equally(strategy)
            || self.preferred.as_deref() != preferred(strategy)
    }

    /// Finds the lightest duty.
    pub(crate) fn weigh(&mut self) {
        self.lightest = self.duties.iter().map(|(_, facts)| facts.weight).min().unwrap_or(0);
    }

    /// Reads one duty of the situation.
    pub(crate) fn read<'a>(
        &mut self,
        reading: &mut Reading<'a>,
        given: usize,
    ) -> Option<(DutyFacts, Option<NodeAt>)> {
        let situation = reading.situation;
        let duty = situation.duties.get(given)?;
        let key = ClassKey::of(duty);
        let class = match reading.last {
            Some((before, class)) if before == key => class,
            _ => self.class_of(situation, key, duty),
        };
        reading.last = Some((key, class));
        let pin = match &duty.pin {
            Some(Pin::Required(name)) => Some((true, name.as_str())),
            Some(Pin::Preferred(name)) => Some((false, name.as_str())),
            None => preferred(&situation.policy.strategy).map(|name| (false, name)),
        };
        let pin =
            pin.map(|(required, name)| PinFacts { required, name: self.pin(situation, name) });
        let apart = duty.apart.as_deref().map(|name| self.apart(name));
        let place = |given: usize| reading.places.get(given).copied();
        let mut avoid: Vec<NodeAt> = duty.avoid.iter().copied().filter_map(place).collect();
        avoid.sort_unstable();
        avoid.dedup();
        let (weight, paused) = (duty.weight, duty.paused);
        let facts = DutyFacts { given, weight, avoid, class, apart, pin, paused };
        Some((facts, duty.running.and_then(place)))
    }

    fn class_of(&mut self, situation: &Situation, key: ClassKey<'_>, duty: &PlanDuty) -> ClassAt {
        let hash = self.names.hashes.hash_one(key);
        let same = |class: &&ClassAt| self.classes[**class].key() == key;
        let known = self.names.classes.get(&hash).and_then(|all| all.iter().find(same));
        if let Some(class) = known {
            return *class;
        }
        let families = &mut self.names.families;
        let family = families.get(&duty.family).copied().unwrap_or_else(|| {
            let next = FamilyAt::at(families.len());
            families.insert(duty.family.clone(), next);
            next
        });
        let spread = duty.spread.as_ref().map(|label| {
            let new = || self.spreads.push(Zones::by_label(&self.nodes, situation, label));
            *self.names.spreads.entry((family, label.clone())).or_insert_with(new)
        });
        let class = Class::new(&self.nodes, situation, duty, (family, spread), self.planted);
        let class = self.classes.push(class);
        self.names.classes.entry(hash).or_default().push(class);
        class
    }

    fn pin(&mut self, situation: &Situation, name: &str) -> PinAt {
        if let Some(pin) = self.pin_named(name) {
            return pin;
        }
        let named = |(_, facts): &(NodeAt, &NodeFacts)| {
            situation.nodes.get(facts.given).is_some_and(|node| node.name == name)
        };
        let named = self.nodes.iter().filter(named).map(|(node, _)| node).collect();
        let pin = self.pins.push(named);
        self.names.pins.insert(name.to_owned(), pin);
        pin
    }

    fn apart(&mut self, name: &str) -> ApartAt {
        if let Some(apart) = self.names.aparts.get(name) {
            return *apart;
        }
        let next = ApartAt::at(self.names.aparts.len());
        self.names.aparts.insert(name.to_owned(), next);
        next
    }
}

/// Duties being read, one after the other.
pub(crate) struct Reading<'a> {
    pub(crate) situation: &'a Situation,
    /// Where each of the situation's nodes is in canonical order.
    pub(crate) places: Vec<NodeAt>,
    /// Mostly the next duty is of the same class.
    pub(crate) last: Option<(ClassKey<'a>, ClassAt)>,
}

/// What duties are in order of. Those that should differ and don't keep the situation's order.
pub(crate) fn duty_key(situation: &Situation, given: usize) -> Option<(&str, &str, usize)> {
    let duty = situation.duties.get(given)?;
    Some((duty.family.as_str(), duty.name.as_str(), given))
}

fn duty_order(situation: &Situation, planted: PlantedInPlan) -> Vec<usize> {
    let mut order: Vec<usize> = (0..situation.duties.len()).collect();
    // A caller mostly keeps its duties in order; looking is cheaper than sorting.
    if !planted.is(PlanMutant::InputOrder)
        && !situation.duties.is_sorted_by_key(|duty| (&duty.family, &duty.name))
    {
        order.sort_by_key(|given| duty_key(situation, *given));
    }
    order
}

/// The nodes in canonical order.
pub(crate) fn node_facts(
    situation: &Situation,
    equal_shares: bool,
    planted: PlantedInPlan,
) -> Column<NodeAt, NodeFacts> {
    let mut order: Vec<(usize, &PlanNode)> = situation.nodes.iter().enumerate().collect();
    if !planted.is(PlanMutant::InputOrder) {
        order.sort_by_key(|(_, node)| (&node.id, &node.name));
    }
    let shares = Shares::of(&situation.nodes, equal_shares);
    let facts = |(given, node): (usize, &PlanNode)| NodeFacts {
        given,
        share: shares.of_node(node),
        open: !node.cordoned && !node.draining,
    };
    order.into_iter().map(facts).collect()
}

/// Where each of the situation's nodes went.
pub(crate) fn places(nodes: &Column<NodeAt, NodeFacts>) -> Vec<NodeAt> {
    let mut places: Vec<(usize, NodeAt)> =
        nodes.iter().map(|(at, facts)| (facts.given, at)).collect();
    places.sort_unstable();
    places.into_iter().map(|(_, at)| at).collect()
}

fn shares_equally(strategy: &Strategy) -> bool {
    !matches!(strategy, Strategy::Weighted)
}

/// The name of the node that duties prefer that aren't pinned.
fn preferred(strategy: &Strategy) -> Option<&str> {
    match strategy {
        Strategy::PreferredNode(name) => Some(name),
        Strategy::Even | Strategy::Weighted | Strategy::GroupAffinity | Strategy::Own(_) => None,
    }
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
    fn of(nodes: &[PlanNode], equal: bool) -> Self {
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

    fn of_node(&self, node: &PlanNode) -> u64 {
        match self {
            Self::Equal => 1,
            Self::Capacity { shift, average } => {
                (node.capacity.unwrap_or(*average) >> shift).max(1)
            }
        }
    }
}
