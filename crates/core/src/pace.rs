//! The times that don't follow from the ttl. They decide how soon something is tried or looked at again,
//! and never who holds what.

use std::time::Duration;

/// A waiting candidate looks at its lease at least so often, whatever hints say.
pub const LOOK: Duration = Duration::from_secs(1);

/// After a conflict on a lease: the first pause and the longest.
pub const CONFLICT: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(200));

/// After a request that failed: the first pause and the longest.
pub const FAILURE: (Duration, Duration) = (Duration::from_millis(50), LOOK);

/// The leader lists at most so often because of hints.
pub const HINTED: Duration = Duration::from_millis(200);

/// The leader lists again at the soonest after this, and reads profiles that changed.
pub const SOONEST: Duration = Duration::from_millis(20);

/// What the leader couldn't read or write is tried again after this.
pub const LEADER_RETRY: Duration = Duration::from_millis(500);

/// What the leader found changed under its hands is looked at again after this.
pub const LEADER_CONFLICT: Duration = Duration::from_millis(200);

/// A view or board that was not written is tried again after this.
pub const PUBLISH_RETRY: Duration = Duration::from_millis(100);

/// Sweeps of nodes that lead nothing are spread over this span.
pub const SWEEP: (Duration, Duration) = (Duration::from_millis(200), Duration::from_millis(600));

/// A holder's beat is looked for so long after it is due, drawn from this span, and at the soonest after
/// the first of them.
pub const OFFSET: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(12));
