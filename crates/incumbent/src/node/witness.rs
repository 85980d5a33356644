//! Proof that a process is dead, so that nobody needs to wait for its ttl.
//!
//! A member may say in its profile which processes must be dead for nothing of it to run any
//! more: its [`Evidence`]. A node on the same machine that waits for such a member watches these
//! processes, and closes the member at the moment they end.
//!
//! Only proof counts. A paused process, a closed connection, a process id that now belongs to
//! somebody else, another boot, another namespace, another host name or network card, something
//! that can't be read: all of that is no proof, and the ttl is waited for as ever.
//!
//! What remains: a virtual machine that is copied while it runs, of which both go on with the same
//! host name and the same network cards. Nothing in such a copy tells that it is one. Switch
//! witnesses off there, by [`Builder::without_witness`](crate::Builder::without_witness) and by not calling
//! [`init`].
//!
//! A process has to ask for it:
//!
//! - [`init`] at the top of `main` starts a helper process that sees the end of the program, and
//!   closes its members for nodes on other machines too.
//! - `incumbent run` gives evidence for itself and the command that it runs.
//!
//! [`status`] says whether this process has a witness, and if not, why.

mod closing;
mod gather;
#[cfg(target_os = "linux")]
mod helper;
#[cfg(not(target_os = "linux"))]
#[path = "witness/helper_elsewhere.rs"]
mod helper;
#[cfg(target_os = "linux")]
mod proof;
#[cfg(not(target_os = "linux"))]
#[path = "witness/proof_elsewhere.rs"]
mod proof;
mod status;

pub use closing::{Ward, close};
pub use gather::evidence;
pub use helper::init;
pub(crate) use helper::{entrust, is_active, release, whose_witness};
pub use incumbent_core::records::{Evidence, Mark, ProcessEvidence};
pub(crate) use proof::{DeathVerdict, death};
pub use status::{Status, status};
