//! Situations of all kinds, small enough that rules bind often.

use std::collections::BTreeMap;
use std::sync::Arc;

use incumbent_planner::ready::{BlueGreen, EvenByFamily, OnLeader, Preferred, Together};
use incumbent_planner::{
    FamilySupport, LeaderRule, Pin, Place, PlanDuty, PlanNode, Policy, Rebalance, Situation,
    Strategy,
};
use proptest::bool as chance;
use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::{BoxedStrategy, Just, any};
use proptest::prop_oneof;
use proptest::strategy::Strategy as _;

/// Nodes, duties and a policy with every rule there is.
pub fn situation() -> BoxedStrategy<Situation> {
    (0..7_usize)
        .prop_flat_map(|nodes| {
            let all: Vec<_> = (0..nodes).map(node).collect();
            (all, vec(duty(nodes), 0..40), policy(), option::weighted(0.8, 0..nodes.max(1)))
        })
        .prop_map(|(mut nodes, mut duties, policy, leader)| {
            if let Some(node) = leader.and_then(|leader| nodes.get_mut(leader)) {
                node.leader = true;
            }
            for (number, duty) in duties.iter_mut().enumerate() {
                duty.name = format!("d{number:02}");
            }
            Situation { nodes, duties, policy }
        })
        .boxed()
}

pub fn node(number: usize) -> BoxedStrategy<PlanNode> {
    let families = btree_map(family(), support(), 1..4);
    let limits = (option::weighted(0.3, 0..30_u64), option::weighted(0.2, 0..8_u32));
    let state =
        (prop_oneof![4 => Just(0), 1 => 0..10_u64], chance::weighted(0.1), chance::weighted(0.1));
    let zone = prop_oneof!["a", "b", "c"];
    (families, limits, state, option::of(zone))
        .prop_map(move |(families, (capacity, max_duties), (load, cordoned, draining), zone)| {
            PlanNode {
                id: format!("m{number}"),
                // Two nodes share a name now and then.
                name: format!("node-{}", number.min(5)),
                labels: zone.map(|zone| ("zone".to_owned(), zone)).into_iter().collect(),
                capacity,
                max_duties,
                families,
                load,
                cordoned,
                draining,
                leader: false,
            }
        })
        .boxed()
}

fn family() -> BoxedStrategy<String> {
    prop_oneof![3 => Just("f"), 2 => Just("g"), 1 => Just("h")].prop_map(str::to_owned).boxed()
}

fn version() -> BoxedStrategy<String> {
    prop_oneof!["1", "2", "3"].boxed()
}

fn support() -> BoxedStrategy<FamilySupport> {
    (btree_set(version(), 0..4), option::weighted(0.2, 0..6_u32))
        .prop_map(|(versions, max_per_node)| FamilySupport { versions, max_per_node })
        .boxed()
}

pub fn duty(nodes: usize) -> BoxedStrategy<PlanDuty> {
    let weight = prop_oneof![6 => Just(1_u64), 2 => 0..6_u64, 1 => 0..20_u64];
    // Now and then it runs on, or failed on, a node that is gone.
    let running = option::weighted(0.7, 0..nodes + 1);
    let avoid = prop_oneof![5 => Just(Vec::new()), 1 => vec(0..nodes + 1, 0..3)];
    let what = (family(), option::weighted(0.3, version()), weight, running, avoid);
    let name = (0..7_usize).prop_map(|number| format!("node-{number}"));
    let pin = (any::<bool>(), name).prop_map(|(required, name)| {
        if required { Pin::Required(name) } else { Pin::Preferred(name) }
    });
    let group = option::weighted(0.3, prop_oneof!["x", "y", "z"]);
    let apart = option::weighted(0.2, prop_oneof!["p", "q"]);
    let leader = prop_oneof![
        8 => Just(LeaderRule::Any), 1 => Just(LeaderRule::Avoid), 1 => Just(LeaderRule::Only)
    ];
    let wishes = (option::weighted(0.15, pin), chance::weighted(0.08), group, apart, leader);
    let labels = (chance::weighted(0.1), chance::weighted(0.2));
    (what, wishes, labels)
        .prop_map(|(what, wishes, (selects, spreads))| {
            let (family, version, weight, running, avoid) = what;
            let (pin, paused, group, apart, leader) = wishes;
            let zone = || ("zone".to_owned(), "a".to_owned());
            PlanDuty {
                family,
                name: String::new(),
                weight,
                version,
                running,
                avoid,
                pin,
                paused,
                group,
                selector: selects.then(zone).into_iter().collect::<BTreeMap<_, _>>(),
                apart,
                spread: spreads.then(|| "zone".to_owned()),
                leader,
            }
        })
        .boxed()
}

pub fn policy() -> BoxedStrategy<Policy> {
    let strategy = prop_oneof![
        4 => Just(Strategy::Even),
        2 => Just(Strategy::Weighted),
        1 => Just(Strategy::PreferredNode("node-1".to_owned())),
        1 => Just(Strategy::GroupAffinity),
        1 => Just(Strategy::Own(Arc::new(EvenByFamily))),
    ];
    let own: BoxedStrategy<Arc<dyn Place>> = prop_oneof![
        Just(Arc::new(BlueGreen) as Arc<dyn Place>),
        Just(Arc::new(Preferred("node-2".to_owned())) as Arc<dyn Place>),
        Just(Arc::new(OnLeader) as Arc<dyn Place>),
        Just(Arc::new(Together) as Arc<dyn Place>),
    ]
    .boxed();
    let families = prop_oneof![3 => Just(BTreeMap::new()), 1 => btree_map(family(), own, 0..3)];
    let limits = (0..8_usize, 0..4_usize)
        .prop_map(|(per_round, per_node)| Rebalance::UpTo { per_round, per_node });
    let rebalance = prop_oneof![
        1 => Just(Rebalance::Not), 2 => limits, 3 => Just(Rebalance::UNLIMITED)
    ];
    (strategy, families, rebalance)
        .prop_map(|(strategy, families, rebalance)| Policy { strategy, families, rebalance })
        .boxed()
}

/// Duties of one weight that every node can run, some of which run nowhere.
pub fn uniform() -> BoxedStrategy<Situation> {
    let duties = |nodes| vec(option::weighted(0.9, 0..nodes), 0..120);
    // The first few nodes run everything, so that others seem to have just joined.
    (1..12_usize, 1..12_usize)
        .prop_flat_map(move |(nodes, joined)| (duties(nodes), Just(nodes + joined)))
        .prop_map(|(running, nodes)| {
            let mut situation = super::plain(nodes, running.len());
            for (duty, running) in situation.duties.iter_mut().zip(running) {
                duty.running = running;
            }
            situation.policy.rebalance = Rebalance::UNLIMITED;
            situation
        })
        .boxed()
}

/// The same, where nothing runs yet and nothing that runs may move.
pub fn fresh() -> BoxedStrategy<Situation> {
    (1..12_usize, 0..120_usize)
        .prop_map(|(nodes, duties)| {
            let mut situation = super::plain(nodes, duties);
            situation.policy.rebalance = Rebalance::Not;
            situation
        })
        .boxed()
}

/// Nodes in zones, and duties of which all or some are spread over these.
pub fn zoned() -> BoxedStrategy<Situation> {
    (1..6_usize, 1..6_usize, 4..24_usize, 1..4_usize)
        .prop_map(|(zones, each, share, spread)| {
            let nodes = zones * each;
            let mut situation = super::plain(nodes, nodes * share);
            for (number, node) in situation.nodes.iter_mut().enumerate() {
                node.labels.insert("zone".to_owned(), format!("z{}", number % zones));
                *node = node.clone().running("g", [""; 0]);
            }
            for (number, duty) in situation.duties.iter_mut().enumerate() {
                if number % spread == 0 {
                    duty.spread = Some("zone".to_owned());
                } else {
                    duty.family = "g".to_owned();
                }
            }
            situation.policy.rebalance = Rebalance::UNLIMITED;
            situation
        })
        .boxed()
}

/// Situations in which most of the work is in vain.
pub fn hard() -> BoxedStrategy<Situation> {
    let cases = super::hard::ALL.map(|(_, case)| case);
    (0..cases.len(), 8..16_usize).prop_map(move |(case, nodes)| cases[case](nodes)).boxed()
}
