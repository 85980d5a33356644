//! A closing that is refused while reads are stale.

use incumbent_core::Request;
use incumbent_core::store::Lane;

use super::{lease, violated};
use crate::invariants::Violation;
use crate::plant::Plant;
use crate::stage::{Pass, Stage, TTL};

/// More requests in a second than anybody has a reason for.
const MANY: usize = 200;

/// The holder has beaten and died, which is known, and for a second reads still show the beat before.
pub(super) fn refused_while_stale(plant: Plant) -> Result<(), Violation> {
    let mut stage = Stage::new(plant);
    let holder = stage.enter("a", false);
    stage.campaign(holder, &lease());
    stage.play(2_000, |_, _| Pass::Through);
    let waiting = stage.enter("b", false);
    stage.campaign(waiting, &lease());
    stage.play(3_000, |_, _| Pass::Through);
    let then = stage.now;
    // Past the holder's next beat.
    read_stale(&mut stage, waiting, then, then + TTL / 2);
    let Some(member) = stage.node(holder).and_then(|node| node.member().cloned()) else {
        return violated(&stage, "script", "the holder is no member".to_owned());
    };
    stage.exit(holder);
    stage.prove_dead(waiting, &member);
    let until = stage.now + 1_000;
    let sent = read_stale(&mut stage, waiting, then, until);
    if sent > MANY {
        let story = format!("a closing was refused, and {sent} requests were sent in a second");
        return violated(&stage, "patience", story);
    }
    stage.play(stage.now + 1_500, |_, _| Pass::Through);
    match stage.trusts(waiting, &lease()) {
        Some(_) => Ok(()),
        None => violated(&stage, "liveness", "nobody took over from the dead".to_owned()),
    }
}

/// Time goes by until this millisecond, and what the node reads is as it was before; says how many
/// requests it sent.
fn read_stale(stage: &mut Stage, node: usize, then: u64, until: u64) -> usize {
    let mut sent = 0;
    while stage.now < until {
        stage.play(stage.now + 1, |from, request: &Request| {
            sent += usize::from(from == node);
            if from == node && request.lane == Lane::Watch { Pass::Hold } else { Pass::Through }
        });
        while let Some((from, request)) = stage.sent.pop_front() {
            let reply = stage.apply_as_of(then, &request.exchange);
            stage.reply(from, request.id, Ok(reply));
        }
    }
    sent
}
