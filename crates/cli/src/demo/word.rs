use serde::{Deserialize, Serialize};

/// What a node of the demo tells it: one JSON object a line on its standard output.
///
/// Stamps are nanoseconds of the clock that all processes of a machine share and that goes on
/// while one of them is paused (`CLOCK_BOOTTIME` on Linux).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "lowercase")]
pub(crate) enum Word {
    /// The node is a member.
    Joined {
        /// Under this id.
        member: String,
        /// When it said so.
        at: u64,
    },
    /// The node leads.
    Elected {
        /// Which lease.
        lease: String,
        /// In which term.
        term: u64,
        /// Read after the node had asked "do I lead?" and heard yes: it led no later than this.
        at: u64,
    },
    /// The node still leads.
    Held {
        /// Which lease.
        lease: String,
        /// In which term.
        term: u64,
        /// Read before the node asked "do I lead?" and heard yes: it led at this or later.
        asked: u64,
        /// Until when it would have heard yes, had nothing else happened.
        until: u64,
    },
    /// The node leads no more.
    Lost {
        /// Which lease.
        lease: String,
        /// The term that is over.
        term: u64,
        /// The last time before which it asked and heard yes.
        asked: u64,
        /// When it noticed.
        at: u64,
        /// Why, in words.
        why: String,
        /// Whether trust ran out or others saw it expire: then it would have heard yes up to
        /// its last deadline.
        expired: bool,
    },
    /// This incarnation of the node is over.
    Ended {
        /// Its id.
        member: String,
        /// Why, in words.
        why: String,
    },
    /// The node has left in order.
    Left,
    /// The node can't go on.
    Failed {
        /// Why.
        why: String,
    },
}
