//! Views, and who hears of them.

use incumbent_core::ElectionEvent;

use super::violated;
use crate::invariants::Violation;
use crate::plant::Plant;
use crate::stage::{Pass, Stage, TTL, writes};

/// A view lands, and its writer never hears of it: all others do all the same.
pub(super) fn view_in_doubt(plant: Plant) -> Result<(), Violation> {
    let mut stage = Stage::new(plant);
    stage.enter("a", true);
    stage.play(2_000, |_, _| Pass::Through);
    let other = stage.enter("b", true);
    stage.play(stage.now + 2 * TTL, |_, _| Pass::Through);
    stage.enter("c", false);
    let mut doubted = false;
    while !doubted && stage.now < 6 * TTL {
        let until = stage.now + 1;
        stage.play(until, |_, request| {
            if writes(request, "view") && !doubted {
                doubted = true;
                return Pass::Doubt;
            }
            Pass::Through
        });
        if let Some((_, view)) = stage.sent.pop_front() {
            stage.apply(&view.exchange);
        }
    }
    stage.play(stage.now + 2 * TTL, |_, _| Pass::Through);
    let told = |(node, event): &(usize, ElectionEvent)| {
        *node == other && matches!(event, ElectionEvent::Viewed(view) if view.members.len() == 3)
    };
    if !doubted {
        return violated(&stage, "script", "no view was written".to_owned());
    }
    if !stage.events.iter().any(told) {
        return violated(&stage, "liveness", "nobody is told of the view".to_owned());
    }
    Ok(())
}
