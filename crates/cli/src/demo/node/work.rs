//! The duties of a node: work that says when it ran.

use incumbent::{BoxError, Duty, FamilyWork, clock, family};

use super::{ASK, ASKED_PER_REPORT};
use crate::demo::word::Word;
use crate::demo::{DUTIES, FAMILY};

/// All duties of the demo, and how one is run.
pub(super) fn projections() -> FamilyWork {
    family(FAMILY).duties(DUTIES).run(project)
}

/// Takes a step now and then and says so, until it is told to stop or may not go on.
async fn project(duty: Duty) -> Result<(), BoxError> {
    let (id, term) = (duty.id().as_str().to_owned(), duty.number());
    let ran = |asked: u64| {
        let until = duty.trusted_until().as_nanos();
        Word::Ran { duty: id.clone(), term, asked, until }.say();
    };
    if !duty.is_held() {
        return Ok(());
    }
    Word::Started { duty: id.clone(), term, at: clock::now().as_nanos() }.say();
    let stopping = duty.token();
    let mut steps = 0;
    while !stopping.is_cancelled() {
        let now = clock::now();
        if duty.trusted_until() <= clock::now() {
            // Nothing is done any more; that it is over is told by the node.
            duty.lost().await;
            return Ok(());
        }
        if steps % ASKED_PER_REPORT == 0 {
            ran(now.as_nanos());
        }
        steps += 1;
        tokio::select! {
            () = stopping.cancelled() => {}
            () = tokio::time::sleep(ASK) => {}
        }
    }
    finish(&duty, ran).await;
    Ok(())
}

/// Work that is told to stop has something to put away. Its last word is said before its lease is
/// free.
async fn finish(duty: &Duty, ran: impl Fn(u64)) {
    tokio::time::sleep(ASK).await;
    let now = clock::now();
    if clock::now() < duty.trusted_until() {
        ran(now.as_nanos());
    }
}
