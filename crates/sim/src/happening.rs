//! What happens in the simulated world, and in which order.

use incumbent_core::store::{ErrorKind, Exchange, Reply};
use incumbent_core::{LeaseName, MemberId, RequestId};
use incumbent_duties::{DutyId, Planned, PlanningId};

use crate::network::Fate;
use crate::scenario::Fault;

/// Something that happens at an instant.
#[derive(Debug)]
pub(crate) enum Happening {
    Wake {
        node: usize,
        at: u64,
    },
    Arrive {
        node: usize,
        life: u64,
        id: RequestId,
        exchange: Exchange,
        fate: Fate,
        sent: u64,
    },
    Reply {
        node: usize,
        life: u64,
        id: RequestId,
        answer: Result<Reply, ErrorKind>,
    },
    Hint {
        node: usize,
    },
    Stopped {
        node: usize,
        life: u64,
        lease: LeaseName,
        term: u64,
    },
    /// Preparing for a duty is over.
    Prepared {
        node: usize,
        life: u64,
        duty: DutyId,
    },
    Started {
        node: usize,
        life: u64,
        lease: LeaseName,
        term: u64,
    },
    /// A plan was made, or could not be.
    Planned {
        node: usize,
        life: u64,
        id: PlanningId,
        result: Result<Box<Planned>, String>,
    },
    Start {
        node: usize,
    },
    Want {
        node: usize,
        lease: usize,
    },
    /// A witness tells this node that nothing of the member runs any more.
    Dead {
        node: usize,
        member: MemberId,
    },
    Fault(Fault),
    Calm,
}

/// A happening and its place in time.
pub(crate) struct Due {
    pub(crate) at: u64,
    pub(crate) order: u64,
    pub(crate) what: Box<Happening>,
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.order) == (other.at, other.order)
    }
}
impl Eq for Due {}
impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Due {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}
