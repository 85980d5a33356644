//! Election and membership as pure state machines: no I/O, no clock, no threads. Which node runs which
//! duty is decided in `incumbent-duties`, which builds on this crate and of which nothing here knows.
//!
//! A program uses the crate `incumbent`; this one is for reading, for checking, and for those
//! who write a store ([`store`]) or a driver of their own.
//!
//! Start with [`Elector`], then read in this order:
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`store`] | the contract: compare-and-swap on single records |
//! | [`records`] | what is stored, as JSON that a person can read |
//! | `member` | one incarnation of a node: its beats, and the trust that follows from them |
//! | `watch` | when another member may be closed, and when to look at it again |
//! | `lease`, `leases` and `leases::decide` | what to do about a lease |
//! | [`outbox`] | what goes out: requests with their stamps and deadlines, and events |
//! | [`leader`] | what the leader of the cluster does |
//! | [`mutant`] | mistakes that can be planted in all of these, to show that checkers bite |
//!
//! Numbers such as F10 and O6 stand for failures: `docs/failures.md` in the repository tells what happened
//! elsewhere (F) or here (O), and what happens now.

pub mod backoff;
mod census;
mod farewell;
mod introduction;
pub mod keys;
pub mod leader;
mod lease;
mod leases;
mod member;
pub mod mutant;
pub mod names;
mod node;
pub mod outbox;
pub mod own;
pub mod pace;
pub mod random;
pub mod records;
pub mod settings;
mod stance;
pub mod store;
pub mod stored;
mod sweep;
mod time;
mod watch;

pub use leases::Past;
pub use member::Ending;
pub use names::{LeaseKind, LeaseName, MemberId};
pub use node::{Brought, Config, ElectionEvent, Elector, LossCause, Sighting};
pub use outbox::{Request, RequestId};
pub use settings::{Rhythm, Timing};
pub use stance::{Preference, Stance};
pub use time::Moment;
