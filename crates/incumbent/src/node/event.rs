use std::time::{Duration, SystemTime, UNIX_EPOCH};

use incumbent_core::{LeaseName, MemberId};
use incumbent_duties::DutyId;

use crate::cluster::Leader;
use crate::lead::loss::Loss;
use crate::node::member::Member;

/// Something that happened, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Notice {
    /// When, by this machine's wall clock in milliseconds since 1970: for display alone. The
    /// order of notices is the order in which things happened, whatever that clock did.
    pub at_ms: u64,
    /// What happened.
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
#[non_exhaustive]
pub enum Event {
    /// How things stand: always the first, and otherwise only after [`Event::Missed`]. What
    /// follows are the changes to it.
    State(State),
    /// This subscriber didn't read for so long that some notices were dropped. The state follows.
    Missed {
        /// How many.
        notices: u64,
    },
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
        /// Why it is over.
        why: Loss,
    },
    /// A lease that this node stands for, or [follows](crate::Candidacy::follow_only), has another
    /// leader than before, or none: what [`Node::known_leader`](crate::Node::known_leader) says from
    /// now on. Comes for this node itself too, after [`Event::Elected`] and [`Event::Lost`]. Leaders
    /// that follow one another quickly may be told as one.
    LeaderChanged {
        /// Which lease.
        lease: LeaseName,
        /// Who leads now; nobody, as far as is known.
        leader: Option<Leader>,
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
    /// in each term in which it started, failed or was done. It may still run only if the node did not
    /// leave in order.
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
    /// Somebody left it, expired or was evicted. Its state says which, unless its record is gone already:
    /// then it is the last that was seen.
    MemberLeft(Member),
    /// This incarnation is over. The node joins anew by itself, unless it leaves.
    Ended {
        /// Its id.
        member: MemberId,
        /// Why it is over.
        why: Loss,
    },
    /// The store fails. Told once for each outage, by the rule of
    /// [`StoreHealth`](crate::StoreHealth).
    StoreFails {
        /// The first error.
        error: String,
    },
    /// The store answers again, by the same rule.
    StoreAnswers {
        /// How long it failed, from the first failure that was noticed to the last.
        after: Duration,
    },
    /// This node has left for good. Nothing comes after this.
    Left,
}

/// How things stand for a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct State {
    /// Its present id, if it is a member.
    pub member: Option<MemberId>,
    /// The leases that it holds, with their terms.
    pub leads: Vec<(LeaseName, u64)>,
    /// Who leads the leases that it stands for or follows, itself included, where that is known.
    pub leaders: Vec<(LeaseName, Leader)>,
    /// The duties that it runs, with their terms.
    pub duties: Vec<(DutyId, u64)>,
    /// The members as the cluster's leader sees them.
    pub members: Vec<Member>,
    /// What the store says, if it fails.
    pub store_error: Option<String>,
}
