//! What users of the planner count on, case by case.

mod common;

use std::collections::BTreeMap;

use common::properties::rolling_restart;
use common::{Planner, counts, node, plain, remove};
use incumbent_planner::{
    FamilySupport, LeaderRule, Pin, Plan, PlanDuty, PlanNode, Reason, Rebalance, Rule, Situation,
    Strategy, Why, plan,
};

/// Plans, makes it true, and returns what was planned.
fn round(situation: &mut Situation) -> Plan {
    let plan = plan(situation);
    plan.apply(situation);
    plan
}

fn label(node: &mut PlanNode, value: &str) {
    node.labels.insert("zone".to_owned(), value.to_owned());
}

#[test]
fn one_node_runs_all_and_a_second_takes_half() {
    let mut situation = plain(1, 12);
    assert_eq!(round(&mut situation).moves.len(), 12);
    situation.nodes.push(node(1));
    let second = round(&mut situation);
    assert_eq!((counts(&situation, &second), second.moves.len()), (vec![6, 6], 6));
    assert!(second.moves.iter().all(|step| step.why == Why::Balance));
    assert_eq!(round(&mut situation).moves, []);
}

#[test]
fn each_of_four_nodes_may_be_lost_and_only_its_duties_move() {
    for lost in 0..4 {
        let mut situation = plain(4, 12);
        round(&mut situation);
        remove(&mut situation, lost);
        let after = round(&mut situation);
        assert_eq!((counts(&situation, &after), after.moves.len()), (vec![4, 4, 4], 3));
    }
}

/// F37: a rolling deploy, one node after the other replaced by a new one. Rebalancing waits for
/// it to end, and has nothing left to do then.
#[test]
fn a_rolling_deploy_moves_each_duty_once() {
    let mut situation = plain(6, 60);
    round(&mut situation);
    situation.policy.rebalance = Rebalance::Not;
    let mut moves = 0;
    for replaced in 0..6 {
        situation.nodes.push(node(10 + replaced));
        moves += round(&mut situation).moves.len();
        remove(&mut situation, 0);
        moves += round(&mut situation).moves.len();
    }
    assert_eq!(moves, 60);
    situation.policy.rebalance = Rebalance::UNLIMITED;
    let after = round(&mut situation);
    assert_eq!((counts(&situation, &after), after.moves), (vec![10; 6], Vec::new()));
}

/// O17: four nodes in two zones, restarted one after the other. It were 64 starts.
#[test]
fn a_rolling_restart_with_spread_starts_few_duties_twice() {
    let mut situation = plain(4, 32);
    for (number, node) in situation.nodes.iter_mut().enumerate() {
        label(node, if number % 2 == 0 { "a" } else { "b" });
    }
    situation.duties.iter_mut().for_each(|duty| duty.spread = Some("zone".to_owned()));
    round(&mut situation);
    let starts = rolling_restart(Planner::default(), &mut situation).unwrap();
    assert_eq!(starts, 32 + 2 * 8);
    let after = round(&mut situation);
    assert_eq!((counts(&situation, &after), after.moves), (vec![8; 4], Vec::new()));
}

/// F39: what doesn't fit isn't run, and the reason is exact.
#[test]
fn survivors_are_not_loaded_past_their_capacity() {
    let mut situation = plain(3, 9);
    situation.nodes.iter_mut().for_each(|node| node.capacity = Some(3));
    round(&mut situation);
    situation.nodes[0].cordoned = true;
    remove(&mut situation, 2);
    let after = round(&mut situation);
    assert_eq!((counts(&situation, &after), after.unplaced.len()), (vec![3, 3], 3));
    let rules = BTreeMap::from([(Rule::Cordoned, 1), (Rule::Capacity, 1)]);
    assert_eq!(after.unplaced[0].reason, Reason::RuledOut(rules));
    assert_eq!(
        after.unplaced[0].reason.to_string(),
        "no node may run it: 1 is cordoned, 1 has too little capacity left"
    );
}

/// F40: blue and green side by side.
#[test]
fn versions_go_only_to_nodes_that_know_them() {
    let mut situation = plain(4, 12);
    let support = |versions: &[&str]| FamilySupport {
        versions: versions.iter().map(|&version| version.to_owned()).collect(),
        max_per_node: None,
    };
    for (number, node) in situation.nodes.iter_mut().enumerate() {
        let versions: &[&str] = if number < 2 { &["2"] } else { &["2", "3"] };
        node.families.insert("f".to_owned(), support(versions));
    }
    for (number, duty) in situation.duties.iter_mut().enumerate() {
        duty.version = Some(if number % 2 == 0 { "2" } else { "3" }.to_owned());
    }
    let both = round(&mut situation);
    assert_eq!(counts(&situation, &both), vec![3; 4]);
    let green = both.target.iter().skip(1).step_by(2);
    assert!(green.flatten().all(|node| *node >= 2));
    // The last nodes that know version 3 go: its duties run nowhere, the others go on.
    remove(&mut situation, 3);
    remove(&mut situation, 2);
    let after = round(&mut situation);
    assert_eq!((counts(&situation, &after), after.unplaced.len()), (vec![3, 3], 6));
    let rules = BTreeMap::from([(Rule::Version, 2)]);
    assert_eq!(after.unplaced[0].reason, Reason::RuledOut(rules));
}

#[test]
fn a_cordoned_node_keeps_what_it_runs_and_gets_nothing() {
    let mut situation = plain(2, 4);
    round(&mut situation);
    situation.nodes[0].cordoned = true;
    situation.duties.extend((0..4).map(|number| PlanDuty::new("f", format!("new-{number}"))));
    let after = round(&mut situation);
    assert_eq!(counts(&situation, &after), vec![2, 6]);
    assert!(after.moves.iter().all(|step| step.why == Why::Homeless));
}

#[test]
fn a_draining_node_is_emptied_as_far_as_the_others_have_room() {
    let mut situation = plain(2, 6);
    round(&mut situation);
    situation.nodes[0].draining = true;
    situation.nodes[1].capacity = Some(5);
    let after = round(&mut situation);
    assert_eq!((counts(&situation, &after), after.unplaced.len()), (vec![1, 5], 0));
    assert!(after.moves.iter().all(|step| step.why == Why::Drained));
    situation.nodes[1].capacity = None;
    let emptied = round(&mut situation);
    assert_eq!(counts(&situation, &emptied), vec![0, 6]);
}

/// F44: pausing stops, resuming starts.
#[test]
fn a_paused_duty_runs_nowhere_until_it_is_resumed() {
    let mut situation = plain(2, 2);
    situation.duties[0].paused = true;
    assert_eq!(round(&mut situation).target, [None, Some(0)]);
    situation.duties[0].paused = false;
    assert_eq!(round(&mut situation).target, [Some(1), Some(0)]);
    situation.duties[0].paused = true;
    let stopped = round(&mut situation);
    assert_eq!((stopped.moves[0].to, stopped.moves[0].why), (None, Why::Stopped));
    assert_eq!(stopped.unplaced[0].reason, Reason::Paused);
}

/// F43: pins to nodes that don't exist harm nobody.
#[test]
fn an_unknown_node_in_a_pin_is_harmless() {
    let mut situation = plain(2, 4);
    situation.duties[0].pin = Some(Pin::Required("nowhere".to_owned()));
    situation.duties[1].pin = Some(Pin::Preferred("nowhere".to_owned()));
    let plan = round(&mut situation);
    assert_eq!(plan.unplaced.len(), 1);
    assert_eq!(plan.unplaced[0].reason, Reason::UnknownPin("nowhere".to_owned()));
    assert!(plan.target[1..].iter().all(Option::is_some));
}

#[test]
fn a_pin_to_a_full_node_makes_room_there() {
    let mut situation = plain(2, 4);
    situation.nodes.iter_mut().for_each(|node| node.max_duties = Some(3));
    round(&mut situation);
    situation.duties.push(PlanDuty::new("f", "another"));
    round(&mut situation);
    let pinned = situation.duties.iter().position(|duty| duty.running == Some(1)).unwrap();
    situation.duties[pinned].pin = Some(Pin::Required("node-0".to_owned()));
    let after = round(&mut situation);
    assert_eq!(after.target[pinned], Some(0));
    assert!(after.moves.iter().any(|step| step.why == Why::MakesRoom), "{after:?}");
    assert!(after.unplaced.is_empty() && after.moves.len() == 2, "{after:?}");
    assert_eq!(counts(&situation, &after), vec![3, 2]);
}

/// F41: a duty leaves a node on which it failed, and stays if there is no other.
#[test]
fn a_failed_duty_moves_to_another_node_if_there_is_one() {
    let mut situation = plain(2, 2);
    round(&mut situation);
    let here = situation.duties[0].running.unwrap();
    situation.duties[0].avoid = vec![here];
    let moved = round(&mut situation);
    assert_eq!((moved.target[0], moved.moves[0].why), (Some(1 - here), Why::Failed));
    situation.duties[0].avoid = vec![0, 1];
    assert_eq!(round(&mut situation).target[0], Some(1 - here));
    // Also one that doesn't run yet is tried again where it failed, rather than nowhere.
    situation.duties[0].running = None;
    assert!(round(&mut situation).target[0].is_some());
}

#[test]
fn each_family_is_even_too() {
    let mut situation = plain(2, 30);
    let names = ["f", "g", "h"];
    situation.nodes.push(node(2));
    for node in &mut situation.nodes {
        names.iter().for_each(|name| *node = node.clone().running(*name, [""; 0]));
    }
    for (number, duty) in situation.duties.iter_mut().enumerate() {
        duty.family = names[number % 3].to_owned();
    }
    let third = situation.nodes.pop().unwrap();
    round(&mut situation);
    situation.nodes.push(third);
    let after = round(&mut situation);
    assert_eq!((counts(&situation, &after), after.moves.len()), (vec![10; 3], 10));
    for name in names {
        let here = |node: usize| {
            let mine = |(duty, at): &(&PlanDuty, &Option<usize>)| {
                duty.family == name && **at == Some(node)
            };
            situation.duties.iter().zip(&after.target).filter(mine).count()
        };
        let spread: Vec<usize> = (0..3).map(here).collect();
        assert!(spread.iter().all(|count| (2..=5).contains(count)), "{name}: {spread:?}");
    }
}

#[test]
fn zones_come_before_evenness() {
    let mut situation = plain(4, 8);
    for (number, node) in situation.nodes.iter_mut().enumerate() {
        label(node, if number == 0 { "a" } else { "b" });
    }
    situation.duties.iter_mut().for_each(|duty| duty.spread = Some("zone".to_owned()));
    let plan = round(&mut situation);
    let counts = counts(&situation, &plan);
    assert_eq!(counts[0], 4, "{counts:?}");
    assert!(counts[1..].iter().all(|count| (1..=2).contains(count)), "{counts:?}");
}

#[test]
fn nothing_goes_where_it_is_not_wanted_for_the_sake_of_evenness() {
    let mut situation = plain(2, 4);
    for duty in &mut situation.duties {
        // It failed where it runs, and would do no better elsewhere.
        duty.running = Some(0);
        duty.avoid = vec![0, 1];
    }
    let plan = Planner::default().plan(&situation);
    assert_eq!(counts(&situation, &plan), [4, 0]);
    for duty in &mut situation.duties {
        duty.avoid = vec![0];
    }
    let plan = Planner::default().plan(&situation);
    assert_eq!(counts(&situation, &plan), [0, 4], "but away from there if it may");
}

#[test]
fn the_leader_is_avoided_or_required() {
    let mut situation = plain(3, 6);
    situation.nodes[1].leader = true;
    situation.duties.iter_mut().for_each(|duty| duty.leader = LeaderRule::Avoid);
    situation.duties[5].leader = LeaderRule::Only;
    let plan = round(&mut situation);
    assert_eq!((plan.target[5], counts(&situation, &plan)[1]), (Some(1), 1));
    // Another leads: the one that must be there follows.
    situation.nodes[1].leader = false;
    situation.nodes[2].leader = true;
    assert_eq!(round(&mut situation).target[5], Some(2));
    remove(&mut situation, 1);
    remove(&mut situation, 0);
    assert!(round(&mut situation).target.iter().all(|node| *node == Some(0)));
}

#[test]
fn duties_that_are_kept_apart_wait_for_a_node() {
    let mut situation = plain(2, 3);
    situation.duties.iter_mut().for_each(|duty| duty.apart = Some("replica".to_owned()));
    let plan = round(&mut situation);
    assert_eq!(counts(&situation, &plan), vec![1, 1]);
    let rules = BTreeMap::from([(Rule::Apart, 2)]);
    assert_eq!(plan.unplaced[0].reason, Reason::RuledOut(rules));
    situation.nodes.push(node(2));
    let three = round(&mut situation);
    assert_eq!(counts(&situation, &three), vec![1, 1, 1]);
}

#[test]
fn limits_spread_a_rebalancing_over_rounds() {
    let mut situation = plain(1, 12);
    round(&mut situation);
    situation.nodes.push(node(1));
    situation.policy.rebalance = Rebalance::Not;
    let waits = round(&mut situation);
    assert!(waits.moves.is_empty() && !waits.balanced);
    situation.policy.rebalance = Rebalance::UpTo { per_round: 4, per_node: 10 };
    let (first, second) = (round(&mut situation), round(&mut situation));
    assert_eq!((first.moves.len(), first.balanced), (4, false));
    assert_eq!((second.moves.len(), second.balanced), (2, true));
}

#[test]
fn weights_and_load_count() {
    let mut situation = plain(2, 5);
    situation.duties[0].weight = 4;
    let plan = round(&mut situation);
    assert_eq!(counts(&situation, &plan), vec![1, 4]);
    situation.nodes[0].load = 8;
    situation.duties.push(PlanDuty::new("f", "new"));
    assert_eq!(round(&mut situation).target[5], Some(1));
}

#[test]
fn weighted_fills_nodes_to_the_same_share() {
    let mut situation = plain(3, 30);
    situation.policy.strategy = Strategy::Weighted;
    for (node, capacity) in situation.nodes.iter_mut().zip([100, 200, 300]) {
        node.capacity = Some(capacity);
    }
    let plan = round(&mut situation);
    assert_eq!(counts(&situation, &plan), vec![5, 10, 15]);
}

#[test]
fn a_preferred_node_takes_what_fits() {
    let mut situation = plain(3, 6);
    situation.policy.strategy = Strategy::PreferredNode("node-2".to_owned());
    situation.nodes[2].max_duties = Some(4);
    let plan = round(&mut situation);
    assert_eq!(counts(&situation, &plan), vec![1, 1, 4]);
}

#[test]
fn groups_stay_together_and_are_spread() {
    let mut situation = plain(3, 12);
    situation.policy.strategy = Strategy::GroupAffinity;
    for (number, duty) in situation.duties.iter_mut().enumerate() {
        duty.group = Some(format!("g{}", number % 6));
    }
    let plan = round(&mut situation);
    assert_eq!(counts(&situation, &plan), vec![4; 3]);
    assert!((0..6).all(|group| plan.target[group] == plan.target[group + 6]), "{plan:?}");
    situation.nodes.push(node(3));
    let after = round(&mut situation);
    assert!((0..6).all(|group| after.target[group] == after.target[group + 6]), "{after:?}");
}

#[test]
fn nothing_panics_on_strange_input() {
    let mut situation = plain(2, 3);
    situation.duties[0].running = Some(usize::MAX);
    situation.duties[0].avoid = vec![usize::MAX, 7];
    situation.duties[1].weight = u64::MAX;
    situation.duties[2].weight = u64::MAX;
    situation.nodes[0].load = u64::MAX;
    situation.nodes[1].capacity = Some(u64::MAX);
    situation.policy.strategy = Strategy::Weighted;
    let plan = round(&mut situation);
    assert!(plan.target[0].is_some());
    assert_eq!(
        Planner::default().plan(&Situation::default()),
        Plan { balanced: true, ..Plan::default() }
    );
    let nobody = Situation { nodes: Vec::new(), ..plain(0, 2) };
    assert!(plan_reasons(&nobody).iter().all(|reason| *reason == Reason::NoNodes));
}

fn plan_reasons(situation: &Situation) -> Vec<Reason> {
    plan(situation).unplaced.into_iter().map(|unplaced| unplaced.reason).collect()
}
