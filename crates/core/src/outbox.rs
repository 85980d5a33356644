//! What a node gives to its driver: requests, each with its number, its stamps and its deadline, and
//! events in their order. It also keeps what every request that is on its way is about.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::census::WantedWrite;
use crate::leader::LeaderErrand;
use crate::leases::LeaseErrand;
use crate::names::MemberId;
use crate::node::{ElectionEvent, Followed};
use crate::own::UpkeepKind;
use crate::store::{
    ErrorKind, Exchange, Expect, Found, Key, Lane, Outcome, Put, Read, Reply, Stamp, Write,
};
use crate::sweep::Look;
use crate::time::Moment;

/// Names a request until its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(pub u64);

/// Something to be sent to the store. Requests of one lane may be sent together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    /// To be given back with the reply.
    pub id: RequestId,
    /// Which queue it belongs to.
    pub lane: Lane,
    /// What to send.
    pub exchange: Exchange,
    /// A reply after this is not waited for: the outcome counts as unknown.
    pub deadline: Moment,
}

/// The reply to a request, or the error that came instead.
pub type Answered<'a> = Result<&'a Reply, ErrorKind>;

/// Queues that are empty keep room for so many.
const ROOM: usize = 64;

/// The next of a queue. The room that ten thousand leases took when they were won together is given
/// back once they are told: it would be megabytes, and isn't needed again.
pub fn next<T>(queue: &mut VecDeque<T>) -> Option<T> {
    let next = queue.pop_front();
    if next.is_none() && queue.capacity() > 2 * ROOM {
        queue.shrink_to(ROOM);
    }
    next
}

/// What became of the only write of a request.
///
/// # Errors
/// If that isn't known.
pub fn first_write(answer: Answered<'_>) -> Result<&Outcome, ErrorKind> {
    answer.and_then(|reply| reply.writes.first().ok_or(ErrorKind::Unknown))
}

/// What the only read of a request found.
///
/// # Errors
/// If there was no answer.
pub fn first_read(answer: Answered<'_>) -> Result<&Found, ErrorKind> {
    answer.and_then(|reply| reply.reads.first().ok_or(ErrorKind::Unknown))
}

/// What a request is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Purpose {
    Create,
    Beat,
    ReadBack,
    Profile(UpkeepKind),
    Farewell(MemberId, UpkeepKind),
    Lease(Box<LeaseErrand>),
    Index(Followed),
    Obeyed,
    Leader(LeaderErrand),
    Sweep(Look),
    Errand,
}

/// A request that is on its way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Pending {
    pub(crate) purpose: Purpose,
    /// The member under which it was sent; most replies to a former incarnation are ignored.
    pub(crate) member: Option<MemberId>,
    pub(crate) sent: Moment,
    pub(crate) deadline: Moment,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Outbox {
    /// How long a reply is waited for.
    patience: Duration,
    /// The incarnation that sends.
    sender: Option<MemberId>,
    writer: u64,
    stamps: u64,
    /// The next write repeats the last stamp, which only a planted mistake does.
    pub(crate) repeats: bool,
    numbers: u64,
    pending: BTreeMap<RequestId, Pending>,
    requests: VecDeque<Request>,
    events: VecDeque<QueuedEvent>,
}

/// Events are made of records, which the model checker hashes by their text.
#[derive(Clone, Debug, PartialEq, Eq)]
struct QueuedEvent(ElectionEvent);

impl std::hash::Hash for QueuedEvent {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        format!("{:?}", self.0).hash(state);
    }
}

impl Outbox {
    pub(crate) fn new(writer: u64, patience: Duration) -> Self {
        Self {
            patience,
            sender: None,
            writer,
            stamps: 0,
            repeats: false,
            numbers: 0,
            pending: BTreeMap::new(),
            requests: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// From now on this incarnation sends.
    pub(crate) fn sends_for(&mut self, member: Option<&MemberId>) {
        self.sender = member.cloned();
    }

    /// The incarnation that sends.
    pub(crate) fn sender(&self) -> Option<&MemberId> {
        self.sender.as_ref()
    }

    /// The stamp that the next write will carry.
    pub(crate) fn next_stamp(&self) -> Stamp {
        Stamp { writer: self.writer, attempt: self.stamps + 1 }
    }

    /// A write with a stamp of its own.
    pub(crate) fn put(&mut self, key: Key, expect: Expect, value: Vec<u8>, hint: bool) -> Write {
        if !std::mem::take(&mut self.repeats) {
            self.stamps += 1;
        }
        let stamp = Stamp { writer: self.writer, attempt: self.stamps };
        Write::Put(Put { key, expect, value, stamp, hint, durable: true })
    }

    /// The same for a write that somebody wants, and others should hear of.
    pub(crate) fn stamped(&mut self, wanted: WantedWrite) -> Write {
        match wanted {
            WantedWrite::Put(key, expect, value) => self.put(key, expect, value, true),
            WantedWrite::Delete(key) => Write::Delete(key),
        }
    }

    pub(crate) fn send(
        &mut self,
        now: Moment,
        lane: Lane,
        writes: Vec<Write>,
        reads: Vec<Read>,
        purpose: Purpose,
    ) -> RequestId {
        self.numbers += 1;
        let id = RequestId(self.numbers);
        let deadline = now + self.patience;
        let member = self.sender.clone();
        self.pending.insert(id, Pending { purpose, member, sent: now, deadline });
        self.requests.push_back(Request {
            id,
            lane,
            exchange: Exchange { writes, reads },
            deadline,
        });
        id
    }

    /// Sends a request that only reads.
    pub(crate) fn ask(&mut self, now: Moment, lane: Lane, reads: Vec<Read>, purpose: Purpose) {
        self.send(now, lane, Vec::new(), reads, purpose);
    }

    /// Sends writes that nothing is read with.
    pub(crate) fn write(&mut self, now: Moment, writes: Vec<Write>, purpose: Purpose) {
        self.send(now, Lane::Change, writes, Vec::new(), purpose);
    }

    pub(crate) fn say(&mut self, event: ElectionEvent) {
        self.events.push_back(QueuedEvent(event));
    }

    pub(crate) fn has_said(&self, event: &ElectionEvent) -> bool {
        self.events.iter().any(|queued| queued.0 == *event)
    }

    pub(crate) fn next_request(&mut self) -> Option<Request> {
        next(&mut self.requests)
    }

    pub(crate) fn next_event(&mut self) -> Option<ElectionEvent> {
        next(&mut self.events).map(|QueuedEvent(event)| event)
    }

    /// What a reply is about; nothing if it was waited for no more.
    pub(crate) fn take(&mut self, id: RequestId) -> Option<Pending> {
        self.pending.remove(&id)
    }

    /// The requests whose replies are waited for no more.
    pub(crate) fn overdue(&self, now: Moment) -> Vec<RequestId> {
        let late = |(id, pending): (&RequestId, &Pending)| (now > pending.deadline).then_some(*id);
        self.pending.iter().filter_map(late).collect()
    }

    pub(crate) fn awaits(&self, purpose: impl Fn(&Purpose) -> bool) -> bool {
        self.pending.values().any(|pending| purpose(&pending.purpose))
    }

    pub(crate) fn wake_at(&self) -> Moment {
        let deadlines = self.pending.values().map(|pending| pending.deadline);
        deadlines.min().unwrap_or(Moment::NEVER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(write: &Write) -> Stamp {
        let Write::Put(put) = write else { panic!("a delete has no stamp") };
        put.stamp
    }

    fn put(outbox: &mut Outbox) -> Write {
        outbox.put(Key::new("k"), Expect::Absent, Vec::new(), false)
    }

    #[test]
    fn every_write_has_a_stamp_that_no_other_has() {
        let mut outbox = Outbox::new(7, Duration::from_secs(1));
        let announced = outbox.next_stamp();
        let (one, two) = (put(&mut outbox), put(&mut outbox));
        assert_eq!(stamp(&one), announced);
        assert_ne!(stamp(&one), stamp(&two));
    }

    #[test]
    fn a_reply_is_waited_for_until_its_deadline_and_counts_once() {
        let mut outbox = Outbox::new(7, Duration::from_secs(1));
        outbox.sends_for(Some(&MemberId::new("m")));
        let id = outbox.send(Moment::START, Lane::Watch, Vec::new(), Vec::new(), Purpose::Errand);
        outbox.sends_for(None);
        let deadline = Moment::START + Duration::from_secs(1);
        assert_eq!(outbox.wake_at(), deadline);
        assert_eq!(outbox.overdue(deadline), [], "it may still come");
        assert_eq!(outbox.overdue(deadline + Duration::from_nanos(1)), [id]);
        let pending = outbox.take(id).unwrap();
        assert_eq!(pending.member, Some(MemberId::new("m")), "whoever sends by now");
        assert!(outbox.take(id).is_none());
        assert_eq!(outbox.wake_at(), Moment::NEVER);
    }
}
