//! Situations that are hard to plan: much doesn't fit, and it takes a search to know that.
//!
//! Each is a fleet in trouble, of any size: about a hundred duties a node.

use std::collections::BTreeMap;
use std::sync::Arc;

use incumbent_planner::ready::{EvenByFamily, OnLeader, Together};
use incumbent_planner::{
    FamilySupport, Grid, LeaderRule, Pin, Place, PlanDuty, PlanNode, Rebalance, Situation, Strategy,
};

/// A hard situation, by name.
pub type Case = (&'static str, fn(usize) -> Situation);

/// How many duties there are for each node.
pub const EACH: usize = 100;

/// All of them.
pub const ALL: [Case; 25] = [
    ("apart, room for half", apart),
    ("apart, half of the nodes lost", apart_lost),
    ("apart, half of the nodes drain", apart_drained),
    ("apart, some room left where it doesn't help", apart_stuck),
    ("apart, in groups larger than the fleet", apart_large),
    ("apart, uneven after a join", apart_joined),
    ("spread, a zone lost", spread_lost),
    ("spread, a zone back", spread_back),
    ("spread, a zone full", spread_full),
    ("spread and apart, a zone lost, quiet", spread_apart),
    ("required pins to full nodes", pins_required),
    ("preferred pins to full nodes", pins_preferred),
    ("one name for many nodes", pins_shared),
    ("selectors that few nodes match", selectors),
    ("a selector for each duty", selectors_each),
    ("families with limits a node", families),
    ("weights that don't fit", weights),
    ("weights, half of the nodes lost", weights_lost),
    ("failed on most nodes", avoided),
    ("away from a leader, and only there", leaders),
    ("group affinity, room for half", groups),
    ("group affinity, a node joined", groups_joined),
    ("even by family, room for half", even_by_family),
    ("on the leader as far as it fits", on_leader),
    ("a strategy that asks for every duty", own),
];

fn node(number: usize) -> PlanNode {
    PlanNode::new(format!("m{number:04}"), format!("node-{number}")).running("f", [""; 0])
}

fn fleet(nodes: usize) -> Situation {
    let mut situation = Situation {
        nodes: (0..nodes).map(node).collect(),
        duties: (0..nodes * EACH)
            .map(|number| PlanDuty::new("f", format!("d{number:06}")))
            .collect(),
        ..Situation::default()
    };
    situation.policy.rebalance = Rebalance::UNLIMITED;
    situation
}

/// Every duty runs, duty by duty on the next node.
fn running(nodes: usize) -> Situation {
    let mut situation = fleet(nodes);
    for (number, duty) in situation.duties.iter_mut().enumerate() {
        duty.running = Some(number % nodes);
    }
    situation
}

fn with_capacity(situation: &mut Situation, capacity: usize) {
    situation.nodes.iter_mut().for_each(|node| node.capacity = Some(capacity as u64));
}

/// Groups of five: neighbours, which run on different nodes.
fn in_fives(situation: &mut Situation) {
    for (number, duty) in situation.duties.iter_mut().enumerate() {
        duty.apart = Some(format!("replicas-{:05}", number / 5));
    }
}

/// Only the first so many nodes are left.
fn lose(situation: &mut Situation, left: usize) {
    situation.nodes.truncate(left);
    for duty in &mut situation.duties {
        duty.running = duty.running.filter(|node| *node < left);
    }
}

fn in_zones(situation: &mut Situation, zones: usize) {
    for (number, node) in situation.nodes.iter_mut().enumerate() {
        node.labels.insert("zone".to_owned(), format!("z{}", number % zones));
    }
    situation.duties.iter_mut().for_each(|duty| duty.spread = Some("zone".to_owned()));
}

fn apart(nodes: usize) -> Situation {
    let mut situation = fleet(nodes);
    in_fives(&mut situation);
    with_capacity(&mut situation, EACH / 2);
    situation
}

fn apart_lost(nodes: usize) -> Situation {
    let mut situation = running(nodes);
    in_fives(&mut situation);
    with_capacity(&mut situation, EACH + EACH / 10);
    lose(&mut situation, nodes / 2);
    situation
}

fn apart_drained(nodes: usize) -> Situation {
    let mut situation = running(nodes);
    in_fives(&mut situation);
    with_capacity(&mut situation, EACH + EACH / 10);
    situation.nodes.iter_mut().skip(nodes / 2).for_each(|node| node.draining = true);
    situation
}

/// Every group may use four nodes only, which others use too; the rest of the fleet is idle.
fn apart_stuck(nodes: usize) -> Situation {
    let mut situation = fleet(nodes);
    in_fives(&mut situation);
    for (number, node) in situation.nodes.iter_mut().enumerate() {
        node.labels.insert("rack".to_owned(), format!("r{}", number / 4));
    }
    let racks = nodes.div_ceil(4);
    for (number, duty) in situation.duties.iter_mut().enumerate() {
        let rack = format!("r{}", number / 5 % racks);
        duty.selector = BTreeMap::from([("rack".to_owned(), rack)]);
    }
    situation
}

fn apart_large(nodes: usize) -> Situation {
    let mut situation = fleet(nodes);
    for (number, duty) in situation.duties.iter_mut().enumerate() {
        duty.apart = Some(format!("replicas-{:05}", number / (2 * nodes)));
    }
    situation
}

fn apart_joined(nodes: usize) -> Situation {
    let mut situation = fleet(nodes);
    in_fives(&mut situation);
    for (number, duty) in situation.duties.iter_mut().enumerate() {
        duty.running = Some(number % (nodes / 2).max(1));
    }
    situation
}

fn spread_lost(nodes: usize) -> Situation {
    let mut situation = running(nodes);
    with_capacity(&mut situation, EACH + EACH / 10);
    in_zones(&mut situation, 4);
    for number in (0..nodes).filter(|number| number % 4 == 3) {
        situation.nodes[number].families.clear();
    }
    situation
}

fn spread_back(nodes: usize) -> Situation {
    let mut situation = fleet(nodes);
    in_zones(&mut situation, 4);
    for (number, duty) in situation.duties.iter_mut().enumerate() {
        let place = number % nodes;
        duty.running = Some(if place % 4 == 3 { (place + 1 + number % 3) % nodes } else { place });
    }
    situation
}

/// What is in three zones would go to the fourth, which has no room.
fn spread_full(nodes: usize) -> Situation {
    let mut situation = spread_back(nodes);
    for node in situation.nodes.iter_mut().skip(3).step_by(4) {
        node.capacity = Some(EACH as u64 / 10);
    }
    situation
}

fn spread_apart(nodes: usize) -> Situation {
    let mut situation = spread_lost(nodes);
    in_fives(&mut situation);
    situation.policy.rebalance = Rebalance::Not;
    situation
}

fn pins_required(nodes: usize) -> Situation {
    let mut situation = running(nodes);
    with_capacity(&mut situation, EACH + EACH / 10);
    for (number, duty) in situation.duties.iter_mut().enumerate().step_by(2) {
        duty.pin = Some(Pin::Required(format!("node-{}", number % (nodes / 10).max(1))));
    }
    situation
}

fn pins_preferred(nodes: usize) -> Situation {
    let mut situation = running(nodes);
    with_capacity(&mut situation, EACH + EACH / 10);
    for (number, duty) in situation.duties.iter_mut().enumerate() {
        duty.pin = Some(Pin::Preferred(format!("node-{}", number % (nodes / 10).max(1))));
    }
    lose(&mut situation, nodes * 3 / 4);
    situation
}

fn pins_shared(nodes: usize) -> Situation {
    let mut situation = running(nodes);
    with_capacity(&mut situation, EACH);
    for (number, node) in situation.nodes.iter_mut().enumerate() {
        node.name = if number % 2 == 0 { "even" } else { "odd" }.to_owned();
    }
    for (number, duty) in situation.duties.iter_mut().enumerate() {
        let name = if number % 4 == 0 { "odd" } else { "even" }.to_owned();
        let pin = if number % 3 == 0 { Pin::Preferred(name) } else { Pin::Required(name) };
        duty.pin = Some(pin);
    }
    situation
}

fn selectors(nodes: usize) -> Situation {
    let mut situation = fleet(nodes);
    with_capacity(&mut situation, EACH + EACH / 10);
    for (number, node) in situation.nodes.iter_mut().enumerate() {
        node.labels.insert("disk".to_owned(), format!("{}", number / 2));
    }
    // A quarter of the disks is wanted by all.
    for (number, duty) in situation.duties.iter_mut().enumerate() {
        let disk = format!("{}", number % (nodes / 8).max(1));
        duty.selector = BTreeMap::from([("disk".to_owned(), disk)]);
    }
    situation
}

fn selectors_each(nodes: usize) -> Situation {
    let mut situation = fleet(nodes);
    with_capacity(&mut situation, EACH / 2);
    for (number, node) in situation.nodes.iter_mut().enumerate() {
        for size in 0..8 {
            node.labels.insert(format!("size-{size}"), format!("{}", number >> size & 1));
        }
    }
    for (number, duty) in situation.duties.iter_mut().enumerate() {
        let label = |size: usize| (format!("size-{size}"), format!("{}", number >> size & 1));
        duty.selector = (0..8).filter(|size| number >> (size + 4) & 1 == 1).map(label).collect();
        duty.version = (number % 7 == 0).then(|| format!("{number}"));
    }
    situation
}

fn families(nodes: usize) -> Situation {
    let mut situation = fleet(nodes);
    let names: Vec<String> = (0..EACH).map(|family| format!("f{family:03}")).collect();
    for node in &mut situation.nodes {
        let limit = |(number, name): (usize, &String)| {
            let max_per_node = Some(u32::from(number % 2 == 0));
            (name.clone(), FamilySupport { max_per_node, ..FamilySupport::default() })
        };
        node.families = names.iter().enumerate().map(limit).collect();
        node.max_duties = Some(EACH as u32);
    }
    for (number, duty) in situation.duties.iter_mut().enumerate() {
        duty.family.clone_from(&names[number % names.len()]);
        duty.apart = (number % 3 == 0).then(|| format!("a{}", number / 12));
    }
    situation
}

/// No two weigh the same, and the nodes are of different sizes.
fn weights(nodes: usize) -> Situation {
    let mut situation = fleet(nodes);
    for (number, duty) in situation.duties.iter_mut().enumerate() {
        duty.weight = 1 + (number * 7_919 % (nodes * EACH)) as u64;
    }
    let middle = (nodes * EACH / 2 * EACH) as u64;
    for (number, node) in situation.nodes.iter_mut().enumerate() {
        node.capacity = Some(middle * (1 + number as u64 % 10) / 11);
    }
    situation
}

fn weights_lost(nodes: usize) -> Situation {
    let mut situation = weights(nodes);
    for (number, duty) in situation.duties.iter_mut().enumerate() {
        duty.running = Some(number % nodes);
        duty.apart = (number % 4 == 0).then(|| format!("a{}", number / 20));
    }
    lose(&mut situation, nodes / 2);
    situation
}

fn avoided(nodes: usize) -> Situation {
    let mut situation = running(nodes);
    with_capacity(&mut situation, EACH + EACH / 10);
    for (number, duty) in situation.duties.iter_mut().enumerate() {
        duty.avoid = (0..nodes).filter(|node| (node + number) % 16 != 0).collect();
    }
    lose(&mut situation, nodes * 3 / 4);
    situation
}

fn leaders(nodes: usize) -> Situation {
    let mut situation = running(nodes);
    in_fives(&mut situation);
    with_capacity(&mut situation, EACH);
    situation.nodes[0].leader = true;
    for (number, duty) in situation.duties.iter_mut().enumerate() {
        duty.leader = if number % 5 == 0 { LeaderRule::Only } else { LeaderRule::Avoid };
    }
    situation
}

fn in_groups(situation: &mut Situation) {
    for (number, duty) in situation.duties.iter_mut().enumerate() {
        duty.group = Some(format!("group-{:05}", number / 7));
    }
}

fn groups(nodes: usize) -> Situation {
    let mut situation = fleet(nodes);
    situation.policy.strategy = Strategy::GroupAffinity;
    in_groups(&mut situation);
    with_capacity(&mut situation, EACH / 2);
    situation
}

fn groups_joined(nodes: usize) -> Situation {
    let mut situation = fleet(nodes);
    situation.policy.families = BTreeMap::from([("f".to_owned(), Arc::new(Together) as _)]);
    in_groups(&mut situation);
    for (number, duty) in situation.duties.iter_mut().enumerate() {
        duty.running = Some(number / 7 % (nodes - nodes / 10).max(1));
    }
    situation
}

fn even_by_family(nodes: usize) -> Situation {
    let mut situation = families(nodes);
    situation.policy.strategy = Strategy::Own(Arc::new(EvenByFamily));
    situation
}

fn on_leader(nodes: usize) -> Situation {
    let mut situation = apart_lost(nodes);
    situation.nodes[0].leader = true;
    situation.policy.strategy = Strategy::Own(Arc::new(OnLeader));
    situation
}

/// As somebody might write it who thinks of one duty at a time.
#[derive(Debug)]
struct OneByOne;

impl Place for OneByOne {
    fn place(&self, grid: &mut Grid<'_, '_>) {
        for (duty, _, node) in grid.duties() {
            let Some(best) = grid.least_loaded(duty) else { continue };
            if node.is_none_or(|node| grid.carries(node) > grid.carries(best) + 1) {
                let _ = grid.move_to(duty, best);
            }
        }
    }
}

fn own(nodes: usize) -> Situation {
    let mut situation = apart_lost(nodes);
    situation.policy.strategy = Strategy::Own(Arc::new(OneByOne));
    situation
}
