//! Work ends in its time: at once when its trust is over, and by the end of its grace period when it was
//! told to end, as long as the threads run that end it.

use std::time::Duration;

use incumbent::testing::{Holding, Process, Thread};

use crate::book::Pages;

pub(crate) const NAME: &str = "ends";

/// What hesitation, scheduling and the grain of timers may take.
const SLACK: Duration = Duration::from_millis(1_000);

pub(crate) fn check(pages: &mut Pages, every: Duration, processes: &[Process], all: &[Holding]) {
    let mut late = None;
    for running in pages.running.values_mut() {
        let Some(process) = processes.get(running.process) else { continue };
        let still = [Thread::Runners, Thread::Work].into_iter().any(|it| process.stands_still(it));
        let holding = all.iter().find(|holding| {
            holding.process == running.process
                && holding.lease == running.lease
                && holding.term == running.term
        });
        let over = holding.is_none_or(|holding| {
            let drained = |told| process.now() > told + running.grace;
            !holding.trusted || holding.told.is_some_and(drained)
        });
        if !over || still || running.blocks {
            running.overdue = Duration::ZERO;
            continue;
        }
        running.overdue += every;
        if running.overdue > SLACK {
            late = Some(running.clone());
        }
    }
    if let Some(running) = late {
        let story = format!(
            "the work of process {} under {} in term {} is still there {:?} after it should have ended",
            running.process, running.lease, running.term, running.overdue
        );
        pages.violate(NAME, story);
    }
}
