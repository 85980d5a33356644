use std::io::Write;

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
    /// The node runs a duty.
    Started {
        /// Which duty.
        duty: String,
        /// In which term.
        term: u64,
        /// Read after the work had begun: it ran no later than this.
        at: u64,
    },
    /// The duty still runs there.
    Ran {
        /// Which duty.
        duty: String,
        /// In which term.
        term: u64,
        /// Read before the work took a step: it ran at this or later.
        asked: u64,
        /// Until when it might have run on, had nothing else happened.
        until: u64,
    },
    /// The duty runs there no more.
    Stopped {
        /// Which duty.
        duty: String,
        /// The term that is over.
        term: u64,
        /// Why, in words.
        why: String,
        /// As for [`Self::Lost`].
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
        /// What went wrong.
        why: String,
    },
}

impl Word {
    /// Says it in one line, at once. If nobody listens any more, this process is about to end.
    pub(crate) fn say(&self) {
        let Ok(mut line) = serde_json::to_vec(self) else { return };
        line.push(b'\n');
        let mut stdout = std::io::stdout().lock();
        let _ = stdout.write_all(&line).and_then(|()| stdout.flush());
    }
}
