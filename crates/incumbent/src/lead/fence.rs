use std::fmt;

/// The number by which others tell an old leader from a new one: the term of a lease.
///
/// Hand it to everything that leader-only work writes to, and let the receiver refuse a fence
/// lower than the highest it has seen. It grows by one each time the lease changes hands and
/// never repeats for two holders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fence(u64);

impl Fence {
    pub(crate) const fn new(term: u64) -> Self {
        Self(term)
    }

    /// The fence as a number.
    #[must_use]
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// The fence as databases like to store it. Terms never reach the numbers where the two
    /// differ: a record with such a term is refused as unreadable.
    #[must_use]
    pub const fn as_i64(self) -> i64 {
        self.0 as i64
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<Fence> for u64 {
    fn from(fence: Fence) -> Self {
        fence.0
    }
}
