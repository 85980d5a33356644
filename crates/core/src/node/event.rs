//! What a node tells its driver.

use crate::member::Ending;
use crate::names::{LeaseName, MemberId};
use crate::records::{LeaseRecord, Unreadable, View};

/// Why a lease was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LossCause {
    /// The work under it ended by itself.
    Finished,
    /// This node gave it up.
    Resigned,
    /// This node doesn't want it any more.
    Withdrawn,
    /// This node leaves the cluster.
    Leaving,
    /// The member ended, and with it all that hung from it.
    Ended(Ending),
    /// The store says that another has it: it lost data, or someone tampered with it.
    Superseded,
}

/// What happened, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ElectionEvent {
    /// This node is a member.
    Joined {
        /// Under this id.
        member: MemberId,
    },
    /// This node holds a lease; work may start.
    Elected {
        /// Which lease.
        lease: LeaseName,
        /// The fencing token.
        term: u64,
        /// The incarnation that holds it.
        member: MemberId,
    },
    /// The work under a lease must end; [`Elector::stopped`](crate::Elector::stopped) says when it has.
    Lost {
        /// Which lease.
        lease: LeaseName,
        /// The term that is over.
        term: u64,
        /// Why it is over.
        why: LossCause,
        /// Whether trust is over already; if not, there is time to finish in order.
        abrupt: bool,
    },
    /// Work that was told to finish in order must end at once: trust is over.
    Abort {
        /// Which lease.
        lease: LeaseName,
        /// The term that is over.
        term: u64,
    },
    /// The lease was freed after its work had stopped.
    Freed {
        /// Which lease.
        lease: LeaseName,
        /// The term that ended.
        term: u64,
    },
    /// A lease that this node wants or watches is not as it was.
    Observed {
        /// Which lease.
        lease: LeaseName,
        /// Its record, if there is one.
        record: Option<LeaseRecord>,
    },
    /// What [`Elector::confirm`](crate::Elector::confirm) found out.
    Confirmed {
        /// Which lease.
        lease: LeaseName,
        /// The term asked about.
        term: u64,
        /// Whether the store says so too; nothing if it can't be reached.
        held: Option<bool>,
    },
    /// The members as the cluster's leader sees them.
    Viewed(View),
    /// This incarnation is over. The node joins anew unless it was asked to leave.
    Ended {
        /// Which incarnation.
        member: MemberId,
        /// Why it is over.
        why: Ending,
    },
    /// This node has left, and nothing will be sent any more.
    Left,
    /// A record can't be read; nothing is concluded from it.
    Unreadable(Unreadable),
}
