//! Systems on which nothing is proven.

use incumbent_core::records::HostIdentity;

/// What is known about the processes of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeathVerdict {
    /// None of them is left.
    Dead,
    /// Nothing can be concluded.
    Unknown,
}

/// Concludes nothing.
pub(crate) async fn death(_: &HostIdentity) -> DeathVerdict {
    DeathVerdict::Unknown
}
