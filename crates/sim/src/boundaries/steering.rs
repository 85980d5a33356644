//! What operators ask for, at the worst moment.

use incumbent_core::keys;
use incumbent_core::records::{Ask, Content, Intent, IntentState};
use incumbent_duties::DutyId;
use incumbent_duties::records::DutySpec;

use super::violated;
use crate::duties::FAMILY;
use crate::invariants::Violation;
use crate::plant::Plant;
use crate::stage::{Pass, Stage, TTL};

const DUTY: &str = "work/d1";

/// O59: what runs nowhere yet can't go where an operator asked for, and waits for nobody.
pub(super) fn asked_in_vain(plant: Plant) -> Result<(), Violation> {
    let mut stage = Stage::new(plant);
    let duty = duty(&stage)?;
    stage.enter("a", true);
    enter(&mut stage, "b", "1");
    let pause = Ask::Pause { duty: DUTY.to_owned() };
    ask(&mut stage, "pause", pause.clone(), IntentState::Open);
    stage.play(stage.now + TTL, |_, _| Pass::Through);
    let able = enter(&mut stage, "c", "2");
    stage.play(stage.now + TTL, |_, _| Pass::Through);
    ask(&mut stage, "pause", pause, IntentState::Done);
    ask_in_vain(&mut stage);
    stage.play(stage.now + 2 * TTL, |_, _| Pass::Through);
    match stage.trusts(able, &duty.lease()) {
        Some(_) => Ok(()),
        None => violated(&stage, "placed", format!("{DUTY} waits for one that never ran it")),
    }
}

/// O59: what can't go where an operator asked for comes from where it is: its next node waits for that one,
/// and not for one that never ran it, whose end proves nothing.
pub(super) fn asked_and_forgotten(plant: Plant) -> Result<(), Violation> {
    let mut stage = Stage::new(plant);
    let duty = duty(&stage)?;
    stage.enter("a", true);
    let unable = enter(&mut stage, "b", "1");
    let first = enter(&mut stage, "c", "2");
    stage.play(stage.now + TTL, |_, _| Pass::Through);
    stage.started(first, &duty);
    stage.play(stage.now + TTL, |_, _| Pass::Through);
    let Some(term) = stage.trusts(first, &duty.lease()) else {
        return Err(unplayed(&stage));
    };
    let next = enter(&mut stage, "d", "2");
    stage.play(stage.now + TTL, |_, _| Pass::Through);
    stage.forget(&[keys::duty_leases().as_str()]);
    ask(&mut stage, "drain", Ask::Drain { node: "c".to_owned() }, IntentState::Open);
    ask_in_vain(&mut stage);
    stage.play(stage.now + TTL, |_, _| Pass::Through);
    stage.exit(unable);
    for _ in 0..4 * TTL {
        stage.play(stage.now + 1, |_, _| Pass::Through);
        let terms = [first, next].map(|node| stage.trusts(node, &duty.lease()));
        if terms.iter().all(Option::is_some) {
            return violated(
                &stage,
                "one-leader",
                format!("{DUTY} runs in terms {terms:?} at once"),
            );
        }
    }
    stage.stopped(first, &duty.lease(), term);
    stage.play(stage.now + 4 * TTL, |_, _| Pass::Through);
    match stage.trusts(next, &duty.lease()) {
        Some(_) => Ok(()),
        None => violated(&stage, "placed", format!("{DUTY} runs nowhere")),
    }
}

fn duty(stage: &Stage) -> Result<DutyId, Violation> {
    DutyId::new(FAMILY, "d1").map_err(|_| unplayed(stage))
}

fn unplayed(stage: &Stage) -> Violation {
    let story = format!("{DUTY} was not started");
    Violation { invariant: "script", instant: stage.now * 1_000_000, story }
}

/// A node that runs this version, of a duty that needs the second.
fn enter(stage: &mut Stage, name: &str, version: &str) -> usize {
    let node = stage.enter(name, false);
    let spec = DutySpec { version: Some("2".to_owned()), ..DutySpec::named("d1") };
    stage.serve(node, &[version], &[spec]);
    node
}

/// An operator wants the duty where it can't run.
fn ask_in_vain(stage: &mut Stage) {
    let vain = Ask::Move { duty: DUTY.to_owned(), node: "b".to_owned() };
    ask(stage, "vain", vain, IntentState::Open);
}

fn ask(stage: &mut Stage, id: &str, ask: Ask, state: IntentState) {
    let intent = Intent { state, ..Intent::open(id.to_owned(), ask, "script".to_owned(), 0) };
    stage.operate(keys::intent(&intent.id), intent.bytes());
}
