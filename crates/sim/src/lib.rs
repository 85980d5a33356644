//! Whole clusters of the real core in virtual time: drifting clocks, pauses, crashes, lost and
//! late messages, store outages, evictions, transfers, name collisions, mixed ttls.
//!
//! A seed stands for a whole run. What must hold is in `invariants`, one a file; what can be
//! planted to show that they bite is in [`plant`].

pub mod boundaries;
mod clock;
mod duties;
pub mod exhaustive;
mod forget;
mod happening;
mod history;
mod invariants;
mod network;
pub mod plant;
mod process;
pub mod runs;
pub mod scenario;
mod stage;
pub mod statistics;
mod store;
mod stored;
mod strike;
mod work;
mod world;

pub use invariants::Violation;
pub use plant::Plant;
pub use scenario::Scenario;
pub use statistics::Statistics;
pub use store::Flaw;
pub use world::World;
