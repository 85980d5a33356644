//! Hints between nodes, for stores that push none.
//!
//! Where a store pushes nothing, who waits finds a freed lease by looking once a second. So a node there
//! opens a socket for datagrams and says in its profile where that is. Who waits for a holder tells it so,
//! and whoever has written something that others wait for sends a datagram to those that it knows.
//!
//! A hint carries no data and is never answered: it makes its receiver ask the store, a little sooner than
//! it would have asked by itself. Lost hints cost that time alone. Repeated and forged ones cost reads, of
//! which an [`Allowance`] bounds the number. Nobody concludes anything from one.

mod allowance;
mod control;
mod datagram;
mod inbox;
mod key;
mod listeners;
mod outgoing;
mod post;
mod registry;
mod settings;
mod socket;

pub(crate) use control::{HintSite, HintTarget};
pub(crate) use outgoing::call;
pub(crate) use post::Post;

pub use key::{HintKey, HintKeyError};
pub use settings::{HintSettings, HintSettingsError};
