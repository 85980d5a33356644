//! What holder, guardian and init say to each other.

use serde::{Deserialize, Serialize};

use crate::ending::Ending;

/// When to give the command a PID namespace of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Isolation {
    /// Where that takes nothing from the command: as root.
    #[default]
    Auto,
    /// Always, in a user namespace if need be; fail where that can't be had.
    Always,
    /// Never.
    Never,
}

/// How the command is supervised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Layout {
    /// A guardian that kills and reaps.
    Plain,
    /// A guardian, and a PID namespace that dies as one.
    Isolated,
}

/// What is ordered, from above.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Get ready. The command's standard input comes along.
    Prepare(Preparation),
    /// Start the command.
    Start { variables: Vec<(String, String)>, deadline: u64 },
    /// Nothing of it may run past this moment, in nanoseconds of the boot-time clock. One that is
    /// earlier than a former one was overtaken on its way, and doesn't count.
    Deadline(u64),
    /// Send the command's process group a signal.
    Signal(i32),
    /// Send it a signal, and kill what is left after a while.
    Stop { signal: i32, grace_ns: u64 },
    /// Kill it now.
    Kill,
    /// Close this member, should the holder die.
    Entrust(Ward),
    /// There is nothing to close any more.
    Release,
}

/// A member, and where its record is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ward {
    /// The URL of the store.
    pub url: String,
    /// The cluster in it.
    pub cluster: String,
    /// The member's id.
    pub member: String,
}

/// What a guardian needs to know.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Preparation {
    pub(crate) isolate: bool,
    /// By how much the command is warned before the deadline.
    pub(crate) warning_ns: u64,
    /// How long after the deadline the fuse blows.
    pub(crate) fuse_ns: u64,
    /// The file that says that all was swept, where no namespace does.
    pub(crate) mark: String,
    /// Whether the command gets the terminal.
    pub(crate) foreground: bool,
}

/// What is reported, from below.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Report {
    /// All is prepared. This process is the last that will end.
    Ready { last: i32 },
    /// It can't be done.
    Failed(String),
    /// The command runs.
    Started,
    /// The deadline is near: is it still the same?
    Asking,
    /// Nothing of the command is left.
    Ended(Ending),
}
