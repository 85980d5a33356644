//! Proof that a process is dead, so that nobody needs to wait for its ttl.
//!
//! A member may say in its profile which processes must be dead for nothing of it to run any
//! more: its [`Evidence`]. A node on the same machine that waits for such a member watches these
//! processes, and closes the member at the moment they end.
//!
//! Only proof counts. A paused process, a closed connection, a process id that now belongs to
//! somebody else, another boot, another namespace, something that can't be read: all of that is
//! no proof, and the ttl is waited for as ever.
//!
//! `incumbent run` gives such evidence for the command that it runs.

mod gather;
#[cfg(target_os = "linux")]
mod proof;
#[cfg(not(target_os = "linux"))]
#[path = "witness/proof_elsewhere.rs"]
mod proof;

pub use gather::evidence;
pub use incumbent_core::records::{Evidence, Mark, ProcessEvidence};
pub(crate) use proof::{Verdict, death};
