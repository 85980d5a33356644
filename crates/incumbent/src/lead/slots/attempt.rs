use incumbent_core::names::NameError;

use super::Slot;

/// How one attempt to get a slot went.
#[derive(Debug)]
#[must_use = "dropping `Acquired` frees the slot"]
#[non_exhaustive]
#[allow(clippy::large_enum_variant, reason = "it is matched at once, as `Attempt` is")]
pub enum SlotAttempt {
    /// This node holds this slot now.
    Acquired(Slot),
    /// All are held, or are just changing hands; or others of this node wait for one already.
    /// Nothing was changed.
    Full,
    /// The store can't be reached, or this node is no member at the moment. What was sent may
    /// still land; then it is given back. Try again later.
    Unavailable {
        /// What is known about the reason.
        why: String,
    },
}

/// Why there are no such slots. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SlotsError {
    /// The name isn't valid.
    #[error(transparent)]
    Name(#[from] NameError),
    /// There can't be so many.
    #[error("there can't be {count} slots: ask for 1 to 1000")]
    Count {
        /// How many were asked for.
        count: u16,
    },
}
