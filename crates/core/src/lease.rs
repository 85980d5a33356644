//! One lease as one node sees it: wanted or not, watched, taken, held, freed.

use std::time::Duration;

use crate::backoff::Backoff;
use crate::names::{LeaseName, MemberId};
use crate::records::{Content, LeaseRecord, Unreadable};
use crate::store::{Expect, Found, Version};
use crate::time::Moment;

/// How a node stands for a lease.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Candidacy {
    /// Whether it would take the lease; if not it only watches.
    pub electable: bool,
    /// Who goes first when the lease is free.
    pub preference: Preference,
    /// What others can read beside the holder's name.
    pub payload: Option<String>,
}

impl Default for Candidacy {
    fn default() -> Self {
        Self { electable: true, preference: Preference::None, payload: None }
    }
}

/// Who goes first when a lease is free. Only ever a delay of at most ttl/3, so that a dead
/// favourite keeps nobody waiting for long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Preference {
    /// Whoever comes first.
    None,
    /// From 0, which waits longest, to 255, which doesn't wait.
    Priority(u8),
    /// The longer a node has been a member, the less it waits.
    LongestRunning,
}

impl Preference {
    /// How long to hold back from a lease that was seen free.
    pub(crate) fn delay(self, ttl: Duration, member_for: Duration) -> Duration {
        let most = ttl / 3;
        match self {
            Self::None => Duration::ZERO,
            Self::Priority(priority) => most * u32::from(u8::MAX - priority) / u32::from(u8::MAX),
            Self::LongestRunning => {
                let share = ttl.as_secs_f64() / (ttl + member_for).as_secs_f64();
                most.mul_f64(share.clamp(0.0, 1.0))
            }
        }
    }
}

/// What is known of the lease's record since it was last read or written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Known {
    Unread,
    Absent,
    Unreadable,
    Record(Box<LeaseRecord>, Version),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Stage {
    /// Not held: looking, waiting, or nothing at all if not wanted.
    Seeking,
    /// A take is on its way.
    Taking,
    /// Held in this term.
    Held(u64),
    /// Work was told to stop; the lease is freed when it has.
    Stopping(u64),
    /// To be freed: nothing runs under it.
    ToFree(u64),
    /// A release is on its way.
    Freeing(u64),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Lease {
    pub(crate) name: LeaseName,
    pub(crate) want: Option<Candidacy>,
    pub(crate) stage: Stage,
    pub(crate) known: Known,
    /// Whether a read is on its way.
    pub(crate) looking: bool,
    /// When to read next.
    pub(crate) look_at: Moment,
    /// When it was first seen free in its present version.
    pub(crate) free_since: Option<Moment>,
    /// The highest term whose release was sent: never trusted again, whatever a read shows.
    pub(crate) released: u64,
    /// Not to be taken before this: after a resignation, a conflict or a failure.
    pub(crate) not_before: Moment,
    /// A take that may still land if the record has this version yet.
    pub(crate) unsettled: Option<Expect>,
    /// For whom others shall hold back once it is freed.
    pub(crate) successor: Option<MemberId>,
    pub(crate) conflicts: Backoff,
    pub(crate) failures: Backoff,
    /// The wake-up that the node has noted for this lease.
    pub(crate) armed: Moment,
}

/// What a lease wants done next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Move {
    /// Nothing before this moment.
    Wait(Moment),
    /// Read the record and its holder's now.
    Look,
    /// Close the holder's member record.
    Close(MemberId),
    /// Take it.
    Take,
    /// It is ours by a take that landed late.
    Adopt(u64),
    /// Free it.
    Free(u64),
    /// Write it as it is, so that an unsettled take can't land any more.
    Touch,
    /// It was not free when last driven, and is now: note when that was.
    NoteFree,
    /// What was to be freed is no longer ours.
    Settled,
    /// Forget it.
    Forget,
}

impl Lease {
    pub(crate) fn new(name: LeaseName, now: Moment) -> Self {
        Self {
            name,
            want: None,
            stage: Stage::Seeking,
            known: Known::Unread,
            looking: false,
            look_at: now,
            free_since: None,
            released: 0,
            not_before: Moment::START,
            unsettled: None,
            successor: None,
            conflicts: Backoff::new(Duration::from_millis(20), Duration::from_millis(200)),
            failures: Backoff::new(Duration::from_millis(50), Duration::from_secs(1)),
            armed: Moment::NEVER,
        }
    }

    /// Whether this node would take it.
    pub(crate) fn is_electable(&self) -> bool {
        self.want.as_ref().is_some_and(|want| want.electable)
    }

    /// The term under which work may still run.
    pub(crate) fn term(&self) -> Option<u64> {
        match self.stage {
            Stage::Held(term) | Stage::Stopping(term) => Some(term),
            Stage::Seeking | Stage::Taking | Stage::ToFree(_) | Stage::Freeing(_) => None,
        }
    }

    /// What the next write has to find.
    pub(crate) fn expect(&self) -> Expect {
        match &self.known {
            Known::Record(_, version) => Expect::Version(version.clone()),
            Known::Unread | Known::Absent | Known::Unreadable => Expect::Absent,
        }
    }

    /// The record as known, or a new one.
    pub(crate) fn record(&self) -> LeaseRecord {
        match &self.known {
            Known::Record(record, _) => LeaseRecord::clone(record),
            Known::Unread | Known::Absent | Known::Unreadable => LeaseRecord::fresh(&self.name),
        }
    }

    /// The version already known, so that a read can leave out what didn't change.
    pub(crate) fn version(&self) -> Option<&Version> {
        match &self.known {
            Known::Record(_, version) => Some(version),
            Known::Unread | Known::Absent | Known::Unreadable => None,
        }
    }

    /// The member that holds it, as far as is known.
    pub(crate) fn holder(&self) -> Option<&MemberId> {
        match &self.known {
            Known::Record(record, _) => record.holder.as_ref().map(|holder| &holder.member),
            Known::Unread | Known::Absent | Known::Unreadable => None,
        }
    }

    /// Takes in what a read found; says whether it was news.
    pub(crate) fn observe(&mut self, found: &Found) -> Result<bool, Unreadable> {
        let known = match found {
            Found::Unchanged => return Ok(false),
            Found::Absent | Found::Records(_) => Known::Absent,
            Found::Record(stored) => match self.read(stored) {
                Ok(record) => Known::Record(Box::new(record), stored.version.clone()),
                Err(unreadable) => {
                    let news = self.known != Known::Unreadable;
                    self.known = Known::Unreadable;
                    return if news { Err(unreadable) } else { Ok(false) };
                }
            },
        };
        let news = self.known != known;
        self.learn(known);
        Ok(news)
    }

    /// Sets what is known, and forgets what hung on an older version.
    pub(crate) fn learn(&mut self, known: Known) {
        if self.known != known {
            self.free_since = None;
            self.known = known;
        }
        if self.unsettled.as_ref().is_some_and(|expected| *expected != self.expect()) {
            // A newer version kills a write that expected an older one.
            self.unsettled = None;
        }
    }

    fn read(&self, stored: &crate::store::Record) -> Result<LeaseRecord, Unreadable> {
        let record = LeaseRecord::read(stored)?;
        if record.name != self.name.as_str() {
            return Err(Unreadable {
                key: stored.key.as_str().to_owned(),
                reason: format!("it is the lease {:?}, not {:?}", record.name, self.name),
            });
        }
        Ok(record)
    }
}
