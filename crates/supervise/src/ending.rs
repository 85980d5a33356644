//! How a command ended.

use rustix::process::WaitStatus;
use serde::{Deserialize, Serialize};

/// How a command ended. When this is known, nothing of it is left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    /// What its parent was told.
    pub status: Status,
    /// Whether it was ended because the deadline came, or came near.
    pub overdue: bool,
    /// Whether it was told to end because a deadline came near, that one or a former one: it may have
    /// ended because of that although the deadline was put off.
    pub warned: bool,
}

/// What the parent of a process is told when it ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// It exited with this code.
    Exited(i32),
    /// It was killed by this signal.
    Killed(i32),
    /// It was never started, for this reason.
    Unstarted(String),
}

impl Status {
    pub(crate) const KILLED: Self = Self::Killed(9);

    pub(crate) fn of(status: WaitStatus) -> Self {
        match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Self::Exited(code),
            (None, Some(signal)) => Self::Killed(signal),
            (None, None) => Self::KILLED,
        }
    }

    /// The exit code that shells give it: 128 and more for a signal.
    #[must_use]
    pub fn code(&self) -> u8 {
        match self {
            Self::Exited(code) => u8::try_from(code & 0xff).unwrap_or(1),
            Self::Killed(signal) => u8::try_from(128 + signal).unwrap_or(255),
            Self::Unstarted(_) => 126,
        }
    }
}
