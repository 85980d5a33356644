//! How requests fare on their way to the store and back.

use incumbent_core::random::Random;
use incumbent_core::store::ErrorKind;

use crate::scenario::{MILLI, draw_span};

/// What becomes of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fate {
    /// After how long the store applies it; never if it is lost.
    pub(crate) arrives: Option<u64>,
    /// What comes back.
    pub(crate) back: Back,
    /// What kind of fault this is, if it is one.
    pub(crate) fault: Option<&'static str>,
}

/// What comes back to the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Back {
    /// The reply, so long after the request was sent.
    Reply(u64),
    /// An error instead, so long after the request was sent.
    Error(u64, ErrorKind),
    /// Nothing at all.
    Silence,
}

/// The weather at the moment of sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Weather {
    /// The longest way in calm weather.
    pub(crate) latency: u64,
    /// Of a thousand requests, so many fare ill.
    pub(crate) ill: u64,
    /// The ttl of the sender.
    pub(crate) ttl: u64,
    /// Whether delays sit at boundaries.
    pub(crate) aimed: bool,
}

impl Weather {
    /// Draws what becomes of a request.
    pub(crate) fn fate(&self, random: &mut Random) -> Fate {
        let there = MILLI / 4 + random.below(self.latency);
        let back = MILLI / 4 + random.below(self.latency);
        let well = Fate { arrives: Some(there), back: Back::Reply(there + back), fault: None };
        if random.below(1000) >= self.ill {
            return well;
        }
        let slow = there + draw_span(random, self.ttl, self.aimed).min(self.ttl / 2);
        match random.below(12) {
            0..=1 => lost(random),
            2..=3 => Fate { back: Back::Silence, fault: Some("reply lost"), ..well },
            4 => Fate {
                back: Back::Error(there + back, ErrorKind::Unknown),
                fault: Some("error after applying"),
                ..well
            },
            5 => Fate {
                arrives: None,
                back: Back::Error(there + back, ErrorKind::Unavailable),
                fault: Some("refused connection"),
            },
            6..=7 => Fate { back: Back::Reply(slow), fault: Some("slow reply"), ..well },
            8..=9 => Fate {
                arrives: Some(slow),
                back: Back::Reply(slow + back),
                fault: Some("slow request"),
            },
            // It lands long after the sender gave up.
            _ => Fate {
                arrives: Some(draw_span(random, 2 * self.ttl, self.aimed)),
                back: Back::Error(there + random.below(self.ttl / 6), ErrorKind::Unknown),
                fault: Some("late request"),
            },
        }
    }
}

/// A request that never arrives.
pub(crate) fn lost(random: &mut Random) -> Fate {
    let back = match random.below(3) {
        0 => Back::Error(MILLI + random.below(50 * MILLI), ErrorKind::Unknown),
        1 => Back::Error(MILLI + random.below(5 * MILLI), ErrorKind::Unavailable),
        _ => Back::Silence,
    };
    Fate { arrives: None, back, fault: Some("request lost") }
}

/// A request that is turned away at once, as by a server that isn't running.
pub(crate) fn refused(random: &mut Random) -> Fate {
    let after = MILLI / 2 + random.below(MILLI);
    Fate {
        arrives: None,
        back: Back::Error(after, ErrorKind::Unavailable),
        fault: Some("refused connection"),
    }
}
