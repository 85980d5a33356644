//! A program's own nodes in virtual time, for its tests.
//!
//! A [`World`] has one store and any number of processes, each with its own clock, threads and path
//! to the store. Time passes only when nobody has anything to do, so that a ttl of 15 s takes no
//! time at all, and the same seed leads to the same run.
//!
//! ```
//! use std::time::Duration;
//! use incumbent::{Node, testing::World};
//!
//! World::run(7, |world| async move {
//!     let (a, b) = (world.process("a"), world.process("b"));
//!     let first = a.join(Node::builder().cluster("test").name("a")).await.unwrap();
//!     let second = b.join(Node::builder().cluster("test").name("b")).await.unwrap();
//!     let mut campaign = first.campaign("scheduler").unwrap();
//!     let leadership = campaign.elected().await.unwrap();
//!     let mut waiting = second.campaign("scheduler").unwrap();
//!
//!     // Cut off its store, the first node stops by its own clock, and then the other takes over.
//!     a.cut_store();
//!     let next = waiting.elected().await.unwrap();
//!     assert!(!leadership.is_held());
//!     assert!(next.number() > leadership.number());
//!     assert!(world.elapsed() < Duration::from_secs(25));
//! });
//! ```
//!
//! What is real in it: driver, runners, leases, duties, all of incumbent but the threads that it
//! runs on, the clock, the randomness and the store, which is the memory store behind a path that
//! can fail. Not for [`blocking`](crate::blocking), which blocks real threads.

mod aside;
mod here;
mod process;
mod road;
mod world;

use std::sync::Arc;

pub(crate) use here::{Home, Strand, draw, here, now, wall_ms};
pub use here::{Thread, block};
pub use process::Process;
pub use road::Conditions;
pub use world::{Holding, Judge, World};

use crate::driver::mutant::DriverMutant;
use crate::lead::tenure::Tenure;

/// The thread that this code runs on; nothing outside of a world.
#[must_use]
pub fn thread() -> Option<Thread> {
    here().map(|here| here.thread)
}

/// Whether this mistake is planted here.
pub(crate) fn planted(mutant: DriverMutant) -> bool {
    here().is_some_and(|here| here.space.planted() == Some(mutant))
}

/// A term was elected.
pub(crate) fn tenure_began(tenure: &Arc<Tenure>) {
    if let Some(here) = here() {
        here.space.tenure_began(&here.process, tenure);
    }
}

/// The driver's turn: it panics if that was asked for.
pub(crate) fn strike() {
    if here().is_some_and(|here| here.process.take_break()) {
        // Without the noise of a panic that nobody planned.
        std::panic::resume_unwind(Box::new("the driver panics, as planned"));
    }
}
