//! Stores that forget once more, while some still wait for what they forgot before.

use incumbent_core::Request;
use incumbent_core::store::Lane;

use super::losses::{names_holder, two};
use super::{lease, one_leader, violated};
use crate::invariants::Violation;
use crate::plant::Plant;
use crate::stage::{Pass, Stage, TTL, reads};

/// O50: a lost lease is taken and lost again; who waits for it sees only what another wrote before
/// and after, which look the same.
pub(super) fn taken_between_losses(plant: Plant) -> Result<(), Violation> {
    let mut stage = Stage::new(plant);
    let [first, waiting] = two(&mut stage);
    let [taker, other] = ["c", "d"].map(|name| stage.enter(name, false));
    stage.campaign(taker, &lease());
    stage.campaign(other, &lease());
    stage.play(stage.now + 2_000, |_, _| Pass::Through);
    stage.exit(first);
    stage.forget(&["lease/"]);
    // Only one takes it, and the others don't see that.
    let looks = |request: &Request| reads(request, "lease/");
    let one_takes = move |node, request: &Request| match node != taker && names_holder(request) {
        true => Pass::Drop,
        false => Pass::Through,
    };
    let unseen = move |node, request: &Request| match node != taker && looks(request) {
        true => Pass::Drop,
        false => one_takes(node, request),
    };
    stage.play(stage.now + TTL + 600, one_takes);
    elect(&mut stage, taker, unseen)?;
    stage.forget(&["lease/"]);
    // The taker is cut off; the other writes down what is lost, before the one that waits looks.
    let cut = move |node, request: &Request| match node {
        _ if node == taker || (node == waiting && looks(request)) => Pass::Drop,
        _ => one_takes(node, request),
    };
    stage.play(stage.now + 1_200, cut);
    let alone = move |node, _: &Request| if node == taker { Pass::Drop } else { Pass::Through };
    for _ in 0..3 * TTL {
        stage.play(stage.now + 1, alone);
        one_leader(&stage, &[waiting, taker, other])?;
    }
    led_by(&stage, &[waiting, other])
}

/// O50: a lost lease is taken, and a backup restored from before that: what is there is what was
/// waited on all the time. But who waits was there too, and has to join anew.
pub(super) fn back_to_the_wait(plant: Plant) -> Result<(), Violation> {
    let mut stage = Stage::new(plant);
    let [waiting, taker] = taken_and_set_back(&mut stage)?;
    let member = |stage: &Stage| stage.node(waiting).and_then(|node| node.member().cloned());
    let joined = member(&stage);
    for _ in 0..3 * TTL {
        let unaware = member(&stage) == joined;
        stage.play(stage.now + 1, |node, request| match node {
            _ if node == taker => Pass::Drop,
            // It doesn't get through with a take before it has noticed.
            _ if unaware && names_holder(request) => Pass::Doubt,
            _ => Pass::Through,
        });
        one_leader(&stage, &[waiting, taker])?;
    }
    if member(&stage) == joined {
        return violated(&stage, "script", "who waits did not join anew".to_owned());
    }
    led_by(&stage, &[waiting])
}

/// O50: the same, and the take of who waits lands before it has noticed. Its own member is there, as
/// it was when the backup was made, and that proves nothing.
pub(super) fn taken_in_a_backup(plant: Plant) -> Result<(), Violation> {
    let mut stage = Stage::new(plant);
    let [waiting, taker] = taken_and_set_back(&mut stage)?;
    let alone = move |node, _: &Request| if node == taker { Pass::Drop } else { Pass::Through };
    for _ in 0..3 * TTL {
        stage.play(stage.now + 1, alone);
        one_leader(&stage, &[waiting, taker])?;
    }
    led_by(&stage, &[waiting])
}

/// O50: the same, and who took it frees it before a beat has shown that the store went back.
pub(super) fn freed_in_a_backup(plant: Plant) -> Result<(), Violation> {
    let mut stage = Stage::new(plant);
    let [waiting, taker] = taken_and_set_back(&mut stage)?;
    let freed = stage.now + 3_000;
    let silent = move |node, request: &Request| match request.lane {
        _ if node == taker => Pass::Drop,
        Lane::Beat if node == waiting => Pass::Drop,
        Lane::Beat | Lane::Change | Lane::Watch => Pass::Through,
    };
    stage.play(freed, silent);
    stage.withdraw(waiting, &lease());
    let newcomer = stage.enter("d", false);
    stage.campaign(newcomer, &lease());
    for _ in 0..2 * TTL {
        stage.play(stage.now + 1, silent);
        one_leader(&stage, &[newcomer, taker])?;
    }
    led_by(&stage, &[newcomer])
}

/// A lost lease is taken by one of two that wait for it, before the other can; then the store goes
/// back to a time when both waited.
fn taken_and_set_back(stage: &mut Stage) -> Result<[usize; 2], Violation> {
    let [first, waiting] = two(stage);
    let taker = stage.enter("c", false);
    stage.campaign(taker, &lease());
    stage.play(stage.now + 2_000, |_, _| Pass::Through);
    stage.exit(first);
    stage.forget(&["lease/"]);
    stage.play(stage.now + 9_000, |_, _| Pass::Through);
    let then = stage.now;
    let one_takes = move |node, request: &Request| match node == waiting && names_holder(request) {
        true => Pass::Doubt,
        false => Pass::Through,
    };
    stage.play(stage.now + 5_000, one_takes);
    elect(stage, taker, one_takes)?;
    stage.set_back(then, &[""]);
    Ok([waiting, taker])
}

fn elect(
    stage: &mut Stage,
    node: usize,
    judge: impl Fn(usize, &Request) -> Pass + Copy,
) -> Result<(), Violation> {
    let until = stage.now + TTL;
    while stage.trusts(node, &lease()).is_none() && stage.now < until {
        stage.play(stage.now + 1, judge);
    }
    match stage.trusts(node, &lease()) {
        Some(_) => Ok(()),
        None => violated(stage, "script", "the lease was not taken".to_owned()),
    }
}

fn led_by(stage: &Stage, nodes: &[usize]) -> Result<(), Violation> {
    match nodes.iter().find_map(|node| stage.trusts(*node, &lease())) {
        Some(term) if term > 1_001 => Ok(()),
        Some(term) => violated(stage, "terms", format!("term {term} may have been given before")),
        None => violated(stage, "liveness", "nobody leads after the second loss".to_owned()),
    }
}
