//! Runs a command so that nothing of it survives its lease.
//!
//! ```text
//! plain:     holder ── guardian ── command ── whatever it starts
//! isolated:  holder ── guardian ── init of a PID namespace ── command ── whatever it starts
//! ```
//!
//! - The **holder** is the process that holds the lease. It tells the guardian each new deadline.
//! - The **guardian** is a small process without threads. When the deadline passes, or the holder
//!   is gone, it kills and reaps everything below it, and ends last. Should it be stopped itself,
//!   its fuse kills it: a timer of the kernel, lit anew at each beat.
//! - The **init** is the first process of a PID namespace of its own. When it dies, the kernel
//!   kills all of the namespace, daemons and fork storms included. It dies with its guardian.
//!
//! Holder and guardian are subreapers: what loses its parent becomes a child of theirs. The three
//! are one program, which starts itself again; [`role`] is the first thing its `main` calls.
//!
//! Should the holder die, a last process closes its member in the store once all is swept, for
//! those who wait on other machines.
//!
//! # What holds
//!
//! Isolated, nothing of the command is left once the init is dead, whatever was killed or
//! stopped. Plain, that holds unless holder and guardian are both killed or both stopped: then
//! the command itself is killed by the kernel, but what it had started may run on.
#![cfg(target_os = "linux")]

mod body;
mod channel;
mod ending;
mod fuse;
mod guard;
mod guardian;
mod init;
mod isolate;
mod launch;
mod message;
mod sweep;
mod trustee;
mod wake;

pub use ending::{Ending, Status};
pub use guard::{Guard, Plan, Trust};
pub use message::{Isolation, Layout, Ward};
pub use sweep::reap;

use std::ffi::OsString;
use std::process::ExitCode;

/// What a process was started as, which its first argument says.
const GUARDIAN: &str = "supervise-guardian";
const INIT: &str = "supervise-init";
const LAUNCH: &str = "supervise-launch";
const TRUSTEE: &str = "supervise-trustee";

/// Plays the part of a guardian, an init or a launcher, if this process was started as one. To
/// be called first in `main`, before there is any thread.
#[must_use]
pub fn role() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    let role = arguments.next()?;
    let rest: Vec<OsString> = arguments.collect();
    match role.to_str()? {
        GUARDIAN => Some(guardian::run(rest)),
        INIT => Some(init::run(rest)),
        LAUNCH => Some(launch::run(&rest)),
        TRUSTEE => Some(trustee::run(&rest)),
        _ => None,
    }
}
