//! What a driver says to a node and asks of it.

use super::{
    ElectionEvent, Elector, LeaseName, LeaseRecord, LossCause, MemberId, MemberRecord, Membership,
    Moment, Purpose,
};
use crate::keys;
use crate::lease::{Known, Lease, Stage};
use crate::mutant::Mutant;
use crate::names::LeaseKind;
use crate::outbox::Request;
use crate::records::Content;
use crate::stance::Stance;
use crate::store::{Expect, Lane, Read};
use crate::watch::Verdict;

/// Who leads a lease, as far as a node knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sighting<'a> {
    /// The lease's record if somebody leads, with the leader's own unless that is this node or it
    /// can't be read.
    pub leader: Option<(&'a LeaseRecord, Option<&'a MemberRecord>)>,
    /// Whether that is this node.
    pub own: bool,
    /// When the question was sent whose answer says so.
    pub seen: Moment,
}

impl Elector {
    /// Stands for a lease, or changes how. The node contends until it is elected, and again
    /// after each loss, until [`Self::withdraw`].
    pub fn campaign(&mut self, now: Moment, name: LeaseName, candidacy: Stance) {
        if self.leaving {
            return;
        }
        let memories = &mut self.memories;
        let lease = self.leases.entry(name.clone()).or_insert_with(|| {
            let memory = memories.remove(&name).unwrap_or_default();
            Box::new(Lease { memory, ..Lease::new(name.clone(), now) })
        });
        lease.want = Some(candidacy);
        if matches!(lease.stage, Stage::Seeking) {
            self.arm(&name, now);
        }
        if name.kind() == LeaseKind::Duty && self.config.planted.is(Mutant::DutyWithoutLease) {
            self.elect(&name, 1);
        }
    }

    /// Stops standing for a lease. If it is held, its work is told to stop, and the lease is
    /// freed when it has.
    pub fn withdraw(&mut self, now: Moment, name: &LeaseName) {
        self.withdraw_for(now, name, None);
    }

    /// The same, for the sake of a successor.
    pub fn withdraw_for(&mut self, now: Moment, name: &LeaseName, successor: Option<MemberId>) {
        if let Some(lease) = self.leases.get_mut(name) {
            lease.want = None;
            self.stop(now, name, LossCause::Withdrawn, successor);
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
            self.stop(now, name, LossCause::Resigned, successor);
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
                    self.outbox.say(ElectionEvent::Lost {
                        lease,
                        term,
                        why: LossCause::Finished,
                        abrupt: false,
                    });
                }
                Stage::Stopping(stopping) if stopping == term => lease.stage = Stage::ToFree(term),
                _ => {}
            }
            self.arm(name, now);
        }
        self.note_moved(name);
        self.release_farewells(now);
    }

    /// Puts off contending for a lease, because the work under it failed.
    pub fn abstain(&mut self, name: &LeaseName, until: Moment) {
        if let Some(lease) = self.leases.get_mut(name) {
            lease.not_before = lease.not_before.max(until);
        }
    }

    /// Leaves in order: work stops, leases are freed, the member is closed, [`ElectionEvent::Left`].
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
            self.stop(now, &name, LossCause::Leaving, None);
            self.arm(&name, now);
        }
    }

    fn leave_and_go_on(&mut self, now: Moment) {
        let Some(member) = &self.member else { return };
        let Some(version) = member.version().cloned() else { return };
        let record = member.closing(&self.config.timing);
        let key = keys::member(&member.id);
        let put = self.outbox.put(key, Expect::Version(version), record.bytes(), true);
        self.outbox.write(now, vec![put], Purpose::Obeyed);
    }

    /// Something changed in the store, perhaps. What is asked now may show it; what was asked
    /// before may not, and is asked once more when the answer is in.
    pub fn hint(&mut self, now: Moment) {
        let mut seeking = Vec::new();
        for lease in self.leases.values_mut().filter(|lease| lease.want.is_some()) {
            lease.hinted = !self.config.planted.is(Mutant::HintLostWhileLooking);
            if lease.stage == Stage::Seeking {
                lease.look_at = now;
                seeking.push(lease.name.clone());
            }
        }
        for name in seeking {
            self.arm(&name, now);
        }
        self.index.want_board = true;
        if let Some(leader) = &mut self.leader {
            leader.hint(now);
        }
    }

    /// Asks the store whether a term is still held, instead of trusting;
    /// [`ElectionEvent::Confirmed`] says what it found.
    pub fn confirm(&mut self, now: Moment, name: &LeaseName, term: u64) {
        let Some(id) = self.own_id().cloned() else {
            self.outbox.say(ElectionEvent::Confirmed {
                lease: name.clone(),
                term,
                held: Some(false),
            });
            return;
        };
        let reads = vec![
            Read::Key { key: keys::lease(name), unless: None },
            Read::Key { key: keys::member(&id), unless: None },
        ];
        let purpose = Purpose::Confirm(name.clone(), term);
        self.outbox.ask(now, Lane::Watch, reads, purpose);
    }

    /// Says what the wall clock shows. It decides nothing: it is for display, and where a store has
    /// forgotten something, terms begin no lower than its seconds.
    pub fn tell_wall(&mut self, millis: u64) {
        self.wall_ms = millis;
    }

    /// The next request to send.
    pub fn next_request(&mut self) -> Option<Request> {
        self.outbox.next_request()
    }

    /// The next event to act on.
    pub fn next_event(&mut self) -> Option<ElectionEvent> {
        self.outbox.next_event()
    }

    /// Until when this member may believe that it is alive; [`Moment::START`] if it isn't.
    #[must_use]
    pub fn trusted_until(&self) -> Moment {
        self.member.as_ref().map_or(Moment::START, Membership::until)
    }

    /// The term in which this node holds a lease, as far as it knows; whether that is still so
    /// depends on [`Self::trusted_until`].
    #[must_use]
    pub fn held(&self, name: &LeaseName) -> Option<u64> {
        match self.leases.get(name)?.stage {
            Stage::Held(term) => Some(term),
            Stage::Seeking
            | Stage::Taking
            | Stage::Proving(..)
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

    /// All leases that this node trusts at this moment to hold, as [`Self::trusts`] says it of one.
    pub fn trusted_terms(&self, now: Moment) -> impl Iterator<Item = (&LeaseName, u64)> {
        let leases = self.trusted(now).then_some(&self.leases);
        let leases = leases.into_iter().flat_map(|leases| leases.values());
        leases.filter_map(|lease| Some((&lease.name, lease.term()?)))
    }

    /// All leases that this node holds, as [`Self::held`] says it of one.
    pub fn holdings(&self) -> impl Iterator<Item = (&LeaseName, u64)> {
        self.leases.values().filter_map(|lease| match lease.stage {
            Stage::Held(term) => Some((&lease.name, term)),
            Stage::Seeking
            | Stage::Taking
            | Stage::Proving(..)
            | Stage::Stopping(_)
            | Stage::ToFree(_)
            | Stage::Freeing(_) => None,
        })
    }

    /// Who else holds a lease that this node wants or watches, as far as is known, and until when
    /// that member is waited for (nothing where its record can't be read or is gone). Nothing if the lease
    /// is free, ours, not read yet, or its holder is closed.
    #[must_use]
    pub fn rival(&self, name: &LeaseName) -> Option<(&LeaseRecord, Option<Moment>)> {
        let lease = self.leases.get(name)?;
        let Known::Record(record, _) = &lease.known else { return None };
        let holder = lease.holder().filter(|holder| Some(*holder) != self.own_id())?;
        match self.watches.get(holder)?.verdict(self.config.timing.ttl, self.config.planted) {
            Verdict::Unread | Verdict::Absent | Verdict::Closed(_) => None,
            Verdict::Unreadable | Verdict::Vanished => Some((record, None)),
            Verdict::AliveUntil(at) | Verdict::EvictedUntil(at) => Some((record, Some(at))),
        }
    }

    /// Who leads a lease that this node wants or watches, as far as is known. Nothing if that was not
    /// read yet, can't be read, or is in doubt: then what was known before still is all that is known.
    #[must_use]
    pub fn sighting(&self, name: &LeaseName) -> Option<Sighting<'_>> {
        let lease = self.leases.get(name)?;
        let record = match &lease.known {
            Known::Unread | Known::Unreadable => return None,
            Known::Absent => None,
            Known::Record(record, _) => Some(record.as_ref()),
        };
        let free = Sighting { leader: None, own: false, seen: lease.seen };
        let Some(holder) = lease.holder() else { return Some(free) };
        if self.own_id() == Some(holder) {
            let leader = record.filter(|_| self.held(name).is_some()).map(|record| (record, None));
            return Some(Sighting { leader, own: leader.is_some(), ..free });
        }
        if self.farewells.has(holder) {
            // It was this node, whose work has ended or is ending.
            return Some(free);
        }
        let watch = self.watches.get(holder)?;
        let leader = match watch.verdict(self.config.timing.ttl, self.config.planted) {
            Verdict::Unread => return None,
            Verdict::Absent | Verdict::Closed(_) => None,
            // It was looked for when its time was over, and had not beaten; nobody closed it yet.
            Verdict::AliveUntil(at) | Verdict::EvictedUntil(at) if lease.seen >= at => None,
            Verdict::Unreadable
            | Verdict::Vanished
            | Verdict::AliveUntil(_)
            | Verdict::EvictedUntil(_) => {
                record.map(|record| (record, watch.seen().map(|(member, _)| member)))
            }
        };
        Some(Sighting { leader, ..free })
    }

    /// The current incarnation, once its creation was acknowledged.
    #[must_use]
    pub fn member(&self) -> Option<&MemberId> {
        self.own_id()
    }

    /// Gives up a lease of which a later term left its traces: as nobody else can hold it now, the
    /// store has forgotten that term, and the next one has to be above it.
    pub fn outdated(&mut self, now: Moment, name: &LeaseName, term: u64) {
        if let Some(lease) = self.leases.get_mut(name).filter(|lease| lease.memory.term < term) {
            lease.memory.highest = term.max(lease.memory.highest);
            lease.memory.term = term;
            lease.memory.holder = None;
        }
        self.stop(now, name, LossCause::Superseded, None);
    }

    /// Ends trust and work at a lease: in order, if there is time.
    pub(super) fn stop(
        &mut self,
        now: Moment,
        name: &LeaseName,
        why: LossCause,
        successor: Option<MemberId>,
    ) {
        let early = self.config.planted.is(Mutant::FreedBeforeStopped);
        let Some(lease) = self.leases.get_mut(name) else { return };
        let Stage::Held(term) = lease.stage else { return };
        lease.successor = successor;
        // What the cluster's leader does is done in here, and stops in here.
        let leads = name.kind() == LeaseKind::Leader;
        let stopped = early || leads;
        lease.stage = if stopped { Stage::ToFree(term) } else { Stage::Stopping(term) };
        if leads {
            self.leader = None;
        }
        self.outbox.say(ElectionEvent::Lost { lease: name.clone(), term, why, abrupt: false });
        self.note_moved(name);
        self.arm(name, now);
    }
}
