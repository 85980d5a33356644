//! What a driver says to a node and asks of it.

use super::{
    Event, LeaseName, LeaseRecord, Loss, Member, MemberId, Moment, Node, Purpose, QueuedEvent,
    Request,
};
use crate::keys;
use crate::lease::{Candidacy, Known, Lease, Stage};
use crate::mutant::Mutant;
use crate::records::Content;
use crate::store::{Expect, Lane, Read};
use crate::watch::Verdict;

impl Node {
    /// Stands for a lease, or changes how. The node contends until it is elected, and again
    /// after each loss, until [`Self::withdraw`].
    pub fn campaign(&mut self, now: Moment, name: LeaseName, candidacy: Candidacy) {
        if self.leaving {
            return;
        }
        let lease =
            self.leases.entry(name.clone()).or_insert_with(|| Lease::new(name.clone(), now));
        lease.want = Some(candidacy);
        if matches!(lease.stage, Stage::Seeking) {
            self.arm(&name, now);
        }
    }

    /// Stops standing for a lease. If it is held, its work is told to stop, and the lease is
    /// freed when it has.
    pub fn withdraw(&mut self, now: Moment, name: &LeaseName) {
        if let Some(lease) = self.leases.get_mut(name) {
            lease.want = None;
            self.stop(now, name, Loss::Withdrawn, None);
            self.arm(name, now);
        }
    }

    /// Gives up a lease held in this very term, for the sake of `successor` if one is named,
    /// and stands back for a while before contending again.
    pub fn resign(
        &mut self,
        now: Moment,
        name: &LeaseName,
        term: u64,
        successor: Option<MemberId>,
    ) {
        if self.held(name) == Some(term) {
            self.stop(now, name, Loss::Resigned, successor);
        }
    }

    /// Says that the work under a term has ended, which is the condition for freeing the lease.
    pub fn stopped(&mut self, now: Moment, name: &LeaseName, term: u64) {
        if self.running.get(name).is_some_and(|(_, running)| *running == term) {
            self.running.remove(name);
        }
        if let Some(lease) = self.leases.get_mut(name) {
            match lease.stage {
                Stage::Held(held) if held == term => {
                    lease.stage = Stage::ToFree(term);
                    let lease = name.clone();
                    self.say(Event::Lost { lease, term, why: Loss::Finished, abrupt: false });
                }
                Stage::Stopping(stopping) if stopping == term => lease.stage = Stage::ToFree(term),
                _ => {}
            }
            self.arm(name, now);
        }
        self.duty_changed(now, name);
        self.release_farewells(now);
    }

    /// Puts off contending for a lease, because the work under it failed.
    pub fn abstain(&mut self, name: &LeaseName, until: Moment) {
        if let Some(lease) = self.leases.get_mut(name) {
            lease.not_before = lease.not_before.max(until);
        }
    }

    /// Leaves in order: work stops, leases are freed, the member is closed, [`Event::Left`].
    pub fn leave(&mut self, now: Moment) {
        if self.leaving {
            return;
        }
        if self.config.planted.is(Mutant::LeaveThenGoOn) {
            return self.leave_and_go_on(now);
        }
        self.leaving = true;
        let names: Vec<LeaseName> = self.leases.keys().cloned().collect();
        for name in names {
            if let Some(lease) = self.leases.get_mut(&name) {
                lease.want = None;
            }
            self.stop(now, &name, Loss::Leaving, None);
            self.arm(&name, now);
        }
    }

    fn leave_and_go_on(&mut self, now: Moment) {
        let Some(member) = &self.member else { return };
        let Some(version) = member.version().cloned() else { return };
        let record = member.closing(&self.config.timing);
        let key = keys::member(&member.id);
        let put = self.put(key, Expect::Version(version), record.bytes(), true);
        self.send(now, Lane::Change, vec![put], Vec::new(), Purpose::Obeyed);
    }

    /// Something changed in the store, perhaps.
    pub fn hint(&mut self, now: Moment) {
        let seeking: Vec<LeaseName> = self
            .leases
            .values_mut()
            .filter(|lease| lease.stage == Stage::Seeking && lease.want.is_some())
            .map(|lease| {
                lease.look_at = now;
                lease.name.clone()
            })
            .collect();
        for name in seeking {
            self.arm(&name, now);
        }
        self.index.want_board = true;
        if let Some(leader) = &mut self.leader {
            leader.hint(now);
        }
    }

    /// Asks the store whether a term is still held, instead of trusting;
    /// [`Event::Confirmed`] says what it found.
    pub fn confirm(&mut self, now: Moment, name: &LeaseName, term: u64) {
        let Some(id) = self.own_id().cloned() else {
            self.say(Event::Confirmed { lease: name.clone(), term, held: Some(false) });
            return;
        };
        let reads = vec![
            Read::Key { key: keys::lease(name), unless: None },
            Read::Key { key: keys::member(&id), unless: None },
        ];
        let purpose = Purpose::Confirm(name.clone(), term);
        self.send(now, Lane::Watch, Vec::new(), reads, purpose);
    }

    /// Says what the wall clock shows. For display alone: it decides nothing.
    pub fn tell_wall(&mut self, millis: u64) {
        self.wall_ms = millis;
    }

    /// The next request to send.
    pub fn next_request(&mut self) -> Option<Request> {
        self.outbox.pop_front()
    }

    /// The next event to act on.
    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front().map(|QueuedEvent(event)| event)
    }

    /// Until when this member may believe that it is alive; [`Moment::START`] if it isn't.
    #[must_use]
    pub fn trusted_until(&self) -> Moment {
        self.member.as_ref().map_or(Moment::START, Member::until)
    }

    /// The term in which this node holds a lease, as far as it knows; whether that is still so
    /// depends on [`Self::trusted_until`].
    #[must_use]
    pub fn held(&self, name: &LeaseName) -> Option<u64> {
        match self.leases.get(name)?.stage {
            Stage::Held(term) => Some(term),
            Stage::Seeking
            | Stage::Taking
            | Stage::Stopping(_)
            | Stage::ToFree(_)
            | Stage::Freeing(_) => None,
        }
    }

    /// Whether this node trusts at this moment that it holds the lease, work that is stopping
    /// included.
    #[must_use]
    pub fn trusts(&self, name: &LeaseName, now: Moment) -> Option<u64> {
        if !self.trusted(now) {
            return None;
        }
        self.leases.get(name)?.term()
    }

    /// Who else holds a lease that this node wants or watches, as far as is known, and until when
    /// that member is waited for (nothing where its record can't be read). Nothing if the lease
    /// is free, ours, not read yet, or its holder is closed.
    #[must_use]
    pub fn rival(&self, name: &LeaseName) -> Option<(&LeaseRecord, Option<Moment>)> {
        let lease = self.leases.get(name)?;
        let Known::Record(record, _) = &lease.known else { return None };
        let holder = lease.holder().filter(|holder| Some(*holder) != self.own_id())?;
        match self.watches.get(holder)?.verdict(self.config.timing.ttl, self.config.planted) {
            Verdict::Unread | Verdict::Absent | Verdict::Closed(_) => None,
            Verdict::Unreadable => Some((record, None)),
            Verdict::AliveUntil(at) | Verdict::EvictedUntil(at) => Some((record, Some(at))),
        }
    }

    /// The current incarnation, once its creation was acknowledged.
    #[must_use]
    pub fn member(&self) -> Option<&MemberId> {
        self.own_id()
    }

    /// Ends trust and work at a lease: in order, if there is time.
    pub(super) fn stop(
        &mut self,
        now: Moment,
        name: &LeaseName,
        why: Loss,
        successor: Option<MemberId>,
    ) {
        let early = self.config.planted.is(Mutant::FreedBeforeStopped);
        let Some(lease) = self.leases.get_mut(name) else { return };
        let Stage::Held(term) = lease.stage else { return };
        lease.successor = successor;
        // What the cluster's leader does is done in here, and stops in here.
        let stopped = early || *name == LeaseName::leader();
        lease.stage = if stopped { Stage::ToFree(term) } else { Stage::Stopping(term) };
        if *name == LeaseName::leader() {
            self.leader = None;
            self.placing = None;
        }
        self.say(Event::Lost { lease: name.clone(), term, why, abrupt: false });
        self.duty_changed(now, name);
        self.arm(name, now);
    }
}
