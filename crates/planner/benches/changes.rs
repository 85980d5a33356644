//! What a plan costs after a change: of everything, and told of the change alone. `cargo bench -p
//! incumbent-planner --bench changes`; a number given as argument is the number of nodes.
#![allow(clippy::disallowed_methods, reason = "time is what is measured")]

use std::time::Instant;

use incumbent_planner::{Pin, PlanDuty, PlanNode, Planner, Rebalance, Situation, plan};

const NODES: usize = 1_000;
const EACH: usize = 100;
const FAMILIES: usize = 5;
const ROUNDS: usize = 15;

type Change = fn(&mut Planner);

/// What changes, by its name.
const ALL: [(&str, Change); 8] = [
    ("nothing", |_| ()),
    ("a node left", |planner| {
        planner.remove_node(planner.situation().nodes.len() / 2);
    }),
    ("a node joined", |planner| {
        planner.add_node(node(NODES * 10));
    }),
    ("a node is to be emptied", |planner| {
        planner.node_mut(7).into_iter().for_each(|node| node.draining = true);
    }),
    ("a duty is paused", |planner| {
        planner.duty_mut(7).into_iter().for_each(|duty| duty.paused = true);
    }),
    ("a duty is pinned", |planner| {
        let pin = Pin::Required("node-3".to_owned());
        planner.duty_mut(7).into_iter().for_each(|duty| duty.pin = Some(pin.clone()));
    }),
    ("100 duties came", |planner| {
        for number in 0..100 {
            planner.add_duty(duty(2, 1_000_000 + number));
        }
    }),
    ("100 duties went", |planner| {
        for number in 0..100 {
            planner.remove_duty(number * 3);
        }
    }),
];

fn main() {
    let arguments = std::env::args().skip(1);
    let nodes = arguments.filter_map(|it| it.parse().ok()).next().unwrap_or(NODES);
    let steady = fleet(nodes);
    println!("{} duties on {nodes} nodes, the least of {ROUNDS}", steady.duties.len());
    println!("{:<26} {:>14} {:>14} {:>8}", "", "whole, ms", "told, ms", "moves");
    for (name, change) in ALL {
        let (mut whole, mut told, mut moves) = (f64::INFINITY, f64::INFINITY, 0);
        for _ in 0..ROUNDS {
            let mut planner = Planner::new(steady.clone());
            // There is room for more duties: what comes later doesn't have them copied.
            planner.add_duty(duty(0, 0));
            planner.remove_duty(steady.duties.len());
            let _ = planner.plan();
            let before = Instant::now();
            change(&mut planner);
            let made = planner.plan();
            told = told.min(before.elapsed().as_secs_f64() * 1e3);
            let before = Instant::now();
            let of_everything = plan(planner.situation());
            whole = whole.min(before.elapsed().as_secs_f64() * 1e3);
            assert!(made == of_everything, "after {name:?} another plan is made");
            moves = made.moves.len();
        }
        println!("{name:<26} {whole:>14.1} {told:>14.1} {moves:>8}");
    }
}

/// Every node runs the same.
fn fleet(nodes: usize) -> Situation {
    let duties = (0..FAMILIES)
        .flat_map(|family| (0..nodes * EACH / FAMILIES).map(move |number| duty(family, number)));
    let nodes = (0..nodes).map(node).collect();
    let mut situation = Situation { nodes, duties: duties.collect(), ..Situation::default() };
    situation.policy.rebalance = Rebalance::UNLIMITED;
    plan(&situation).apply(&mut situation);
    situation
}

fn node(number: usize) -> PlanNode {
    let node = PlanNode::new(format!("member-{number:05}"), format!("node-{number}"));
    (0..FAMILIES).fold(node, |node, family| node.running(format!("family-{family}"), ["1", "2"]))
}

fn duty(family: usize, number: usize) -> PlanDuty {
    let duty = PlanDuty::new(format!("family-{family}"), format!("duty-{number:07}"));
    PlanDuty { version: Some("2".to_owned()), ..duty }
}
