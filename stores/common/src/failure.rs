//! What an error means, for a caller and for the connection.

use incumbent_core::store::{ErrorKind, Exchange, StoreError};

/// What the server had been asked when an error happened, which decides what may have been
/// applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// No write, or writes that were surely not committed.
    Nothing,
    /// A write that may have been, or may still be.
    Write,
}

impl Sent {
    /// What sending an exchange means.
    #[must_use]
    pub fn of(exchange: &Exchange) -> Self {
        if exchange.writes.is_empty() { Self::Nothing } else { Self::Write }
    }

    /// What a caller may conclude if no answer came.
    #[must_use]
    pub fn unanswered(self) -> ErrorKind {
        match self {
            Self::Nothing => ErrorKind::Unavailable,
            Self::Write => ErrorKind::Unknown,
        }
    }
}

/// An error, and what it means for the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// For the caller.
    pub error: StoreError,
    /// Whether the connection is as good as before.
    pub keep: bool,
}

impl Failure {
    /// One after which the connection is not to be used again.
    #[must_use]
    pub fn fatal(error: StoreError) -> Self {
        Self { error, keep: false }
    }
}
