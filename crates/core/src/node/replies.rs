//! What replies from the store mean.

use std::time::Duration;

use super::rider::Brought;
use super::{
    ElectionEvent, Elector, LeaseName, LeaseRecord, LossCause, MemberId, MemberRecord, Moment,
    Mutant, Purpose, RequestId,
};
use crate::lease::{Doubt, Known, Lease, Stage};
use crate::mutant::fault;
use crate::names::LeaseKind;
use crate::outbox::{Answered, Pending, first_read, first_write};
use crate::own::UpkeepKind;
use crate::pace;
use crate::records::{Content, MemberState};
use crate::store::{ErrorKind, Found, Outcome, Reply};
use crate::watch::Watch;

impl Elector {
    /// Takes in the reply to a request, or the error that came instead. A reply that comes
    /// twice, or after its deadline, is ignored.
    pub fn handle(&mut self, now: Moment, id: RequestId, answer: Result<Reply, ErrorKind>) {
        // Trust that ended before this reply is over, whatever the reply says.
        if !self.config.planted.is(Mutant::TakeWithoutTrustCheck) {
            self.drive_member(now);
        }
        if let Some(pending) = self.outbox.take(id) {
            // Past its deadline an answer is no answer; a slow success stretches nothing.
            let answer = if now > pending.deadline { Err(ErrorKind::Unknown) } else { answer };
            self.answered(now, id, pending, answer);
        }
    }

    /// Gives up on requests whose deadline has passed: they may have been applied.
    pub(super) fn time_out(&mut self, now: Moment) {
        for id in self.outbox.overdue(now) {
            if let Some(pending) = self.outbox.take(id) {
                self.answered(now, id, pending, Err(ErrorKind::Unknown));
            }
        }
    }

    fn answered(
        &mut self,
        now: Moment,
        id: RequestId,
        pending: Pending,
        answer: Result<Reply, ErrorKind>,
    ) {
        if answer == Err(ErrorKind::Unknown) {
            self.outbox.repeats = self.config.planted.is(Mutant::StampSentTwice);
        }
        if pending.purpose == Purpose::Errand {
            return self.rider.bring(Brought { id, member: pending.member, answer });
        }
        let answer = answer.as_ref().map_err(|kind| *kind);
        let sent = pending.sent;
        let current = pending.member.as_ref() == self.outbox.sender();
        match pending.purpose {
            Purpose::Farewell(id, asked) => {
                self.farewells.replied(now, &id, asked, answer, &mut self.random);
            }
            Purpose::Look { leases, holders } => self.looked(now, sent, &leases, &holders, answer),
            Purpose::Close(record) => self.closed(now, record, first_write(answer)),
            Purpose::Sweep(look) => self.swept(now, look, answer),
            Purpose::Obeyed | Purpose::Errand => {}
            Purpose::Index(followed) => self.indexed(now, followed, answer),
            Purpose::Confirm(lease, term) => self.confirmed(&lease, term, current, answer),
            // The rest was sent by one incarnation and concerns no other.
            _ if !current => {}
            Purpose::Create => self.created(now, first_write(answer)),
            Purpose::Beat => self.beaten(now, answer),
            Purpose::ReadBack => self.read_back(now, first_read(answer)),
            Purpose::Profile(asked) => self.profiled(now, asked, answer),
            Purpose::Take(lease, record) => self.taken_or_not(now, sent, &lease, record, answer),
            Purpose::Free(lease, term, record) => {
                self.freed(now, sent, &lease, term, record, answer);
            }
            Purpose::Touch(lease, record) => self.touched(now, &lease, record, answer),
            Purpose::Leader(asked) => {
                if let Some(leader) = &mut self.leader {
                    leader.replied(now, asked, answer, &self.config);
                }
            }
        }
    }

    fn created(&mut self, now: Moment, outcome: Result<&Outcome, ErrorKind>) {
        let planted = self.config.planted;
        let Some(member) = &mut self.member else { return };
        if member.created(now, outcome, &self.config.timing, planted) {
            let member = member.id.clone();
            self.joins.reset();
            self.outbox.say(ElectionEvent::Joined { member });
            self.arm_all(now);
            return;
        }
        let pause = self.joins.pause(&mut self.random);
        if planted.is(Mutant::CreateRetriedAndBeatsOn) {
            member.create_again(now + pause);
            return;
        }
        // An id whose creation is in doubt is never used.
        let id = member.id.clone();
        self.member = None;
        self.outbox.sends_for(None);
        if !self.leaving {
            self.join_again(now, id);
        }
    }

    fn beaten(&mut self, now: Moment, answer: Answered<'_>) {
        let (timing, planted) = (&self.config.timing, self.config.planted);
        let Some(member) = &mut self.member else { return };
        member.beaten(now, first_write(answer), timing, &mut self.random, planted);
        self.arm_proving(now);
        if let Ok(reply) = answer {
            self.observe_board(reply.reads.first());
            self.rider.found(reply.reads.get(1));
            if planted.is(Mutant::ElectedTwice) {
                self.announce_again();
            }
        }
    }

    fn announce_again(&mut self) {
        let Some(member) = self.own_id().cloned() else { return };
        let held: Vec<(LeaseName, u64)> = self
            .leases
            .keys()
            .filter_map(|name| self.held(name).map(|term| (name.clone(), term)))
            .collect();
        for (lease, term) in held {
            self.outbox.say(ElectionEvent::Elected { lease, term, member: member.clone() });
        }
    }

    fn read_back(&mut self, now: Moment, found: Result<&Found, ErrorKind>) {
        let (timing, planted) = (&self.config.timing, self.config.planted);
        let Some(member) = &mut self.member else { return };
        if let Some(ending) = member.read_back(now, found, timing, &mut self.random, planted) {
            self.end(now, ending);
        }
        self.arm_proving(now);
    }

    fn arm_proving(&mut self, now: Moment) {
        let proving = |lease: &&Lease| matches!(lease.stage, Stage::Proving(..));
        let names: Vec<LeaseName> = self
            .leases
            .values()
            .map(Box::as_ref)
            .filter(proving)
            .map(|lease| lease.name.clone())
            .collect();
        for name in names {
            self.arm(&name, now);
        }
    }

    fn profiled(&mut self, now: Moment, asked: UpkeepKind, answer: Answered<'_>) {
        let told = self.introduction.replied(now, asked, answer, &mut self.random);
        // The first profile is waited for by the leader; of later ones it is told by a beat.
        if let (Some(changes), Some(member)) = (told, &mut self.member) {
            member.tell_profile(now, changes);
        }
    }

    fn looked(
        &mut self,
        now: Moment,
        sent: Moment,
        leases: &[LeaseName],
        holders: &[MemberId],
        answer: Answered<'_>,
    ) {
        let planted = self.config.planted;
        if let Ok(reply) = answer {
            for (holder, found) in holders.iter().zip(reply.reads.iter().skip(leases.len())) {
                let watch = self.watches.entry(holder.clone()).or_insert_with(Watch::new);
                if let Some(unreadable) = watch.observe(sent, now, found, planted) {
                    self.outbox.say(ElectionEvent::Unreadable(unreadable));
                }
            }
        }
        for (at, name) in leases.iter().enumerate() {
            let found = answer.map(|reply| reply.reads.get(at));
            self.looked_at(now, sent, name, found);
        }
        self.forget_watches(leases.len());
    }

    fn looked_at(
        &mut self,
        now: Moment,
        sent: Moment,
        name: &LeaseName,
        found: Result<Option<&Found>, ErrorKind>,
    ) {
        let (own, ttl) = (self.own_id().cloned(), self.config.timing.ttl);
        let planted = self.config.planted;
        let Some(lease) = self.leases.get_mut(name) else { return };
        lease.looking = false;
        let Ok(Some(found)) = found else {
            let at = now + lease.failures.pause(&mut self.random);
            lease.look_at = fault!(self.config.planted, RetriesAtOnce => now, at);
            let at = lease.look_at;
            return self.arm(name, at);
        };
        lease.failures.reset();
        let watched = lease.seen > Moment::START && !planted.is(Mutant::NewHolderUnexpected);
        lease.seen = sent;
        let seen = lease.holder().and_then(|holder| self.watches.get(holder)?.seen());
        if let Some((holder, _)) = seen {
            lease.memory.ttl = holder.ttl();
        }
        let lost = lease.loss.is_some();
        let remembered = lease.memory.holder.clone();
        let observed = lease.observe(found, now, own.as_ref(), ttl, planted);
        let holder = lease.awaited().next().cloned();
        if let Some(holder) = holder.as_ref().filter(|_| watched && remembered != holder) {
            let watch = self.watches.entry(holder.clone()).or_insert_with(Watch::new);
            watch.expect(ttl);
            if let Some(due) = lease.next_beat_of(holder) {
                watch.foretell(now + due);
            }
        }
        lease.look_at = match &holder {
            Some(holder) if Some(holder) != own.as_ref() => {
                let watch = self.watches.entry(holder.clone()).or_insert_with(Watch::new);
                watch.look_at(now, self.config.push, &mut self.random)
            }
            Some(_) | None if self.config.push => now + self.config.timing.beat,
            Some(_) | None => now + pace::LOOK,
        };
        if lease.hinted || (lease.loss.is_some() && !lost) {
            lease.look_at = now;
        }
        if lease.loss.is_some() {
            // What is lost counts only if reads go on showing it.
            lease.look_at = lease.look_at.min(now + ttl / 4);
        }
        let lost = lease.loss.is_some() && !lost && lease.known == Known::Absent;
        self.highest_term = self.highest_term.max(lease.memory.highest);
        let event = match observed {
            Ok(true) => {
                let record = match &lease.known {
                    Known::Record(record, _) => Some(LeaseRecord::clone(record)),
                    Known::Unread | Known::Absent | Known::Unreadable => None,
                };
                Some(ElectionEvent::Observed { lease: name.clone(), record })
            }
            Ok(false) => None,
            Err(unreadable) => Some(ElectionEvent::Unreadable(unreadable)),
        };
        if lost {
            self.note_loss(now);
        }
        if let Some(event) = event {
            self.outbox.say(event);
        }
        self.arm(name, now);
    }

    /// Drops watches of members that no lease hangs from any more.
    fn forget_watches(&mut self, looked: usize) {
        if self.watches.len() > looked * 2 + 8 {
            let leases = &self.leases;
            self.watches.retain(|member, watch| {
                watch.closing
                    || leases.values().any(|lease| lease.awaited().any(|awaited| awaited == member))
            });
        }
    }

    fn closed(&mut self, now: Moment, record: MemberRecord, outcome: Result<&Outcome, ErrorKind>) {
        let holder = record.id.clone();
        let Some(watch) = self.watches.get_mut(&holder) else { return };
        watch.closing = false;
        let (applied, pause) = match outcome {
            Ok(Outcome::Applied(version)) => {
                watch.closed(record, version.clone(), now);
                (true, Duration::ZERO)
            }
            Ok(Outcome::Refused | Outcome::Deleted) => {
                (false, watch.close_refused(&mut self.random, self.config.planted))
            }
            Err(_) => (false, watch.not_closed(&mut self.random)),
        };
        let waiting: Vec<LeaseName> = self
            .leases
            .values_mut()
            .filter(|lease| lease.awaited().any(|awaited| *awaited == holder))
            .map(|lease| {
                if !applied {
                    lease.look_at = now + pause;
                }
                lease.name.clone()
            })
            .collect();
        for name in waiting {
            self.arm(&name, now + pause);
        }
    }

    fn taken_or_not(
        &mut self,
        now: Moment,
        sent: Moment,
        name: &LeaseName,
        record: LeaseRecord,
        answer: Answered<'_>,
    ) {
        let planted = self.config.planted;
        let trusted = self.trusted(now) || planted.is(Mutant::TakeWithoutTrustCheck);
        let Some(lease) = self.leases.get_mut(name) else { return };
        if lease.stage != Stage::Taking {
            return;
        }
        lease.stage = Stage::Seeking;
        let term = record.term;
        match first_write(answer) {
            Ok(Outcome::Applied(version)) => {
                let after_loss = lease.follows_loss();
                lease.wrote(record, version.clone(), now, planted);
                self.highest_term = self.highest_term.max(term);
                lease.seen = sent;
                if lease.is_electable() && trusted {
                    return self.won(now, name, term, after_loss);
                }
                lease.stage = Stage::ToFree(term);
            }
            Ok(Outcome::Refused | Outcome::Deleted) => {
                lease.not_before = now + lease.conflicts.pause(&mut self.random);
                lease.look_at = now;
                lease.known = Known::Unread;
                // If less was shown than is remembered, then by a stale read.
                lease.loss = None;
            }
            Err(kind) => {
                let mark = record.holder.and_then(|holder| holder.mark);
                if let (ErrorKind::Unknown, Some(mark)) = (kind, mark) {
                    lease.doubt(Doubt { mark, term, after_loss: lease.follows_loss() });
                }
                let pause = lease.failures.pause(&mut self.random);
                lease.not_before = lease.not_before.max(now + pause);
                lease.look_at = now + pause;
                // What was read before the take says nothing any more.
                lease.known = Known::Unread;
            }
        }
        self.arm(name, now);
    }

    fn freed(
        &mut self,
        now: Moment,
        sent: Moment,
        name: &LeaseName,
        term: u64,
        record: LeaseRecord,
        answer: Answered<'_>,
    ) {
        let (ttl, planted) = (self.config.timing.ttl, self.config.planted);
        let Some(lease) = self.leases.get_mut(name) else { return };
        if lease.stage != Stage::Freeing(term) {
            return;
        }
        match first_write(answer) {
            Ok(Outcome::Applied(version)) => {
                lease.wrote(record, version.clone(), now, planted);
                lease.seen = sent;
                lease.stage = Stage::Seeking;
                lease.look_at = if lease.hinted { now } else { now + ttl / 3 };
                // F30: who resigned stands back, so that somebody else can win.
                lease.rests_until = now + self.random.span(ttl / 3, ttl / 2);
                self.outbox.say(ElectionEvent::Freed { lease: name.clone(), term });
                self.note_moved(name);
            }
            Ok(Outcome::Deleted) => {
                lease.learn(Known::Absent);
                lease.stage = Stage::Seeking;
                self.outbox.say(ElectionEvent::Freed { lease: name.clone(), term });
            }
            Ok(Outcome::Refused) | Err(_) => {
                lease.stage = Stage::ToFree(term);
                lease.successor = record.successor;
                lease.known = Known::Unread;
                lease.look_at = now + lease.failures.pause(&mut self.random);
            }
        }
        self.arm(name, now);
    }

    fn touched(
        &mut self,
        now: Moment,
        name: &LeaseName,
        record: LeaseRecord,
        answer: Answered<'_>,
    ) {
        let planted = self.config.planted;
        let Some(lease) = self.leases.get_mut(name) else { return };
        if lease.stage != Stage::Taking {
            return;
        }
        lease.stage = Stage::Seeking;
        match first_write(answer) {
            Ok(Outcome::Applied(version)) => {
                lease.wrote(record, version.clone(), now, planted);
            }
            Ok(Outcome::Refused | Outcome::Deleted) | Err(_) => {
                lease.known = Known::Unread;
                lease.look_at = now + lease.failures.pause(&mut self.random);
            }
        }
        self.arm(name, now);
    }

    fn confirmed(&mut self, name: &LeaseName, term: u64, current: bool, answer: Answered<'_>) {
        let held = answer.ok().map(|reply| current && self.store_agrees(name, term, reply));
        if held == Some(false) && self.held(name) == Some(term) {
            // F12: another holder's name ends leadership at once, not at a deadline.
            if let Some(lease) = self.leases.get_mut(name) {
                lease.stage = Stage::Seeking;
                lease.known = Known::Unread;
            }
            if name.kind() == LeaseKind::Leader {
                self.leader = None;
            }
            let lease = name.clone();
            self.outbox.say(ElectionEvent::Lost {
                lease,
                term,
                why: LossCause::Superseded,
                abrupt: true,
            });
        }
        self.outbox.say(ElectionEvent::Confirmed { lease: name.clone(), term, held });
    }

    fn store_agrees(&self, name: &LeaseName, term: u64, reply: &Reply) -> bool {
        let (Some(Found::Record(lease)), Some(Found::Record(member))) =
            (reply.reads.first(), reply.reads.get(1))
        else {
            return false;
        };
        let (Ok(lease), Ok(member)) = (LeaseRecord::read(lease), MemberRecord::read(member)) else {
            return false;
        };
        lease.name == name.as_str()
            && lease.term == term
            && lease.holder.is_some_and(|holder| Some(&holder.member) == self.own_id())
            && member.state == MemberState::Alive
    }
}
