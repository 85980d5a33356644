//! What replies from the store change of leases.

use std::time::Duration;

use super::{
    Answered, ElectionEvent, Known, LeaseKind, LeaseName, LeaseRecord, Leases, LossCause,
    MemberRecord, Moment, Mutant, Owner, Stage, first_write,
};
use crate::lease::Doubt;
use crate::records::{Content, MemberState};
use crate::store::{ErrorKind, Found, Outcome, Reply};

impl Leases {
    pub(super) fn closed(
        &mut self,
        now: Moment,
        record: MemberRecord,
        outcome: Result<&Outcome, ErrorKind>,
        owner: &mut Owner<'_>,
    ) {
        let holder = record.id.clone();
        let Some(watch) = self.watches.get_mut(&holder) else { return };
        watch.closing = false;
        let (applied, pause) = match outcome {
            Ok(Outcome::Applied(version)) => {
                watch.closed(record, version.clone(), now);
                (true, Duration::ZERO)
            }
            Ok(Outcome::Refused | Outcome::Deleted) => {
                (false, watch.close_refused(owner.random, owner.config.planted))
            }
            Err(_) => (false, watch.not_closed(owner.random)),
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

    pub(super) fn taken_or_not(
        &mut self,
        now: Moment,
        sent: Moment,
        name: &LeaseName,
        record: LeaseRecord,
        answer: Answered<'_>,
        owner: &mut Owner<'_>,
    ) {
        let planted = owner.config.planted;
        let trusted = owner.trusted(now) || planted.is(Mutant::TakeWithoutTrustCheck);
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
                    return self.won(now, name, term, after_loss, owner);
                }
                lease.stage = Stage::ToFree(term);
            }
            Ok(Outcome::Refused | Outcome::Deleted) => {
                lease.not_before = now + lease.conflicts.pause(owner.random);
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
                let pause = lease.failures.pause(owner.random);
                lease.not_before = lease.not_before.max(now + pause);
                lease.look_at = now + pause;
                // What was read before the take says nothing any more.
                lease.known = Known::Unread;
            }
        }
        self.arm(name, now);
    }

    pub(super) fn freed(
        &mut self,
        now: Moment,
        sent: Moment,
        (name, term): (&LeaseName, u64),
        record: LeaseRecord,
        answer: Answered<'_>,
        owner: &mut Owner<'_>,
    ) {
        let (ttl, planted) = (owner.config.timing.ttl, owner.config.planted);
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
                lease.rests_until = now + owner.random.span(ttl / 3, ttl / 2);
                owner.outbox.say(ElectionEvent::Freed { lease: name.clone(), term });
                self.note_moved(name);
                self.note_freed(now, owner);
            }
            Ok(Outcome::Deleted) => {
                lease.learn(Known::Absent);
                lease.stage = Stage::Seeking;
                owner.outbox.say(ElectionEvent::Freed { lease: name.clone(), term });
            }
            Ok(Outcome::Refused) | Err(_) => {
                lease.stage = Stage::ToFree(term);
                lease.successor = record.successor;
                lease.known = Known::Unread;
                lease.look_at = now + lease.failures.pause(owner.random);
            }
        }
        self.arm(name, now);
    }

    pub(super) fn touched(
        &mut self,
        now: Moment,
        name: &LeaseName,
        record: LeaseRecord,
        answer: Answered<'_>,
        owner: &mut Owner<'_>,
    ) {
        let planted = owner.config.planted;
        let Some(lease) = self.leases.get_mut(name) else { return };
        if lease.stage != Stage::Taking {
            return;
        }
        // By what it was written over: who waits goes by what its holder says.
        let named = owner.is_named_by(lease);
        lease.stage = Stage::Seeking;
        let outcome = first_write(answer);
        let freed = named && matches!(outcome, Ok(Outcome::Applied(_)) | Err(_));
        match outcome {
            Ok(Outcome::Applied(version)) => {
                lease.wrote(record, version.clone(), now, planted);
            }
            Ok(Outcome::Refused | Outcome::Deleted) | Err(_) => {
                lease.known = Known::Unread;
                lease.look_at = now + lease.failures.pause(owner.random);
            }
        }
        if freed {
            self.note_freed(now, owner);
        }
        self.arm(name, now);
    }

    pub(super) fn confirmed(
        &mut self,
        name: &LeaseName,
        term: u64,
        current: bool,
        answer: Answered<'_>,
        owner: &mut Owner<'_>,
    ) {
        let held = answer.ok().map(|reply| current && self.store_agrees(name, term, reply, owner));
        if held == Some(false) && self.held(name) == Some(term) {
            // F12: another holder's name ends leadership at once, not at a deadline.
            if let Some(lease) = self.leases.get_mut(name) {
                lease.stage = Stage::Seeking;
                lease.known = Known::Unread;
            }
            if name.kind() == LeaseKind::Leader {
                self.leads = None;
            }
            let lease = name.clone();
            owner.outbox.say(ElectionEvent::Lost {
                lease,
                term,
                why: LossCause::Superseded,
                abrupt: true,
            });
        }
        owner.outbox.say(ElectionEvent::Confirmed { lease: name.clone(), term, held });
    }

    fn store_agrees(&self, name: &LeaseName, term: u64, reply: &Reply, owner: &Owner<'_>) -> bool {
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
            && lease.holder.is_some_and(|holder| Some(&holder.member) == owner.own_id())
            && member.state == MemberState::Alive
    }
}
