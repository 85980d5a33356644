//! What to do about a lease of which the store shows less than it did.
//!
//! It is taken only a ttl after the very version that the take replaces was first seen, a ttl after
//! our own member was created, and it is held only once that member has beaten since. The first covers
//! a store that lost leases alone, the other two one that went back as a whole: our own record goes
//! back with it, and its next beat is refused. ARCHITECTURE.md ("What can't be") has the argument.

use super::decide::{look_or_wait, look_until};
use super::{
    JUMP, Lease, LeaseErrand, LeaseName, LeaseRecord, Leases, MemberId, Memory, Moment, Mutant,
    Owner, Purpose, Stage, Verdict, Watch, keys,
};
use crate::lease::Move;
use crate::mutant::{Planted, fault};
use crate::records::Content;

/// The seconds from 1970 to the beginning of 2024. Counted from there, seconds fit into the columns in
/// which applications keep terms for a long time to come.
const EPOCH: u64 = 1_704_067_200;

/// Of this many leases that it doesn't want any more a node remembers the terms.
pub(super) const MOST_MEMORIES: usize = 4096;

impl Leases {
    /// Drops a lease, but not what must hold of it if it is wanted again.
    pub(super) fn forget(&mut self, name: &LeaseName) {
        let Some(lease) = self.leases.remove(name) else { return };
        if lease.memory.highest > 0 {
            self.memories.insert(name.clone(), lease.memory);
        }
        while self.memories.len() > MOST_MEMORIES {
            self.memories.pop_first();
        }
    }

    /// Takes in that a lease was held by another. If it isn't there, the store has lost it.
    pub(crate) fn learn_former(&mut self, name: &LeaseName, holder: MemberId, owner: &Owner<'_>) {
        let forgets = owner.config.planted.is(Mutant::FormerForgotten);
        let Some(lease) = self.leases.get_mut(name).filter(|_| !forgets) else { return };
        if lease.memory.highest == 0 {
            lease.memory =
                Memory { highest: 1, term: 1, holder: Some(holder), ..Memory::default() };
        }
    }

    /// Whether nobody can hold the lease any more in what the store has lost.
    pub(super) fn outlived_loss(
        &self,
        lease: &Lease,
        now: Moment,
        owner: &Owner<'_>,
    ) -> Result<(), Move> {
        let Some(loss) = &lease.loss else { return Ok(()) };
        if owner.config.planted.is(Mutant::ForgottenTakenAtOnce) {
            return Ok(());
        }
        // Those that were lost with it run out of trust meanwhile, and not afterwards.
        if let Some(gone) = lease.awaited().find(|member| self.has_vanished(member, owner))
            && lease.is_electable()
        {
            return Err(Move::Close(gone.clone()));
        }
        if lease.is_electable() && !lease.is_marked() {
            return Err(Move::Mark);
        }
        let until = loss.until.max(owner.joined(now) + loss.wait);
        if now < until {
            return Err(look_until(lease, now, until));
        }
        // Others may have mended it, and the store may have forgotten that too.
        if now.since(loss.shown) > owner.config.timing.ttl / 2 {
            return Err(look_or_wait(lease, now));
        }
        match lease.lost_holder().filter(|holder| Some(*holder) != owner.own_id()) {
            Some(holder) => self.outlived(lease, holder, now, owner),
            None => Ok(()),
        }
    }

    fn has_vanished(&self, member: &MemberId, owner: &Owner<'_>) -> bool {
        let watch = self.watches.get(member).filter(|watch| !watch.closing);
        let verdict = |watch: &Watch| watch.verdict(owner.config.timing.ttl, owner.config.planted);
        watch.is_some_and(|watch| verdict(watch) == Verdict::Vanished)
    }

    /// The store has forgotten something. Of a lease that isn't there nobody can tell from now on
    /// whether it ever was: its terms begin above all that this node has seen of any, and who held it
    /// may trust for its ttl.
    pub(super) fn note_loss(&mut self, now: Moment, owner: &mut Owner<'_>) {
        if !owner.config.planted.is(Mutant::ForgottenTermRestarts) {
            self.first_term = self.first_term.max(self.highest_term + JUMP);
        }
        if !owner.config.planted.is(Mutant::ForgottenTakenAtOnce) {
            let seen = self.watches.values().filter_map(Watch::seen);
            let longest = seen.map(|(record, _)| record.ttl()).max().unwrap_or_default();
            self.lost_until = now + longest.max(owner.config.timing.ttl);
        }
    }

    /// The term after the present one. What others took before a loss may be lost too, and nobody here
    /// can know how far they counted. So terms that follow a loss begin at the seconds that have passed
    /// on the wall clock: they are higher the later they begin, whoever counts. Nothing else hangs on
    /// that clock, and if it is behind what was seen, that is counted on from.
    pub(super) fn next_term(&self, lease: &Lease, owner: &Owner<'_>) -> u64 {
        let planted = owner.config.planted;
        let seconds = (owner.wall_ms / 1000).saturating_sub(EPOCH).min(u64::from(u32::MAX));
        let next = lease.next_term(seconds, planted);
        let unknown = lease.record().term == 0 && self.first_term > 1;
        if !unknown || planted.is(Mutant::ForgottenTermRestarts) {
            return next;
        }
        if seconds > self.highest_term && !planted.is(Mutant::LossesCounted) {
            return next.max(seconds);
        }
        next.max(self.first_term).max(seconds)
    }

    /// Writes the record as nobody's, so that no take that is on its way can land any more.
    pub(super) fn touch(&mut self, now: Moment, name: &LeaseName, owner: &mut Owner<'_>) {
        let Some(lease) = self.leases.get(name) else { return };
        let mut record = lease.record();
        record.holder = None;
        if lease.loss.is_some() {
            record.term = self.next_term(lease, owner);
        }
        self.rewrite(now, name, record, owner);
    }

    /// Writes what the store went back to as it is, with what it has lost.
    pub(super) fn mark(&mut self, now: Moment, name: &LeaseName, owner: &mut Owner<'_>) {
        let Some(lease) = self.leases.get(name) else { return };
        let mut record = lease.record();
        if !owner.config.planted.is(Mutant::ForgottenTermRestarts) {
            record.lost = record.lost.max(lease.memory.highest);
        }
        if owner.is_named_by(lease) && !owner.config.planted.is(Mutant::FormerNameStays) {
            // It names us, and we don't hold it: who does may wait to read that.
            record.holder = None;
        }
        self.rewrite(now, name, record, owner);
    }

    fn rewrite(
        &mut self,
        now: Moment,
        name: &LeaseName,
        record: LeaseRecord,
        owner: &mut Owner<'_>,
    ) {
        let Some(lease) = self.leases.get_mut(name) else { return };
        lease.stage = Stage::Taking;
        lease.hinted = false;
        let expect = lease.expect();
        let put = owner.outbox.put(keys::lease(name), expect, record.bytes(), false);
        let purpose = Purpose::from(LeaseErrand::Touch(name.clone(), record));
        owner.outbox.write(now, vec![put], purpose);
    }
}

impl Owner<'_> {
    /// Since when our member shows that the store has not forgotten everything: its record would be
    /// gone or would have gone back, and its next beat would be refused. What was there before this
    /// member may have been forgotten without our knowing.
    pub(super) fn joined(&self, now: Moment) -> Moment {
        let since = self.member.as_ref().map_or(now, |member| member.since);
        fault!(self.config.planted, WaitOutlivesMember => Moment::START, since)
    }
}

impl Lease {
    /// The term of the next record, if the lease changes hands now. After a loss it is what the wall
    /// clock says, in seconds, if that is above all that was seen.
    pub(crate) fn next_term(&self, seconds: u64, planted: Planted) -> u64 {
        let record = self.record();
        let highest = self.memory.highest.max(record.lost);
        let sound = self.loss.is_none() && highest <= record.term && !record.is_lost();
        if sound || planted.is(Mutant::ForgottenTermRestarts) {
            return record.term + 1;
        }
        let highest = record.term.max(highest);
        let again = self.loss.as_ref().map_or(0, |loss| loss.again);
        let counted = highest + JUMP * (1 + again);
        if planted.is(Mutant::LossesCounted) {
            return counted.max(seconds);
        }
        if seconds > highest { seconds } else { counted }
    }
}
