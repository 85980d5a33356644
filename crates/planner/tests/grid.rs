//! The grid, users' own strategies, and explanations.

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use common::{counts, plain};
use incumbent_planner::ready::{BlueGreen, EvenByFamily, Together};
use incumbent_planner::{
    Because, Grid, Pin, Place, PlanNode, Reason, Rebalance, Refusal, Rule, Situation, Strategy,
    Whereabouts, Why, explain, plan,
};

/// Puts everything on the first node, and notes what the grid refuses.
#[derive(Debug)]
struct Stubborn;

impl Place for Stubborn {
    fn place(&self, grid: &mut Grid<'_, '_>) {
        for (duty, _, _) in grid.duties() {
            let refused = grid.move_to(duty, 0);
            assert!(matches!(refused, Ok(()) | Err(Refusal::Rule(Rule::MaxDuties))), "{refused:?}");
        }
        assert_eq!(grid.move_to(0, 99), Err(Refusal::UnknownNode));
        assert_eq!(grid.move_to(99, 0), Err(Refusal::UnknownDuty));
        assert_eq!(grid.assign(0, 1), Err(Refusal::Placed(0)));
        assert_eq!(grid.run_on_leader(0), Err(Refusal::NoLeader));
        assert_eq!(grid.pin(0, "nobody"), Err(Refusal::UnknownNode));
    }
}

#[test]
fn a_strategy_cannot_break_a_rule() {
    let mut situation = plain(3, 7);
    situation.policy.strategy = Strategy::Own(Arc::new(Stubborn));
    situation.nodes[0].max_duties = Some(4);
    let first = plan(&situation);
    assert_eq!(counts(&situation, &first)[0], 4);
    // What it didn't place got the least loaded nodes.
    assert!(first.unplaced.is_empty(), "{first:?}");
    first.apply(&mut situation);
    assert_eq!(plan(&situation).moves, []);
}

/// Wants the last duty off, and the others on the leader.
#[derive(Debug)]
struct Picky;

impl Place for Picky {
    fn place(&self, grid: &mut Grid<'_, '_>) {
        let duties = grid.duties();
        for (duty, _, _) in &duties {
            assert_eq!(grid.run_on_leader(*duty), Ok(()));
        }
        if let Some((last, _, _)) = duties.last() {
            assert_eq!(grid.detach(*last), Ok(()));
            assert_eq!(grid.place_of(*last), None);
        }
    }
}

#[test]
fn what_a_strategy_detaches_runs_nowhere() {
    let mut situation = plain(2, 3);
    situation.nodes[1].leader = true;
    situation.duties[2].running = Some(0);
    situation.policy.strategy = Strategy::Own(Arc::new(Picky));
    let plan = plan(&situation);
    assert_eq!(plan.target, [Some(1), Some(1), None]);
    assert_eq!(plan.unplaced[0].reason, Reason::Detached);
    assert_eq!((plan.moves[2].from, plan.moves[2].why), (Some(0), Why::Stopped));
}

#[test]
fn the_limits_hold_for_strategies_too() {
    let mut situation = plain(2, 6);
    situation.duties.iter_mut().for_each(|duty| duty.running = Some(0));
    situation.nodes[1].leader = true;
    situation.policy.strategy = Strategy::Own(Arc::new(incumbent_planner::ready::OnLeader));
    situation.policy.rebalance = Rebalance::UpTo { per_round: 2, per_node: 9 };
    let plan = plan(&situation);
    assert_eq!((plan.moves.len(), plan.balanced), (2, false));
    assert!(plan.moves.iter().all(|step| step.why == Why::Strategy));
}

fn two_families(nodes: usize, duties: usize) -> Situation {
    let mut situation = plain(nodes, duties);
    for node in &mut situation.nodes {
        *node = PlanNode::clone(node).running("g", ["1", "2"]);
    }
    for duty in situation.duties.iter_mut().skip(duties / 2) {
        duty.family = "g".to_owned();
    }
    situation
}

#[test]
fn a_family_may_have_a_placement_of_its_own() {
    let mut situation = two_families(4, 8);
    for (number, duty) in situation.duties.iter_mut().enumerate() {
        duty.group = Some("all".to_owned());
        duty.running = Some(number % 4);
    }
    situation.policy.families =
        BTreeMap::from([("g".to_owned(), Arc::new(Together) as Arc<dyn Place>)]);
    let plan = plan(&situation);
    let home = plan.target[4];
    assert!(home.is_some() && plan.target[4..].iter().all(|node| *node == home), "{plan:?}");
    // The others make up for it: they are on the nodes that carry less.
    let others: Vec<_> = plan.target[..4].iter().filter(|node| **node == home).collect();
    assert!(others.is_empty(), "{plan:?}");
}

/// Found by `PROPTEST_CASES=60000 cargo test -p incumbent-planner a_balanced`: the other family's
/// duty found its home only after the strategy had been asked.
#[test]
fn a_strategy_sees_what_recovery_did() {
    let mut situation = two_families(2, 2);
    situation.nodes[0].load = 1;
    situation.nodes[1].load = 2;
    situation.nodes[1].families.remove("f");
    situation.duties[0].weight = 2;
    situation.duties[1].running = Some(0);
    situation.policy.families =
        BTreeMap::from([("g".to_owned(), Arc::new(Together) as Arc<dyn Place>)]);
    let first = plan(&situation);
    assert_eq!(first.target, [Some(0), Some(1)]);
    first.apply(&mut situation);
    assert_eq!(plan(&situation).moves, []);
}

#[test]
fn each_family_or_version_can_be_even_by_itself() {
    let mut situation = two_families(2, 12);
    situation.duties.iter_mut().for_each(|duty| duty.running = Some(0));
    for (number, duty) in situation.duties.iter_mut().enumerate().skip(6) {
        duty.version = Some(if number < 8 { "1" } else { "2" }.to_owned());
    }
    let on_first = |situation: &Situation, wanted: &dyn Fn(usize) -> bool| {
        let plan = plan(situation);
        (0..12).filter(|duty| wanted(*duty) && plan.target[*duty] == Some(0)).count()
    };
    situation.policy.strategy = Strategy::Own(Arc::new(EvenByFamily));
    assert_eq!(on_first(&situation, &|duty| duty < 6), 3);
    assert_eq!(on_first(&situation, &|duty| duty >= 6), 3);
    situation.policy.strategy = Strategy::Own(Arc::new(BlueGreen));
    assert_eq!(on_first(&situation, &|duty| duty < 6), 3);
    assert_eq!(on_first(&situation, &|duty| (6..8).contains(&duty)), 1);
    assert_eq!(on_first(&situation, &|duty| duty >= 8), 2);
}

#[test]
fn an_explanation_names_every_node() {
    let mut situation = plain(3, 2);
    situation.nodes[1].cordoned = true;
    situation.duties[1].pin = Some(Pin::Required("node-9".to_owned()));
    let first = plan(&situation);
    first.apply(&mut situation);
    situation.duties[0].avoid = vec![2];
    let second = plan(&situation);
    let told = explain(&situation, &second, 0).unwrap();
    assert_eq!(told.place, Whereabouts::Stays("node-0".to_owned()));
    let because: Vec<Because> = told.others.iter().map(|other| other.because).collect();
    assert_eq!(because, [Because::Ruled(Rule::Cordoned), Because::Failed]);
    assert_eq!(
        told.to_string(),
        "f/d00000 stays on node-0\n  node-1 is cordoned\n  node-2 is a node on which it failed"
    );
    let lost = explain(&situation, &second, 1).unwrap().to_string();
    let expected = "f/d00001 runs nowhere: it is pinned to \"node-9\", which doesn't exist";
    assert!(lost.starts_with(expected), "{lost}");
    assert_eq!(explain(&situation, &second, 2), None);
}

#[test]
fn an_explanation_says_what_waits_and_what_gains_nothing() {
    let mut situation = plain(2, 3);
    situation.duties.iter_mut().for_each(|duty| duty.running = Some(0));
    situation.policy.rebalance = Rebalance::Not;
    let waits = plan(&situation);
    let told = explain(&situation, &waits, 0).unwrap();
    assert_eq!(told.others[0].because, Because::NotYet);
    situation.policy.rebalance = Rebalance::UNLIMITED;
    let plan = plan(&situation);
    let stayed = plan.target.iter().position(|node| *node == Some(0)).unwrap();
    let told = explain(&situation, &plan, stayed).unwrap();
    assert_eq!(told.others[0].because, Because::NoGain { carries: 1, here: 1 });
}
