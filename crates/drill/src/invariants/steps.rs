//! No step of work past its trust, nor after anybody else was elected, nor after its node has left.

use incumbent::testing::{Holding, Process};

use crate::book::Pages;

pub(crate) const NAME: &str = "steps";

pub(crate) fn check(pages: &mut Pages, id: u64, process: &Process, holdings: &[Holding]) {
    let now = pages.now;
    let Some(running) = pages.running.get_mut(&id) else { return };
    running.stepped = now;
    let running = running.clone();
    let what = format!(
        "process {} took a step under {} in term {}",
        running.process, running.lease, running.term
    );
    let bound = pages.bounds.get(&running.member).copied();
    if bound.is_none_or(|bound| process.now() >= bound) {
        pages.violate(NAME, format!("{what}, and its beats allowed that until {bound:?} only"));
    }
    let same = |holding: &&Holding| {
        holding.lease == running.lease
            && holding.term == running.term
            && holding.process == running.process
    };
    if !holdings.iter().find(same).is_some_and(|holding| holding.trusted) {
        pages.violate(NAME, format!("{what}, which it didn't trust any more"));
    }
    let later = (running.lease.clone(), running.term + 1)..=(running.lease.clone(), u64::MAX);
    if let Some(((_, term), other)) = pages.elected.range(later).next() {
        let story = format!("{what} after process {other} was elected for term {term}");
        pages.violate(NAME, story);
    }
    if pages.left.contains(&running.process) {
        pages.violate(NAME, format!("{what} after its node had left"));
    }
}
