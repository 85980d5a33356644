//! The real driver and runners of incumbent in virtual time.
//!
//! Where `crates/sim` has the pure core and nothing around it, here whole nodes run: drivers, runners,
//! the hand-out of leaderships, duties, draining and leaving, many processes in one, on the memory
//! store, from a seed. Threads stand still, application code panics, blocks and is slow, stores are
//! cut, lose and delay, and what must hold is checked at every step.

pub mod book;
mod invariants;
mod plant;
mod program;
pub mod runs;
mod scenario;
mod stage;
mod work;

pub use plant::{INVARIANTS, caught_by};
pub use runs::{Failure, Outcome, play};
