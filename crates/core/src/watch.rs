//! Watching another member: when it may be closed, and when to look again.

use std::time::Duration;

use crate::backoff::Backoff;
use crate::mutant::{Mutant, Planted, fault};
use crate::pace;
use crate::random::Random;
use crate::records::{Content, MemberRecord, MemberState, Unreadable};
use crate::store::{Found, Version};
use crate::time::Moment;

/// A bracket wider than this is narrowed by one probe.
const WIDE: Duration = Duration::from_millis(40);
/// Where a beat may come at any moment of its interval, this many looks are taken in that.
const SEARCH: u32 = 8;
/// By so much of an interval a bracket grows when it is shifted by that.
const DRIFT: f64 = 0.001;
/// After a beat that wasn't there when due, looked for again after this, doubling.
const MISSED: Duration = Duration::from_millis(50);
/// No longer than this between two looks for a missing beat.
const SLOWEST: Duration = Duration::from_secs(1);

/// What one node knows about another member's record.
///
/// A beat announces when the next is due. The watcher brackets each beat on its own clock: not
/// before it sent the last read that didn't show it, not after it received the first that did.
/// Shifted by the announced interval, the bracket says when the next beat must be visible, and when
/// that was written. So a beat is seen late by milliseconds at little more than one read a beat, and
/// no other clock is involved.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Watch {
    sight: Sight,
    /// When the last read was sent: it showed nothing that came later.
    stale: Option<Moment>,
    /// Looks past the time when a beat was due.
    misses: u32,
    probed: bool,
    /// A closing is on its way.
    pub(crate) closing: bool,
    /// A closing failed: the record is to be read again before anything is concluded.
    doubted: bool,
    /// It came to hold a lease that was watched, so that its record must be there or must have been
    /// there of late; if it isn't, the store forgot it. Its ttl is taken to be this.
    expected: Option<Duration>,
    /// Not earlier than this, by our clock, was the last beat written that was seen of it.
    beaten: Option<Moment>,
    /// A witness has proven that nothing of the member runs any more.
    dead: bool,
    /// Its next beat is due then, by what it said when it took a lease before our eyes: of a member
    /// that is seen for the first time nothing else tells when it last beat.
    foretold: Option<Moment>,
    /// The highest beat of those whose closing was refused.
    refused: Option<u64>,
    refusals: Backoff,
    /// When to read next, as decided at a moment: the same for all leases that hang from the member.
    next: Option<(Moment, Moment)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Sight {
    Nothing,
    Absent,
    /// It was seen alive, with this ttl, and nobody deletes such a record: the store forgot it, or
    /// the read is stale.
    Vanished(Duration),
    /// With the ttl that was last read of it, if one was and it was alive then.
    Unreadable(Option<Duration>),
    Shown(Shown),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Shown {
    record: MemberRecord,
    version: Version,
    /// When the first reply arrived that showed this version.
    received: Moment,
    /// When it was written, by our clock, as far as reads and what was announced tell. Nothing but
    /// when to look hangs on this.
    earliest: Moment,
    latest: Moment,
    age: Option<Duration>,
}

/// What a watch concludes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Not read yet.
    Unread,
    /// There is no record, and none was seen; it must be created as expired before anything is concluded.
    Absent,
    /// There is no record any more, though nobody closed it. It must be created as evicted: that
    /// proves that it is gone, and only from then on does its last trust run out.
    Vanished,
    /// It can't be read; nothing is concluded.
    Unreadable,
    /// It may not be closed before this moment.
    AliveUntil(Moment),
    /// It left or expired: what it held is free.
    Closed(MemberState),
    /// It was evicted: what it held is free from this moment on.
    EvictedUntil(Moment),
}

impl Watch {
    pub(crate) fn new() -> Self {
        Self {
            sight: Sight::Nothing,
            stale: None,
            misses: 0,
            probed: false,
            closing: false,
            doubted: false,
            expected: None,
            beaten: None,
            dead: false,
            foretold: None,
            refused: None,
            refusals: Backoff::new(pace::CONFLICT.0, SLOWEST),
            next: None,
        }
    }

    /// What another node of this process may go on from: what is on its way is none of its own.
    pub(crate) fn settled(&self) -> Self {
        let doubted = self.doubted || self.closing;
        Self { closing: false, doubted, ..self.clone() }
    }

    /// Takes in that the member came to hold a lease while that was watched.
    pub(crate) fn expect(&mut self, ttl: Duration) {
        self.expected = Some(ttl);
    }

    /// Takes in when the next beat is due of a member that wasn't seen yet.
    pub(crate) fn foretell(&mut self, at: Moment) {
        if self.sight == Sight::Nothing {
            self.foretold = Some(at);
        }
    }

    /// The version already known, so that a read can leave out what didn't change.
    pub(crate) fn version(&self) -> Option<&Version> {
        match &self.sight {
            Sight::Shown(seen) => Some(&seen.version),
            Sight::Nothing | Sight::Absent | Sight::Vanished(_) | Sight::Unreadable(_) => None,
        }
    }

    /// How often the member says that it has freed a lease, as long as it is alive.
    pub(crate) fn freed(&self) -> Option<u64> {
        let alive = |record: &&MemberRecord| record.state == MemberState::Alive && record.freed > 0;
        let seen = self.seen().filter(|_| !self.doubted).map(|(record, _)| record);
        seen.filter(alive).map(|record| record.freed)
    }

    /// Whether a beat was looked for when it was due, and wasn't there.
    pub(crate) fn is_overdue(&self) -> bool {
        self.misses > 0
    }

    /// When the last read was sent.
    pub(crate) fn read(&self) -> Moment {
        self.stale.unwrap_or(Moment::START)
    }

    /// Not earlier than this was the last beat written that was seen.
    pub(crate) fn beaten(&self) -> Moment {
        self.beaten.unwrap_or(Moment::START)
    }

    /// Whether the member has beaten since this moment.
    pub(crate) fn has_beaten_since(&self, at: Moment) -> bool {
        self.beaten.is_some_and(|beaten| beaten >= at)
    }

    /// The ttl of a member whose record is gone although nobody closed it.
    pub(crate) fn vanished(&self) -> Option<Duration> {
        match &self.sight {
            Sight::Vanished(ttl) if !self.dead => Some(*ttl),
            Sight::Vanished(_)
            | Sight::Nothing
            | Sight::Absent
            | Sight::Unreadable(_)
            | Sight::Shown(_) => None,
        }
    }

    /// The record to close and the version that it must still have.
    pub(crate) fn seen(&self) -> Option<(&MemberRecord, &Version)> {
        match &self.sight {
            Sight::Shown(seen) => Some((&seen.record, &seen.version)),
            Sight::Nothing | Sight::Absent | Sight::Vanished(_) | Sight::Unreadable(_) => None,
        }
    }

    /// Takes in the answer to a read that was sent and received at these moments; says what can't
    /// be read, when that is news.
    pub(crate) fn observe(
        &mut self,
        sent: Moment,
        now: Moment,
        found: &Found,
        planted: Planted,
    ) -> Option<Unreadable> {
        let received = fault!(planted, WatchFromSend => sent, now);
        self.doubted = false;
        self.next = None;
        let record = match found {
            Found::Record(record) if self.version() != Some(&record.version) => record,
            Found::Unchanged | Found::Record(_) => {
                self.missed(sent);
                return None;
            }
            Found::Absent | Found::Records(_) => {
                self.missing(sent, planted);
                return None;
            }
        };
        match MemberRecord::read(record) {
            Ok(content) => {
                let earliest = self.stale.unwrap_or(Moment::START);
                self.saw(content, record.version.clone(), received, earliest, record.age);
                self.stale = Some(sent);
                None
            }
            Err(unreadable) => {
                let ttl = match &self.sight {
                    Sight::Unreadable(_) => return None,
                    Sight::Vanished(ttl) => Some(*ttl),
                    Sight::Shown(seen) => Some(seen.record.ttl()),
                    Sight::Nothing | Sight::Absent => self.expected,
                };
                self.sight = Sight::Unreadable(ttl);
                Some(unreadable)
            }
        }
    }

    /// There is no record, or not any more.
    fn missing(&mut self, sent: Moment, planted: Planted) {
        let vanished = match &self.sight {
            Sight::Vanished(ttl) => Some(*ttl),
            Sight::Shown(seen) => match seen.record.state {
                MemberState::Alive => Some(seen.record.ttl()),
                // It was deleted, as closed members are, and stays closed.
                MemberState::Evicted | MemberState::Left | MemberState::Expired => {
                    self.stale = Some(sent);
                    return;
                }
            },
            Sight::Nothing => self.expected,
            Sight::Unreadable(ttl) => *ttl,
            Sight::Absent => None,
        };
        let waits = vanished.filter(|_| !planted.is(Mutant::VanishedClosedAtOnce));
        self.sight = waits.map_or(Sight::Absent, Sight::Vanished);
    }

    /// Takes in the proof that nothing of the member runs any more.
    pub(crate) fn proven_dead(&mut self) {
        self.dead = true;
    }

    /// Takes in that a closing was refused; says how long to wait before the next look. A beat that was
    /// missed, or another's closing, is there to be read now. If the read shows nothing later than what
    /// was refused, it is stale, and there is no hurry.
    pub(crate) fn close_refused(&mut self, random: &mut Random, planted: Planted) -> Duration {
        let beat = self.seen().map_or(0, |(record, _)| record.beat);
        let news = self.refused.is_none_or(|refused| beat > refused);
        if fault!(planted, RefusedReadAtOnce => true, news) {
            self.refused = self.refused.max(Some(beat));
            self.doubted = true;
            return Duration::ZERO;
        }
        self.not_closed(random)
    }

    /// Takes in that nobody knows whether a closing got through; says how long to wait before the next
    /// look.
    pub(crate) fn not_closed(&mut self, random: &mut Random) -> Duration {
        self.doubted = true;
        self.refusals.pause(random)
    }

    /// Takes in that the record was closed by ourselves.
    pub(crate) fn closed(&mut self, record: MemberRecord, version: Version, now: Moment) {
        self.saw(record, version, now, now, None);
    }

    fn saw(
        &mut self,
        record: MemberRecord,
        version: Version,
        received: Moment,
        earliest: Moment,
        age: Option<Duration>,
    ) {
        // The first sight of a member tells only that it beat within the last interval.
        let recent =
            Moment::from_nanos(received.as_nanos().saturating_sub(record.due().as_nanos() as u64));
        let proven = earliest.max(recent).min(received);
        if record.state == MemberState::Alive {
            // Only reads prove that: what is seen for the first time may be old.
            self.beaten = self.beaten.max(Some(earliest.min(received)));
        }
        let (earliest, latest) = self.bracket(&record, proven, received);
        if matches!(self.sight, Sight::Shown(_)) {
            // It has beaten since, and what it said then counts.
            self.foretold = None;
        }
        self.sight = Sight::Shown(Shown { record, version, received, earliest, latest, age });
        self.misses = 0;
        self.probed = false;
        self.refusals.reset();
    }

    /// When a beat was written that reads place between these two moments. If it follows the one seen
    /// before, the bracket of that tells more, shifted by what that announced.
    fn bracket(&self, record: &MemberRecord, proven: Moment, received: Moment) -> (Moment, Moment) {
        let Sight::Shown(before) = &self.sight else { return (proven, received) };
        let due = before.record.due();
        let latest = before.latest + due;
        if Some(record.beat) != before.record.beat.checked_add(1) || proven >= latest {
            return (proven, received);
        }
        // The clocks run apart a little.
        let earliest = before.earliest + due.mul_f64(1.0 - DRIFT);
        if received >= latest {
            return (earliest.max(proven).min(latest), latest);
        }
        // It was there before it had to be: if the clocks run apart more than that, then that way. The
        // bracket doubles with each beat for which that is so, and catches up with any drift.
        let back = latest.since(received) * 4;
        let earlier =
            Moment::from_nanos(received.as_nanos().saturating_sub(back.as_nanos() as u64));
        (earliest.min(earlier).max(proven), received)
    }

    fn missed(&mut self, sent: Moment) {
        self.stale = Some(sent);
        if let Sight::Shown(seen) = &self.sight {
            if sent >= self.due_at(seen) {
                self.misses = self.misses.saturating_add(1);
            } else {
                self.probed = true;
            }
        }
    }

    /// Whether a read was sent at this moment or later, and showed nothing new. Who is evicted and
    /// doesn't know it lives on if the store goes back to before that; only a read at the end of its
    /// ttl tells that this didn't happen.
    pub(crate) fn is_read_since(&self, at: Moment, planted: Planted) -> bool {
        let read = self.stale.is_some_and(|sent| sent >= at);
        fault!(planted, EvictionNotReadAgain => true, read)
    }

    /// What may be concluded now.
    pub(crate) fn verdict(&self, own_ttl: Duration, planted: Planted) -> Verdict {
        if self.doubted {
            return Verdict::Unread;
        }
        let seen = match &self.sight {
            Sight::Nothing => return Verdict::Unread,
            Sight::Absent => return Verdict::Absent,
            Sight::Vanished(_) if self.dead => return Verdict::Absent,
            Sight::Vanished(_) => return Verdict::Vanished,
            Sight::Unreadable(_) => return Verdict::Unreadable,
            Sight::Shown(seen) => seen,
        };
        let ttl = fault!(planted, WatcherUsesOwnTtl => own_ttl, seen.record.ttl());
        match seen.record.state {
            MemberState::Left | MemberState::Expired => Verdict::Closed(seen.record.state),
            // Who is dead trusts nothing: there is no ttl to wait for.
            MemberState::Evicted if self.dead => Verdict::Closed(MemberState::Evicted),
            MemberState::Alive if self.dead && planted.is(Mutant::DeathWithoutSwap) => {
                Verdict::Closed(MemberState::Expired)
            }
            MemberState::Alive if self.dead => Verdict::AliveUntil(Moment::START),
            MemberState::Evicted if planted.is(Mutant::EvictedFreeAtOnce) => {
                Verdict::Closed(MemberState::Evicted)
            }
            MemberState::Evicted => Verdict::EvictedUntil(seen.received + ttl),
            MemberState::Alive => {
                let aged = seen.age.unwrap_or_default();
                if planted.is(Mutant::StoreClockDecides) && aged > ttl {
                    return Verdict::AliveUntil(seen.received + ttl / 2);
                }
                Verdict::AliveUntil(seen.received + ttl)
            }
        }
    }

    /// When to read the record again.
    pub(crate) fn look_at(&mut self, now: Moment, push: bool, random: &mut Random) -> Moment {
        if let Some((_, at)) = self.next.filter(|(decided, _)| *decided == now) {
            return at;
        }
        let at = match &self.sight {
            Sight::Shown(seen) if seen.record.state == MemberState::Alive => {
                self.beat_visible_at(seen, now, random)
            }
            Sight::Shown(seen)
                if seen.record.state == MemberState::Evicted
                    && now < seen.received + seen.record.ttl() =>
            {
                (seen.received + seen.record.ttl()).min(now + SLOWEST)
            }
            Sight::Shown(_) | Sight::Absent | Sight::Vanished(_) | Sight::Unreadable(_) => {
                now + SLOWEST
            }
            Sight::Nothing => now,
        };
        let at = if push { at } else { at.min(now + SLOWEST) };
        self.next = Some((now, at));
        at
    }

    fn beat_visible_at(&self, seen: &Shown, now: Moment, random: &mut Random) -> Moment {
        // A small offset keeps many watchers of one member apart.
        let offset = random.span(pace::OFFSET.0, pace::OFFSET.1);
        if self.misses > 0 {
            let again = MISSED.saturating_mul(1 << (self.misses - 1).min(5)).min(SLOWEST);
            return now + again + offset;
        }
        let (width, due) = (seen.latest.since(seen.earliest), seen.record.due());
        // Seen for the first time, or after a long while: who looks but once now counts the ttl from long
        // after the next beat, and that may be the last.
        let soon = now + due / SEARCH + offset;
        if width > due / 2 && self.foretold.is_none() && soon < self.due_at(seen) {
            return soon;
        }
        let middle = seen.earliest + due + width / 2;
        if width > WIDE && !self.probed && self.foretold.is_none() && middle > now {
            return middle;
        }
        (self.due_at(seen) + offset).max(now + pace::OFFSET.0)
    }

    /// When the next beat is due at the latest.
    fn due_at(&self, seen: &Shown) -> Moment {
        let due = seen.latest + seen.record.due();
        self.foretold.map_or(due, |foretold| foretold.min(due))
    }
}

#[cfg(test)]
mod tests;
