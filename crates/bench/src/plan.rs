//! Plans for a large fleet: from nothing, after a leave and a join, and where nothing changed.

use anyhow::{Result, ensure};
use incumbent::clock;
use incumbent_planner::{Plan, PlanDuty, PlanNode, Planner, Rebalance, Situation, plan};

use crate::report::Report;
use crate::spread::Spread;

const NODES: usize = 1_000;
const FAMILIES: usize = 5;
const DUTIES: usize = 100_000;
const ROUNDS: usize = 9;

pub(crate) fn measure(report: &mut Report) -> Result<()> {
    let (mut fresh, mut steady, mut leave, mut join) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut told_leave, mut told_join) = (Vec::new(), Vec::new());
    let (mut left, mut joined) = (0, 0);
    // One of each in turn, so that whatever the machine does meets all of them.
    for _ in 0..ROUNDS {
        let mut situation = fleet();
        let first = timed(&situation, &mut fresh);
        ensure!(first.unplaced.is_empty() && first.balanced, "not everything was placed");
        first.apply(&mut situation);
        let second = timed(&situation, &mut steady);
        ensure!(second.moves.is_empty(), "a steady fleet moved");
        let mut planner = Planner::new(situation.clone());
        ensure!(planner.plan() == second, "what is remembered differs from what is read");
        let Some(node) = situation.nodes.pop() else { continue };
        let gone = situation.nodes.len();
        for duty in &mut situation.duties {
            duty.running = duty.running.filter(|node| *node != gone);
        }
        let third = timed(&situation, &mut leave);
        left = third.moves.len();
        let plan = timed_by(&mut told_leave, || {
            planner.remove_node(gone);
            planner.plan()
        });
        ensure!(plan == third, "what is remembered differs from what is read, after a leave");
        third.apply(&mut situation);
        situation.nodes.push(node.clone());
        let fourth = timed(&situation, &mut join);
        joined = fourth.moves.len();
        let again = timed_by(&mut told_join, || {
            planner.apply(&plan);
            planner.add_node(node);
            planner.plan()
        });
        ensure!(again == fourth, "what is remembered differs from what is read, after a join");
    }
    let fresh = Spread::new(fresh);
    let all = [steady, leave, join, told_leave, told_join];
    let [steady, leave, join, told_leave, told_join] = all.map(Spread::new);
    let what = "plan 100,000 duties on 1,000 nodes from nothing, median";
    report.add_with_goal("plan_ms", what, fresh.median(), "ms", "100 or less");
    report.add("plan_steady_ms", "  where nothing changed", steady.median(), "ms");
    report.add("plan_leave_ms", "  after one node left", leave.median(), "ms");
    let ratio = leave.median() / fresh.median();
    report.add_with_goal("plan_leave_ratio", "    against from nothing", ratio, "x", "far below 1");
    report.add("plan_join_ms", "  after one node joined", join.median(), "ms");
    let what = "  after one node left, told of that alone";
    report.add_with_goal("plan_told_leave_ms", what, told_leave.median(), "ms", "5 or less");
    let what = "  after one node joined, told of that alone";
    report.add("plan_told_join_ms", what, told_join.median(), "ms");
    let share = DUTIES / NODES;
    // Each node runs the same number, so these are the fewest moves that end even.
    let (left, joined) = (left as f64 / share as f64, joined as f64 / share as f64);
    report.add_with_goal("plan_leave_moves", "moves after a leave, to the fewest", left, "x", "1");
    report.add_with_goal("plan_join_moves", "moves after a join, to the fewest", joined, "x", "1");
    Ok(())
}

fn fleet() -> Situation {
    let families: Vec<String> = (0..FAMILIES).map(|family| format!("family-{family}")).collect();
    let node = |number: usize| {
        let node = PlanNode::new(format!("member-{number:04}"), format!("node-{number}"));
        families.iter().fold(node, |node, family| node.running(family, ["1", "2"]))
    };
    let duty = |family: &String, number: usize| {
        let mut duty = PlanDuty::new(family, format!("duty-{number:06}"));
        duty.version = Some("2".to_owned());
        duty
    };
    let mut situation = Situation { nodes: (0..NODES).map(node).collect(), ..Situation::default() };
    for family in &families {
        situation.duties.extend((0..DUTIES / FAMILIES).map(|number| duty(family, number)));
    }
    situation.policy.rebalance = Rebalance::UNLIMITED;
    situation
}

/// Plans, and notes how many milliseconds it took.
fn timed(situation: &Situation, times: &mut Vec<f64>) -> Plan {
    timed_by(times, || plan(situation))
}

fn timed_by(times: &mut Vec<f64>, plan: impl FnOnce() -> Plan) -> Plan {
    let before = clock::now();
    let plan = plan();
    times.push(clock::now().since(before).as_nanos() as f64 / 1e6);
    plan
}
