//! What a driver says to a node and asks of it.

use std::collections::BTreeSet;

use super::{
    ElectionEvent, Elector, LeaseName, LeaseRecord, LossCause, MemberId, MemberRecord, Membership,
    Moment, Purpose,
};
use crate::keys;
use crate::leases::Past;
use crate::mutant::Mutant;
use crate::outbox::Request;
use crate::records::Content;
use crate::stance::Stance;
use crate::store::Expect;

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
        if !self.leaving {
            self.with_leases(|leases, owner| leases.campaign(now, name, candidacy, owner));
        }
    }

    /// Stops standing for a lease. If it is held, its work is told to stop, and the lease is
    /// freed when it has.
    pub fn withdraw(&mut self, now: Moment, name: &LeaseName) {
        self.withdraw_for(now, name, None);
    }

    /// The same, for the sake of a successor.
    pub fn withdraw_for(&mut self, now: Moment, name: &LeaseName, successor: Option<MemberId>) {
        let why = LossCause::Withdrawn;
        self.with_leases(|leases, owner| leases.withdraw(now, name, why, successor, owner));
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
            let why = LossCause::Resigned;
            self.with_leases(|leases, owner| leases.stop(now, name, why, successor, owner));
        }
    }

    /// Says that the work under a term has ended, which is the condition for freeing the lease.
    pub fn stopped(&mut self, now: Moment, name: &LeaseName, term: u64) {
        self.with_leases(|leases, owner| leases.stopped(now, name, term, owner.outbox));
        self.release_farewells(now);
    }

    /// Puts off contending for a lease, because the work under it failed.
    pub fn abstain(&mut self, name: &LeaseName, until: Moment) {
        self.leases.abstain(name, until);
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
        for name in self.leases.names() {
            let why = LossCause::Leaving;
            self.with_leases(|leases, owner| leases.withdraw(now, &name, why, None, owner));
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
        self.with_leases(|leases, owner| leases.hint(now, owner));
        self.index.want_board = true;
        if let Some(leader) = &mut self.leader {
            leader.hint(now);
        }
    }

    /// Asks the store whether a term is still held, instead of trusting;
    /// [`ElectionEvent::Confirmed`] says what it found.
    pub fn confirm(&mut self, now: Moment, name: &LeaseName, term: u64) {
        self.with_leases(|leases, owner| leases.confirm(now, name, term, owner));
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
        self.leases.held(name)
    }

    /// Whether this node trusts at this moment that it holds the lease, work that is stopping
    /// included.
    #[must_use]
    pub fn trusts(&self, name: &LeaseName, now: Moment) -> Option<u64> {
        self.leases.term(name).filter(|_| self.trusted(now))
    }

    /// All leases that this node trusts at this moment to hold, as [`Self::trusts`] says it of one.
    pub fn trusted_terms(&self, now: Moment) -> impl Iterator<Item = (&LeaseName, u64)> {
        self.trusted(now).then(|| self.leases.terms()).into_iter().flatten()
    }

    /// All leases that this node holds, as [`Self::held`] says it of one.
    pub fn holdings(&self) -> impl Iterator<Item = (&LeaseName, u64)> {
        self.leases.holdings()
    }

    /// Who else holds a lease that this node wants or watches, as far as is known, and until when
    /// that member is waited for (nothing where its record can't be read or is gone). Nothing if the lease
    /// is free, ours, not read yet, or its holder is closed.
    #[must_use]
    pub fn rival(&self, name: &LeaseName) -> Option<(&LeaseRecord, Option<Moment>)> {
        self.leases.rival(name, self.own_id(), &self.config)
    }

    /// Who leads a lease that this node wants or watches, as far as is known. Nothing if that was not
    /// read yet, can't be read, or is in doubt: then what was known before still is all that is known.
    #[must_use]
    pub fn sighting(&self, name: &LeaseName) -> Option<Sighting<'_>> {
        let was_own = |member: &MemberId| self.farewells.has(member);
        self.leases.sighting(name, self.own_id(), was_own, &self.config)
    }

    /// The leases that were looked at since this was last asked: of each [`Self::sighting`] may say more.
    pub fn sighted(&mut self) -> BTreeSet<LeaseName> {
        self.leases.take_sighted()
    }

    /// The current incarnation, once its creation was acknowledged.
    #[must_use]
    pub fn member(&self) -> Option<&MemberId> {
        self.own_id()
    }

    /// Gives up a lease of which a later term left its traces: as nobody else can hold it now, the
    /// store has forgotten that term, and the next one has to be above it.
    pub fn outdated(&mut self, now: Moment, name: &LeaseName, term: u64) {
        self.with_leases(|leases, owner| leases.outdated(now, name, term, owner));
    }

    /// Takes in the proof that nothing of this member runs any more, so that it may be closed
    /// at once instead of after its ttl. Closing is a swap as ever, on the last version seen.
    ///
    /// Only for proof: a process that is paused, or a connection that ended, proves nothing.
    pub fn proven_dead(&mut self, now: Moment, member: &MemberId) {
        if Some(member) != self.own_id() {
            self.leases.proven_dead(now, member);
        }
    }

    /// Takes in that a lease was held by another. If it isn't there, the store has lost it.
    pub fn learn_former(&mut self, name: &LeaseName, holder: MemberId) {
        self.with_leases(|leases, owner| leases.learn_former(name, holder, owner));
    }

    /// What this node has seen so far, of 4,096 leases at most.
    #[must_use]
    pub fn past(&self) -> Past {
        self.leases.past()
    }

    /// Takes in what another node of this process has seen in this cluster. To be called before
    /// anything was read.
    pub fn recall(&mut self, past: Past) {
        if !self.config.planted.is(Mutant::PastForgotten) {
            self.leases.recall(past);
        }
    }
}
