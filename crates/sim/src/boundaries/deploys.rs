//! New versions, and writes that get lost on the way.

use incumbent_core::records::{Ask, Content, FamilyProfile, Intent};
use incumbent_core::{Request, keys};
use incumbent_duties::DutyId;
use incumbent_duties::records::{DutySpec, Roster};

use super::violated;
use crate::duties::FAMILY;
use crate::invariants::Violation;
use crate::plant::Plant;
use crate::stage::{Pass, Stage, TTL, writes};

/// O44: a duty is on its way from one old node to another, and only half of that is written.
pub(super) fn move_half_written(plant: Plant) -> Result<(), Violation> {
    let mut stage = Stage::new(plant);
    let described =
        |version: &str| [DutySpec { version: Some(version.to_owned()), ..DutySpec::named("d1") }];
    let Ok(duty) = DutyId::new(FAMILY, "d1") else { return Ok(()) };
    stage.enter("a", true);
    let first = stage.enter("b", false);
    stage.serve(first, &["1"], &described("1"));
    stage.play(stage.now + TTL, |_, _| Pass::Through);
    stage.started(first, &duty);
    let second = stage.enter("c", false);
    stage.serve(second, &["1"], &described("1"));
    let newest = stage.enter("d", false);
    let prepares = FamilyProfile { prepares: true, ..FamilyProfile::default() };
    stage.serve_as(newest, prepares, &["2"], &described("2"));
    stage.play(stage.now + TTL, |_, _| Pass::Through);
    if stage.trusts(first, &duty.lease()).is_none() {
        return violated(&stage, "script", "the duty doesn't run on the old version".to_owned());
    }
    let roster = |stage: &Stage, node: usize| {
        let id = stage.node(node)?.member().cloned()?;
        let stored = stage.store.record(&keys::roster(&id))?;
        Roster::read(&stored).ok()
    };
    let others = stage.node(second).and_then(|node| node.member().cloned());
    let lost = others.map(|id| keys::roster(&id)).unwrap_or_else(keys::moves);
    drain(&mut stage, "b");
    // The roster that it is put on never arrives.
    let half = |_: usize, request: &Request| match writes(request, lost.as_str()) {
        true => Pass::Doubt,
        false => Pass::Through,
    };
    let mut taken = false;
    for _ in 0..TTL {
        stage.play(stage.now + 1, half);
        taken = roster(&stage, first).is_some_and(|roster| !roster.duties.contains(&duty));
        if taken {
            break;
        }
    }
    if !taken || stage.sent.is_empty() {
        return violated(&stage, "script", "the duty was not to move".to_owned());
    }
    for _ in 0..2 * TTL {
        stage.play(stage.now + 1, |_, _| Pass::Through);
        if roster(&stage, newest).is_some_and(|roster| roster.duties.contains(&duty)) {
            let story = format!("{duty} goes to a node that isn't prepared");
            return violated(&stage, "deploys", story);
        }
    }
    if roster(&stage, second).is_none_or(|roster| !roster.duties.contains(&duty)) {
        return violated(&stage, "placed", format!("{duty} is on no roster"));
    }
    Ok(())
}

fn drain(stage: &mut Stage, node: &str) {
    let ask = Ask::Drain { node: node.to_owned() };
    let intent = Intent::open(format!("drain-{node}"), ask, "script".to_owned(), 0);
    stage.operate(keys::intent(&intent.id), intent.bytes());
}
