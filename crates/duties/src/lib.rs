//! Which node runs which duty, on top of the members and leases of `incumbent-core`: no I/O, no
//! clock, no threads.
//!
//! A program uses the crate `incumbent`; this one is for reading and for checking. *Leases decide,
//! rosters advise*: nothing here makes a duty run, or run twice, because a duty runs only where its
//! lease is held. Start with [`DutyNode`], then read in this order:
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`records`] | what is stored about duties |
//! | `worker` | the member's side: what it serves, its roster and its report |
//! | `placing` | the leader's side: what it reads, when it plans, what it writes |
//! | [`survey`] | from records to the question that the planner (`incumbent-planner`) answers |
//! | [`version`] | which version is newer |

pub mod duty;
mod event;
mod node;
mod placing;
pub mod records;
pub mod survey;
pub mod version;
mod worker;

pub use duty::DutyId;
pub use event::DutyEvent;
pub use node::DutyNode;
pub use placing::{Placement, Planned, Planning, PlanningId};
pub use worker::DutyStatus;
