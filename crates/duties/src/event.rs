//! What a node tells its driver.

use std::time::Duration;

use crate::duty::DutyId;

/// What happened, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DutyEvent {
    /// Something about this member, its leases or its cluster.
    Core(incumbent_core::ElectionEvent),
    /// A duty runs elsewhere, on another version, until this node has said that it is
    /// [prepared](crate::DutyNode::tell_prepared) for it.
    Prepare {
        /// The duty.
        duty: DutyId,
    },
    /// A duty that was prepared for won't come.
    Unprepare {
        /// The duty.
        duty: DutyId,
    },
    /// A duty is described by more than a record of this store can hold, so that nobody can be
    /// told of it: it isn't run.
    TooLarge {
        /// Of which family.
        family: String,
        /// Which duty.
        duty: String,
        /// How many bytes its description may take.
        most: usize,
    },
    /// This node leads the cluster, and a plan could not be made. Duties stay where they are, and
    /// it is tried again.
    PlanningFailed {
        /// What went wrong, as the driver told it.
        reason: String,
        /// When it is tried again.
        again_in: Duration,
    },
}
