//! What replies from the store mean.

use super::rider::Brought;
use super::{ElectionEvent, Elector, LeaseName, Moment, Mutant, Purpose, RequestId};
use crate::outbox::{Answered, Pending, first_read, first_write};
use crate::own::UpkeepKind;
use crate::store::{ErrorKind, Found, Outcome, Reply};

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
            let brought = Brought { id, member: pending.member, answer };
            return self.rider.brought.push_back(brought);
        }
        let answer = answer.as_ref().map_err(|kind| *kind);
        let sent = pending.sent;
        let current = pending.member.as_ref() == self.outbox.sender();
        match pending.purpose {
            Purpose::Farewell(id, asked) => {
                self.farewells.replied(now, &id, asked, answer, &mut self.random);
            }
            Purpose::Lease(errand) => self.with_leases(|leases, owner| {
                leases.replied(now, sent, *errand, current, answer, owner);
            }),
            Purpose::Sweep(look) => self.swept(now, look, answer),
            Purpose::Obeyed | Purpose::Errand => {}
            Purpose::Index(followed) => self.indexed(now, followed, answer),
            // The rest was sent by one incarnation and concerns no other.
            _ if !current => {}
            Purpose::Create => self.created(now, first_write(answer)),
            Purpose::Beat => self.beaten(now, answer),
            Purpose::ReadBack => self.read_back(now, first_read(answer)),
            Purpose::Profile(asked) => self.profiled(now, asked, answer),
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
            self.leases.arm_all(now);
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
        self.leases.arm_proving(now);
        if answer.is_err() {
            self.index.ask_again();
        }
        if let Ok(reply) = answer {
            self.observe_board(reply.reads.first());
            self.rider.found.extend(reply.reads.get(1).cloned());
            if planted.is(Mutant::ElectedTwice) {
                self.announce_again();
            }
        }
    }

    fn announce_again(&mut self) {
        let Some(member) = self.own_id().cloned() else { return };
        let held = self.leases.holdings().map(|(name, term)| (name.clone(), term));
        let held: Vec<(LeaseName, u64)> = held.collect();
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
        self.leases.arm_proving(now);
    }

    fn profiled(&mut self, now: Moment, asked: UpkeepKind, answer: Answered<'_>) {
        let told = self.introduction.replied(now, asked, answer, &mut self.random);
        // The first profile is waited for by the leader; of later ones it is told by a beat.
        if let (Some(changes), Some(member)) = (told, &mut self.member) {
            member.tell_profile(now, changes);
        }
    }
}
