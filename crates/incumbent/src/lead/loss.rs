use std::fmt;

use incumbent_core::records::MemberState;
use incumbent_core::{self as core, Ending};

/// Why leadership is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Loss {
    /// The work ended by itself, or the [`Leadership`](crate::Leadership) was dropped.
    WorkEnded,
    /// It was given up: by the program, or because an operator asked for it.
    Resigned,
    /// This node doesn't stand for the lease any more.
    Withdrawn,
    /// This node leaves the cluster.
    Leaving,
    /// Trust ran out before a beat got through. Whether others have closed this member can't be
    /// told; nothing may be concluded but that this node may not go on.
    CannotTell,
    /// Others closed this member's record: it expired, or it was evicted.
    Closed(MemberState),
    /// This member's record is gone or can't be read: the store was wiped, restored or tampered
    /// with.
    Vanished,
    /// The store says that another has the lease: it lost data, or someone tampered with it.
    Superseded,
    /// The work reported no progress for as long as it had promised to
    /// ([`Candidacy::watchdog`](crate::Candidacy::watchdog)).
    Stuck,
    /// incumbent itself failed, by a bug. The node joins anew.
    Broken,
}

/// The end of one term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Lost {
    /// Why it ended.
    pub why: Loss,
    /// Whether trust was over at that moment. If it wasn't, there was time to finish in order.
    pub abrupt: bool,
}

impl From<core::LossCause> for Loss {
    fn from(loss: core::LossCause) -> Self {
        match loss {
            core::LossCause::Finished => Self::WorkEnded,
            core::LossCause::Resigned => Self::Resigned,
            core::LossCause::Withdrawn => Self::Withdrawn,
            core::LossCause::Leaving => Self::Leaving,
            core::LossCause::Ended(ending) => ending.into(),
            core::LossCause::Superseded => Self::Superseded,
        }
    }
}

impl From<Ending> for Loss {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::TrustRanOut => Self::CannotTell,
            Ending::Closed(state) => Self::Closed(state),
            Ending::Vanished => Self::Vanished,
            Ending::Left => Self::Leaving,
        }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WorkEnded => "the work ended",
            Self::Resigned => "resigned",
            Self::Withdrawn => "withdrawn",
            Self::Leaving => "this node leaves the cluster",
            Self::CannotTell => "no beat got through in time: can't tell who leads",
            Self::Closed(MemberState::Alive | MemberState::Left) => "this member was closed",
            Self::Closed(MemberState::Expired) => "others saw this member expire",
            Self::Closed(MemberState::Evicted) => "this member was evicted",
            Self::Vanished => "this member's record is gone",
            Self::Superseded => "the store names another holder",
            Self::Stuck => "the work reported no progress in time",
            Self::Broken => "incumbent itself failed on this node",
        })
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.why.fmt(f)
    }
}
