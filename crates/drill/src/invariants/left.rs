//! After a node has left nothing of it is there: no task, no work, no trust. Once it says that it has
//! left in order, all its work has ended.

use incumbent::testing::{Process, Thread};

use crate::book::Book;

pub(crate) const NAME: &str = "left";

/// Checked a ttl after the node has left.
pub(crate) fn check(book: &Book, process: &Process, holds: bool) {
    let works = book.pages().running.values().any(|running| running.process == process.id());
    if works || holds {
        let story =
            format!("{} has left, and still works: {works}, trusts: {holds}", process.name());
        book.pages().violate(NAME, story);
    }
    for thread in [Thread::Beats, Thread::Runners, Thread::Work] {
        let tasks = process.tasks(thread);
        if tasks != 0 {
            let story = format!("{} has left, and {tasks} tasks are on {thread:?}", process.name());
            book.pages().violate(NAME, story);
        }
    }
}

/// Checked as soon as the node says that it has left in order.
pub(crate) fn said(book: &Book, process: &Process) {
    let mut pages = book.pages();
    let lease = pages.running.values().find(|running| running.process == process.id());
    if let Some(lease) = lease.map(|running| running.lease.clone()) {
        let story = format!("{} says that it has left, and works under {lease}", process.name());
        pages.violate(NAME, story);
    }
}

pub(crate) fn failed(book: &Book, process: &Process, why: &str) {
    let story = format!("{} could not leave although all was well: {why}", process.name());
    book.pages().violate(NAME, story);
}
