use std::time::{Duration, SystemTime, UNIX_EPOCH};

use incumbent_core::{DutyId, LeaseName, MemberId};

use crate::loss::Loss;
use crate::member::Member;

/// Something that happened, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// When, by this machine's wall clock in milliseconds since 1970: for display alone. The
    /// order of notices is the order in which things happened, whatever that clock did.
    pub at_ms: u64,
    /// What.
    pub event: Event,
}

impl Notice {
    /// When, by this machine's wall clock: for display alone.
    #[must_use]
    pub fn at(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.at_ms)
    }
}

/// What a node tells its subscribers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// How things stand: always the first, and only that. What follows are the changes to it.
    State(State),
    /// This node is a member, under this id.
    Joined {
        /// Its id.
        member: MemberId,
    },
    /// This node leads. The leases of duties have events of their own.
    Elected {
        /// Which lease.
        lease: LeaseName,
        /// In which term.
        term: u64,
    },
    /// This node leads no more. Comes exactly once after each [`Event::Elected`].
    Lost {
        /// Which lease.
        lease: LeaseName,
        /// The term that is over.
        term: u64,
        /// Why.
        why: Loss,
    },
    /// The work under the term has ended, and the lease was freed.
    Freed {
        /// Which lease.
        lease: LeaseName,
        /// The term that ended.
        term: u64,
    },
    /// A duty has started here. Comes again when it is started again after it ended by itself.
    DutyStarted {
        /// Which duty.
        duty: DutyId,
        /// The term under which it runs.
        term: u64,
    },
    /// A duty ended by an error or a panic. It is started again after a while, here or elsewhere.
    DutyFailed {
        /// Which duty.
        duty: DutyId,
        /// The term under which it ran.
        term: u64,
        /// The error.
        error: String,
        /// How often in a row.
        times: u32,
        /// Whether another node shall try.
        gave_up: bool,
    },
    /// A duty is done: it ended by itself, and this node starts it no more.
    DutyDone {
        /// Which duty.
        duty: DutyId,
        /// The term under which it ran.
        term: u64,
    },
    /// A duty that was heard of is this node's no more, and does not run here. Comes exactly once
    /// in each term in which it started, failed or was done. Only if the node left without order
    /// may it still run.
    DutyStopped {
        /// Which duty.
        duty: DutyId,
        /// The term that is over.
        term: u64,
        /// Why it was told to stop.
        why: Loss,
    },
    /// Somebody joined the cluster.
    MemberJoined(Member),
    /// Somebody left it, expired or was evicted, which its state says.
    MemberLeft(Member),
    /// This incarnation is over. The node joins anew by itself, unless it leaves.
    Ended {
        /// Its id.
        member: MemberId,
        /// Why.
        why: Loss,
    },
    /// This node has left for good. Nothing comes after this.
    Left,
}

/// How things stand for a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Its present id, if it is a member.
    pub member: Option<MemberId>,
    /// The leases that it holds, with their terms.
    pub leads: Vec<(LeaseName, u64)>,
    /// The duties that it runs, with their terms.
    pub duties: Vec<(DutyId, u64)>,
    /// The members as the cluster's leader sees them.
    pub members: Vec<Member>,
}
