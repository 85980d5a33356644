//! The protocol of incumbent as pure state machines: no I/O, no clock, no threads.
//!
//! A program uses the crate `incumbent`; this one is for reading, for checking, and for those
//! who write a store ([`store`]) or a driver of their own.
//!
//! Start with [`Node`], then read in this order:
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`store`] | the contract: compare-and-swap on single records |
//! | [`records`] | what is stored, as JSON that a person can read |
//! | `member` | one incarnation of a node: its beats, and the trust that follows from them |
//! | `watch` | when another member may be closed, and when to look at it again |
//! | `lease` and `node::decide` | what to do about a lease |
//! | `leader` | what the leader of the cluster does |
//! | [`mutant`] | mistakes that can be planted in all of these, to show that checkers bite |

pub mod backoff;
mod candidacy;
mod census;
mod farewell;
pub mod keys;
pub mod leader;
mod lease;
mod member;
pub mod mutant;
pub mod names;
mod node;
pub mod own;
pub mod random;
pub mod records;
pub mod settings;
pub mod store;
pub mod stored;
mod sweep;
mod time;
mod watch;

pub use candidacy::{Candidacy, Preference};
pub use member::Ending;
pub use names::{LeaseKind, LeaseName, MemberId};
pub use node::{Brought, Config, Event, Loss, Node, Past, Request, RequestId, Sighting};
pub use settings::Timing;
pub use time::Moment;
