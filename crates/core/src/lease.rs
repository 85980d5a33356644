//! One lease as one node sees it: wanted or not, watched, taken, held, freed.

use std::time::Duration;

use crate::backoff::Backoff;
use crate::mutant::{Planted, fault};
use crate::names::{LeaseName, MemberId};
use crate::pace;
use crate::records::{Content, LeaseRecord, Unreadable};
use crate::stance::Stance;
use crate::store::{Expect, Found, Version};
use crate::time::Moment;

/// What is known of the lease's record since it was last read or written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Known {
    Unread,
    Absent,
    Unreadable,
    Record(Box<LeaseRecord>, Version),
}

/// Where a node stands with a lease.
/// ```text
///            take                     applied
///  Seeking ───────▶ Taking ──────────────────────────────▶ Held
///   ▲  ▲               │ refused, in doubt                  ▲ │ resigned, withdrawn, leaving
///   │  └───────────────┤                                    │ ▼
///   │                  │ applied after the store forgot     │ Stopping
///   │                  └──────▶ Proving ── a beat shows ────┘ │ work stopped
///   │                              that our member is there   ▼
///   └──────────────── freed, or another's by now ◀─ Freeing ◀─ ToFree
/// ```
/// The end of the member leads back to Seeking from everywhere.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Stage {
    /// Not held: looking, waiting, or nothing at all if not wanted.
    Seeking,
    /// A take is on its way.
    Taking,
    /// Taken in this term, in a store that had forgotten the lease: held once a beat with a number
    /// above this one has shown that our member is in that store too.
    Proving(u64, u64),
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
    pub(crate) want: Option<Stance>,
    pub(crate) stage: Stage,
    pub(crate) known: Known,
    /// Whether a read is on its way.
    pub(crate) looking: bool,
    /// When to read next.
    pub(crate) look_at: Moment,
    /// A hint came after the last request about the record was sent, so that the answer may be
    /// older than what the hint is about.
    pub(crate) hinted: bool,
    /// When it was first seen free in its present version.
    pub(crate) free_since: Option<Moment>,
    /// The version that was read or written last, and when it was first.
    pub(crate) read: Option<(Version, Moment)>,
    /// When the request was sent that last showed or made it what is known.
    pub(crate) seen: Moment,
    /// What its holder had said of leases that it freed, before the lease was read last: as long as it
    /// says no more, the lease is as it was. 0 if that isn't known, or the last attempt to read it failed.
    pub(crate) counted: u64,
    /// The highest term whose release was sent: never trusted again, whatever a read shows.
    pub(crate) released: u64,
    /// The last term in which we were elected.
    pub(crate) elected: u64,
    /// Not to be taken before this: after a conflict or a failure.
    pub(crate) not_before: Moment,
    /// Who resigned stands back until then (F30), unless the next holder gives it to them by name.
    pub(crate) rests_until: Moment,
    /// Takes that may be in the record, or may still land there.
    pub(crate) doubts: Vec<Doubt>,
    /// What a store that keeps its word can't go back behind.
    pub(crate) memory: Memory,
    /// The store went back behind it, as far as reads tell.
    /// Rare, and kept apart so that leases of which nothing is lost are small.
    pub(crate) loss: Option<Box<StoreLoss>>,
    /// For whom others shall hold back once it is freed.
    pub(crate) successor: Option<MemberId>,
    pub(crate) conflicts: Backoff,
    pub(crate) failures: Backoff,
    /// The wake-up that the node has noted for this lease.
    pub(crate) armed: Moment,
}

/// A take whose outcome isn't known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Doubt {
    /// What the record says if it was this attempt that wrote it.
    pub(crate) mark: String,
    pub(crate) term: u64,
    /// It was sent to a store that had forgotten the lease.
    pub(crate) after_loss: bool,
}

/// More than this many takes are never in doubt at once: of older ones, those that land are freed.
const MOST_DOUBTS: usize = 64;

/// What was last known of a lease, kept while the node lives: records of leases don't vanish, and
/// terms don't go back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Memory {
    /// The highest term that was seen at all. The next one is above it.
    pub(crate) highest: u64,
    /// The term that was seen last, unless the store went back behind it of late.
    pub(crate) term: u64,
    /// Who held it then; nobody if it was freed.
    pub(crate) holder: Option<MemberId>,
    /// The ttl of the last holder whose record was seen.
    pub(crate) ttl: Duration,
}

/// The store shows less than it did: it forgot, or the reads are stale.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StoreLoss {
    /// Nobody that held the lease in what was lost trusts any more from here on, unless its member
    /// is still there.
    pub(crate) until: Moment,
    /// The last holder that was known. If its member wasn't lost with the lease, it goes on.
    pub(crate) holder: Option<MemberId>,
    /// How long is waited on one version.
    pub(crate) wait: Duration,
    /// The term that was shown, and when the last read showed it.
    term: u64,
    pub(crate) shown: Moment,
    /// What the first of those reads showed. Once something else is there, a take expects that, and
    /// fails if the store forgets once more.
    first: Option<Version>,
    /// What is waited on: what was read or written last. Where another is there, somebody may have
    /// taken the lease in between, and the store forgotten that: then waiting begins anew.
    version: Option<Version>,
    /// How often it did.
    pub(crate) again: u64,
}

/// After a loss terms go on this far above the highest that was seen, because terms that nobody here
/// saw may be lost too.
pub(crate) const JUMP: u64 = 1000;

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
    /// Write what the store went back to as it is.
    Mark,
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
            hinted: false,
            free_since: None,
            read: None,
            seen: Moment::START,
            counted: 0,
            released: 0,
            elected: 0,
            not_before: Moment::START,
            rests_until: Moment::START,
            doubts: Vec::new(),
            memory: Memory::default(),
            loss: None,
            successor: None,
            conflicts: Backoff::new(pace::CONFLICT.0, pace::CONFLICT.1),
            failures: Backoff::new(pace::FAILURE.0, pace::FAILURE.1),
            armed: Moment::NEVER,
        }
    }

    /// Whether this node would take it.
    pub(crate) fn is_electable(&self) -> bool {
        self.want.as_ref().is_some_and(|want| want.electable)
    }

    /// The term in which it is held, as far as is known.
    pub(crate) fn held(&self) -> Option<u64> {
        match self.stage {
            Stage::Held(term) => Some(term),
            Stage::Seeking
            | Stage::Taking
            | Stage::Proving(..)
            | Stage::Stopping(_)
            | Stage::ToFree(_)
            | Stage::Freeing(_) => None,
        }
    }

    /// The term under which work may still run.
    pub(crate) fn term(&self) -> Option<u64> {
        match self.stage {
            Stage::Held(term) | Stage::Stopping(term) => Some(term),
            Stage::Seeking
            | Stage::Taking
            | Stage::Proving(..)
            | Stage::ToFree(_)
            | Stage::Freeing(_) => None,
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

    /// How long after it took the lease its holder was going to beat next, if it said so.
    pub(crate) fn next_beat_of(&self, member: &MemberId) -> Option<Duration> {
        let Known::Record(record, _) = &self.known else { return None };
        let holder = record.holder.as_ref().filter(|holder| holder.member == *member)?;
        (holder.due_ms > 0).then(|| Duration::from_millis(u64::from(holder.due_ms)))
    }

    /// The members that must be closed before the lease may be taken.
    pub(crate) fn awaited(&self) -> impl Iterator<Item = &MemberId> {
        self.holder().into_iter().chain(self.lost_holder())
    }

    /// Who held the lease before the store forgot, as long as nobody has taken it since: who has
    /// couldn't know, and what it did isn't undone by waiting.
    pub(crate) fn lost_holder(&self) -> Option<&MemberId> {
        self.loss.as_ref()?.holder.as_ref()
    }

    /// When the record was first read as it is now, or written.
    pub(crate) fn read_since(&self) -> Moment {
        self.read.as_ref().map_or(Moment::START, |(_, since)| *since)
    }

    /// Whether the record was written since the store went back to it.
    pub(crate) fn is_marked(&self) -> bool {
        let version = self.version();
        version.is_some() && self.loss.as_ref().is_some_and(|loss| loss.first.as_ref() != version)
    }

    /// Whether a take would follow a loss: one that was seen here, or that others have written down.
    pub(crate) fn follows_loss(&self) -> bool {
        self.loss.is_some() || matches!(&self.known, Known::Record(record, _) if record.is_lost())
    }

    /// Notes a take whose outcome isn't known.
    pub(crate) fn doubt(&mut self, doubt: Doubt) {
        self.doubts.push(doubt);
        let over = self.doubts.len().saturating_sub(MOST_DOUBTS);
        self.doubts.drain(..over);
    }

    /// The take in doubt that wrote the record, if one did.
    pub(crate) fn landed(&self) -> Option<&Doubt> {
        let Known::Record(record, _) = &self.known else { return None };
        let mark = record.holder.as_ref()?.mark.as_ref()?;
        self.doubts.iter().find(|doubt| doubt.mark == *mark && doubt.term == record.term)
    }

    /// Takes in what a read found; says whether it was news.
    pub(crate) fn observe(
        &mut self,
        found: &Found,
        now: Moment,
        own: Option<&MemberId>,
        own_ttl: Duration,
        planted: Planted,
    ) -> Result<bool, Unreadable> {
        let known = match found {
            Found::Unchanged => {
                self.compare(now, own, own_ttl, planted);
                return Ok(false);
            }
            Found::Absent | Found::Records(_) => Known::Absent,
            Found::Record(stored) => match LeaseRecord::read(stored) {
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
        if let Some(version) = self.version()
            && self.read.as_ref().is_none_or(|(read, _)| read != version)
        {
            self.read = Some((version.clone(), now));
        }
        self.compare(now, own, own_ttl, planted);
        Ok(news)
    }

    /// Takes in a write of our own that was applied: nothing that was sent before can land now.
    pub(crate) fn wrote(
        &mut self,
        record: LeaseRecord,
        version: Version,
        now: Moment,
        planted: Planted,
    ) {
        let (term, before) = (record.term, self.memory.term);
        self.learn(Known::Record(Box::new(record), version.clone()));
        self.read = Some((version.clone(), now));
        self.doubts.clear();
        // What the store went back to may have come to the term that was lost, by a take that was on
        // its way: to write that down again ends nobody's trust.
        let above = fault!(planted, MarkEndsLoss => term >= before, term > before);
        match &mut self.loss {
            Some(loss) if !above => {
                loss.version = Some(version);
                loss.until = now + loss.wait;
            }
            Some(_) | None => {
                self.loss = None;
                self.remember();
            }
        }
    }

    /// Sets what is known, and forgets what hung on something older.
    pub(crate) fn learn(&mut self, known: Known) {
        if self.known != known {
            self.free_since = None;
            self.known = known;
            if let Known::Record(record, _) = &mut self.known {
                // It is kept for as long as the lease is, and a node may have many.
                record.changes.shrink_to_fit();
            }
        }
        let Known::Record(record, _) = &self.known else { return };
        let mark = record.holder.as_ref().and_then(|holder| holder.mark.as_ref());
        // That another version is there proves nothing, because a read may be older than what a
        // take expected. A term that the take would have written, written by another, does.
        self.doubts.retain(|doubt| doubt.term > record.term || Some(&doubt.mark) == mark);
    }

    /// Compares what a read shows with what is remembered.
    fn compare(
        &mut self,
        now: Moment,
        own: Option<&MemberId>,
        own_ttl: Duration,
        planted: Planted,
    ) {
        let (term, lost, disowned) = match &self.known {
            Known::Unread | Known::Unreadable => return,
            Known::Absent => (0, 0, false),
            Known::Record(record, _) => (record.term, record.lost, record.is_disowned()),
        };
        let memory = &self.memory;
        let another = term == memory.term
            && match (self.holder(), &memory.holder) {
                (Some(holder), Some(remembered)) => holder != remembered,
                (None, Some(_)) => disowned,
                (_, None) => false,
            };
        // What was lost before may be all that was there, and is gone too.
        let gone = self.known == Known::Absent && memory.highest > 0;
        if term < memory.term || another || gone {
            let wait = memory.ttl.max(own_ttl);
            let version = self.version().cloned();
            // What reads showed before may have been stale, and this the loss: it counts only if
            // reads went on showing the same.
            let goes_on = |loss: &StoreLoss| {
                let there = version.is_some() || loss.version.is_none();
                let same = fault!(planted, LossesMixedUp => there, loss.version == version);
                same && term == loss.term && now.since(loss.shown) <= wait / 2
            };
            // What somebody has written down since needn't be written down again.
            let begun = self.loss.as_ref().filter(|loss| term == loss.term && version.is_some());
            let first = begun.map_or_else(|| version.clone(), |loss| loss.first.clone());
            let again = self.loss.as_ref().map_or(0, |loss| loss.again + 1);
            let fresh = |holder| {
                let (until, shown, version) = (now + wait, now, version.clone());
                StoreLoss { until, holder, wait, term, shown, first, version, again }
            };
            // A take that was on its way when the store went back is nobody's: of that it is known
            // here if it was ours, and by what its taker has written since if it was another's.
            let nobodys = disowned || (own.is_some() && self.holder() == own);
            let mut loss = match self.loss.take().map(|loss| *loss) {
                Some(loss) if goes_on(&loss) => StoreLoss { shown: now, version, ..loss },
                Some(loss) if term == loss.term => fresh(loss.holder),
                // Somebody has taken it who couldn't know, or the store went back once more.
                Some(loss) if term > loss.term => fresh(None),
                Some(_) | None => fresh(memory.holder.clone()),
            };
            if nobodys {
                loss.holder.clone_from(&memory.holder);
            }
            self.loss = Some(Box::new(loss));
            self.memory.highest = self.memory.highest.max(lost);
            let over = |loss: &mut Box<StoreLoss>| now >= loss.until && loss.holder.is_none();
            if self.holder().is_some() && self.loss.take_if(over).is_some() {
                // Another leads on in what is left, and nobody else can. From here on that is what
                // the store can't go back behind.
                self.remember();
            }
        } else {
            self.loss = None;
            self.remember();
        }
    }

    fn remember(&mut self) {
        if let Known::Record(record, _) = &self.known {
            self.memory.highest = record.term.max(record.lost).max(self.memory.highest);
            self.memory.term = record.term;
            self.memory.holder = record.holder.as_ref().map(|holder| holder.member.clone());
        }
    }
}

#[cfg(test)]
mod tests;
