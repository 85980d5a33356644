//! What to do about a lease that isn't held, and doing it.

use std::time::Duration;

use super::{
    ElectionEvent, Known, Lease, LeaseErrand, LeaseKind, LeaseName, LeaseRecord, Leases, MemberId,
    MemberRecord, Moment, Mutant, Owner, Purpose, Stage, Verdict, Watch, keys,
};
use crate::lease::Move;
use crate::mutant::fault;
use crate::pace;
use crate::records::{Change, ChangeKind, Content, Holder, MemberState};
use crate::store::{Expect, Write};

/// How the lease came to be free.
#[derive(Clone, Copy)]
enum Freedom {
    Vacant,
    HolderClosed,
}

impl Leases {
    pub(super) fn drive(&mut self, now: Moment, name: &LeaseName, owner: &mut Owner<'_>) {
        // Each round either sends something, waits, or changes the stage. Should that ever go on for
        // longer, the lease is looked at again in a moment, and the others have their turn.
        for _ in 0..4 {
            let Some(lease) = self.leases.get(name) else { return };
            let step = self.next_move(lease, now, owner);
            let writes = matches!(
                step,
                Move::Close(_)
                    | Move::Take
                    | Move::Free(_)
                    | Move::Touch
                    | Move::Mark
                    | Move::Adopt(_)
            );
            if writes && !owner.trusted(now) {
                // Nothing is written without trust; joining again brings us back here.
                return;
            }
            match step {
                Move::Wait(at) => return self.arm(name, at),
                Move::Look => return self.look(name),
                Move::Close(holder) => return self.close(now, name, &holder, owner),
                Move::Take => return self.take(now, name, owner),
                Move::Free(term) => return self.free(now, name, term, owner),
                Move::Touch => return self.touch(now, name, owner),
                Move::Mark => return self.mark(now, name, owner),
                Move::Adopt(term) => return self.adopt(now, name, term, owner),
                Move::NoteFree => self.note(name, |lease| lease.free_since = Some(now)),
                Move::Settled => {
                    self.note(name, |lease| lease.stage = Stage::Seeking);
                    self.note_freed(now, owner);
                    self.note_moved(name);
                }
                Move::Forget => {
                    self.forget(name);
                    return self.note_moved(name);
                }
            }
        }
        self.arm(name, now + pace::SOONEST);
    }

    fn note(&mut self, name: &LeaseName, change: impl FnOnce(&mut Lease)) {
        if let Some(lease) = self.leases.get_mut(name) {
            change(lease);
        }
    }

    fn next_move(&self, lease: &Lease, now: Moment, owner: &Owner<'_>) -> Move {
        let nothing = Move::Wait(Moment::NEVER);
        if lease.looking {
            return nothing;
        }
        match lease.stage {
            Stage::Taking | Stage::Freeing(_) | Stage::Held(_) | Stage::Stopping(_) => nothing,
            Stage::Proving(term, beat) => self.prove(lease, term, beat, owner),
            Stage::ToFree(term) => self.unhold(lease, term, now, owner),
            Stage::Seeking => self.seek(lease, now, owner),
        }
    }

    /// A take after a loss counts only once our member has beaten since then.
    fn prove(&self, lease: &Lease, term: u64, beat: u64, owner: &Owner<'_>) -> Move {
        if !lease.is_electable() {
            return Move::Free(term);
        }
        let proven = owner.member.as_ref().is_some_and(|member| member.acknowledged() > beat);
        if proven { Move::Adopt(term) } else { Move::Wait(Moment::NEVER) }
    }

    fn unhold(&self, lease: &Lease, term: u64, now: Moment, owner: &Owner<'_>) -> Move {
        let planted = owner.config.planted;
        match &lease.known {
            Known::Unread | Known::Unreadable => look_or_wait(lease, now),
            Known::Record(record, _) if record.term == term && owner.is_named_by(lease) => {
                let undone = planted.is(Mutant::ReleaseSettledByRead)
                    && lease.released >= term
                    && lease.is_electable();
                if undone { Move::Adopt(term) } else { Move::Free(term) }
            }
            Known::Record(record, _)
                if planted.is(Mutant::ReleaseNotScoped) && record.holder.is_some() =>
            {
                Move::Free(term)
            }
            Known::Record(record, _) if record.term >= term && lease.loss.is_none() => {
                Move::Settled
            }
            // Not what we held: a stale read, and the record still names us, or a store that forgot.
            // Then whoever waits for us has to learn that we are done.
            Known::Record(..) | Known::Absent => match &lease.loss {
                Some(loss) if now < loss.until => look_until(lease, now, loss.until),
                Some(_) if lease.holder().is_none() => Move::Touch,
                Some(_) | None => Move::Settled,
            },
        }
    }

    fn seek(&self, lease: &Lease, now: Moment, owner: &Owner<'_>) -> Move {
        let forgets = owner.config.planted.is(Mutant::DoubtfulTakeForgotten);
        let settled = lease.doubts.is_empty() || forgets;
        if lease.want.is_none() && settled && !owner.is_named_by(lease) {
            return Move::Forget;
        }
        let record = match &lease.known {
            Known::Unread | Known::Unreadable => return look_or_wait(lease, now),
            Known::Absent => return self.approach(lease, now, Freedom::Vacant, owner),
            Known::Record(record, _) => record,
        };
        let Some(holder) = &record.holder else {
            return self.approach(lease, now, Freedom::Vacant, owner);
        };
        if Some(&holder.member) == owner.own_id() {
            return self.settle_own(lease, record.term, now, owner);
        }
        self.outwait(lease, &holder.member, now, owner)
    }

    /// The record names this member although it isn't held: a take landed late, or the read is
    /// stale. Only the very take that is in doubt may be adopted, because nobody but us can have
    /// ended its term; of anything else the read doesn't tell whether it is over.
    fn settle_own(&self, lease: &Lease, term: u64, now: Moment, owner: &Owner<'_>) -> Move {
        let planted = owner.config.planted;
        if planted.is(Mutant::LateTakeIgnored) {
            return Move::Wait(Moment::NEVER);
        }
        let any = planted.is(Mutant::AnyReadElects) && term > lease.released;
        match self.running.get(&lease.name) {
            // It was given up because of what a read showed, and its work is ending.
            Some((member, running)) if Some(member) == owner.own_id() && *running == term => {
                Move::Wait(Moment::NEVER)
            }
            None if lease.is_electable() && (any || lease.landed().is_some()) => Move::Adopt(term),
            // What the store went back to isn't changed before it may be taken: others tell by it
            // whether somebody has written who can't know of the loss.
            Some(_) | None if lease.loss.is_some() => match self.outlived_loss(lease, now, owner) {
                Ok(()) if lease.want.is_none() => Move::Touch,
                Ok(()) => self.approach(lease, now, Freedom::Vacant, owner),
                Err(step) => step,
            },
            Some(_) | None => Move::Free(term),
        }
    }

    fn outwait(&self, lease: &Lease, holder: &MemberId, now: Moment, owner: &Owner<'_>) -> Move {
        // Nobody is closed for a lease that may not be taken yet.
        if let Err(step) = self.outlived_loss(lease, now, owner) {
            return step;
        }
        match self.outlived(lease, holder, now, owner) {
            Ok(()) => self.approach(lease, now, Freedom::HolderClosed, owner),
            Err(step) => step,
        }
    }

    /// Whether what the member held is free; if not, what to do until then.
    pub(super) fn outlived(
        &self,
        lease: &Lease,
        holder: &MemberId,
        now: Moment,
        owner: &Owner<'_>,
    ) -> Result<(), Move> {
        let planted = owner.config.planted;
        let fresh = Watch::new();
        let watch = self.watches.get(holder).unwrap_or(&fresh);
        if watch.closing {
            return Err(Move::Wait(lease.look_at.max(now + pace::LOOK)));
        }
        Err(match watch.verdict(owner.config.timing.ttl, planted) {
            Verdict::Unread | Verdict::Unreadable => look_or_wait(lease, now),
            Verdict::Absent if planted.is(Mutant::AbsentMeansClosed) => return Ok(()),
            Verdict::Absent | Verdict::Vanished if lease.is_electable() => {
                Move::Close(holder.clone())
            }
            Verdict::Absent | Verdict::Vanished => look_or_wait(lease, now),
            Verdict::Closed(_) => return Ok(()),
            Verdict::EvictedUntil(at) if now >= at => match watch.is_read_since(at, planted) {
                true => return Ok(()),
                false => look_or_wait(lease, now),
            },
            Verdict::AliveUntil(at) if now >= at && lease.is_electable() => {
                fault!(planted, ExpiryWithoutSwap => return Ok(()), Move::Close(holder.clone()))
            }
            Verdict::AliveUntil(_) | Verdict::EvictedUntil(_)
                if planted.is(Mutant::HintsRequired) && now < lease.look_at =>
            {
                Move::Wait(Moment::NEVER)
            }
            Verdict::AliveUntil(at) | Verdict::EvictedUntil(at) if lease.is_electable() => {
                look_until(lease, now, at)
            }
            Verdict::AliveUntil(_) | Verdict::EvictedUntil(_) => look_or_wait(lease, now),
        })
    }

    /// The lease is free: take it, after holding back as fairness asks.
    fn approach(&self, lease: &Lease, now: Moment, freedom: Freedom, owner: &Owner<'_>) -> Move {
        let Some(want) = &lease.want else {
            // Not wanted, but a take of ours may still land unless something newer is there.
            return if lease.doubts.is_empty() { Move::Forget } else { Move::Touch };
        };
        if !want.electable || self.running.contains_key(&lease.name) {
            return look_or_wait(lease, now);
        }
        if let Err(step) = self.outlived_loss(lease, now, owner) {
            return step;
        }
        let Some(since) = lease.free_since else { return Move::NoteFree };
        let ttl = owner.config.timing.ttl;
        let member_for = owner.member.as_ref().map_or(Duration::ZERO, |me| now.since(me.since));
        let successor = match (&lease.known, freedom) {
            (Known::Record(record, _), Freedom::Vacant) => record.successor.as_ref(),
            _ => None,
        };
        // Who was seen to beat after its take is in the store that its take is in.
        let read = lease.read_since();
        let proof = fault!(owner.config.planted, AnySightProves => Moment::START, read);
        let beats = |watch: &Watch| watch.has_beaten_since(proof);
        let proven = |member| self.watches.get(member).is_some_and(beats);
        let unproven = match &lease.known {
            Known::Record(record, _) => {
                let lost = record.is_lost() && lease.loss.is_none();
                lost || record.holder.as_ref().is_some_and(|it| it.unproven && !proven(&it.member))
            }
            Known::Unread | Known::Absent | Known::Unreadable => false,
        };
        let rested = |hold_back: Duration| (since + hold_back).max(lease.rests_until);
        let at = match successor {
            // Others hold back no longer than this one might rest (O49).
            Some(successor) if Some(successor) == owner.own_id() => since,
            Some(_) if owner.config.planted.is(Mutant::EndlessHoldBack) => {
                return Move::Wait(now + ttl);
            }
            Some(_) => rested(ttl / 3),
            None => rested(owner.preference(lease, want).delay(ttl, member_for)),
        };
        let at = at.max(lease.not_before);
        let at = if unproven { at.max(read.max(owner.joined(now)) + ttl) } else { at };
        // One that this node has never seen, in a store that has lost others.
        let unknown = lease.loss.is_none() && lease.record().term == 0;
        let at = if unknown { at.max(self.lost_until) } else { at };
        // Who holds back goes on looking: what it holds back for may be over.
        if now >= at { Move::Take } else { look_until(lease, now, at) }
    }

    /// Closes a holder that wasn't heard of for its ttl, or that has no record at all.
    fn close(&mut self, now: Moment, name: &LeaseName, holder: &MemberId, owner: &mut Owner<'_>) {
        let Some(watch) = self.watches.get_mut(holder) else { return };
        watch.closing = true;
        let (record, expect) = match watch.seen() {
            Some((record, version)) => {
                (record.closed(MemberState::Expired), Expect::Version(version.clone()))
            }
            None => {
                let (ttl, state) = match watch.vanished() {
                    Some(ttl) => (ttl, MemberState::Evicted),
                    None => (owner.config.timing.ttl, MemberState::Expired),
                };
                (MemberRecord::forgotten(holder.clone(), ttl, state), Expect::Absent)
            }
        };
        let put = owner.outbox.put(keys::member(holder), expect, record.bytes(), true);
        let put = put.durable(!record.state.is_final());
        owner.outbox.write(now, vec![put], Purpose::from(LeaseErrand::Close(record)));
        if owner.config.planted.is(Mutant::CloseAndTakeTogether) {
            self.take(now, name, owner);
        }
    }

    fn take(&mut self, now: Moment, name: &LeaseName, owner: &mut Owner<'_>) {
        let Some(record) = self.leases.get(name).map(|lease| self.taken(lease, now, owner)) else {
            return;
        };
        let Some(lease) = self.leases.get_mut(name) else { return };
        lease.stage = Stage::Taking;
        lease.hinted = false;
        let expect = lease.expect();
        // Nobody waits to hear that a duty was taken, and there are many.
        let put = owner.outbox.put(
            keys::lease(name),
            expect,
            record.bytes(),
            name.kind() != LeaseKind::Duty,
        );
        let put = put.durable(fault!(owner.config.planted, TakeNotDurable => false, true));
        let purpose = Purpose::from(LeaseErrand::Take(name.clone(), record));
        owner.outbox.write(now, vec![put], purpose);
    }

    /// The record after this node took the lease.
    fn taken(&self, lease: &Lease, now: Moment, owner: &Owner<'_>) -> LeaseRecord {
        let mut record = lease.record();
        let kind = match lease.holder().and_then(|holder| self.watches.get(holder)) {
            None => ChangeKind::Taken,
            Some(watch) => match watch.seen().map(|(record, _)| record.state) {
                Some(MemberState::Left) => ChangeKind::Inherited,
                Some(MemberState::Evicted) => ChangeKind::Evicted,
                Some(MemberState::Expired | MemberState::Alive) | None => ChangeKind::Expired,
            },
        };
        if !owner.config.planted.is(Mutant::TermNotRaised) || record.term == 0 {
            record.term = self.next_term(lease, owner);
            record.lost = 0;
        }
        // The stamp that the write of this record will carry.
        let stamp = owner.outbox.next_stamp();
        let profile = &owner.config.profile;
        record.holder = owner.own_id().map(|member| Holder {
            member: member.clone(),
            node: profile.node.clone(),
            address: profile.address.clone(),
            mark: Some(stamp.to_string()),
            unproven: lease.follows_loss()
                && !owner.config.planted.is(Mutant::ForgottenElectedWithoutBeat),
            due_ms: owner.next_beat_in(now),
        });
        record.payload = lease.want.as_ref().and_then(|want| want.payload.clone());
        record.successor = None;
        record.remember(owner.change(record.term, kind));
        record
    }

    /// Frees a term of our own; the comparison makes sure that it is that term and no other.
    fn free(&mut self, now: Moment, name: &LeaseName, term: u64, owner: &mut Owner<'_>) {
        let change = owner.change(term, ChangeKind::Freed);
        let planted = owner.config.planted;
        // Lost with the store's crash, it leaves the lease to this member for as long as that lives: not
        // long, if nothing else runs that it has to wait for (O63).
        let durable = !owner.leaving || owner.own_id().is_some_and(|id| self.works_for(id));
        let Some(lease) = self.leases.get_mut(name) else { return };
        lease.stage = Stage::Freeing(term);
        lease.hinted = false;
        lease.released = lease.released.max(term);
        lease.doubts.retain(|doubt| doubt.term > term);
        let mut record = lease.record();
        let unproven = record.holder.take().is_some_and(|holder| holder.unproven);
        if unproven && lease.elected < term && !planted.is(Mutant::FreedWithoutProof) {
            // No beat has shown that the store hasn't forgotten once more: who takes it next waits.
            record.lost = term;
        }
        record.payload = None;
        record.successor = lease.successor.take();
        record.remember(change);
        let expect = lease.expect();
        let write = if owner.config.planted.is(Mutant::LeaseDeleted) {
            Write::Delete(keys::lease(name))
        } else {
            owner.outbox.put(keys::lease(name), expect, record.bytes(), true).durable(durable)
        };
        let purpose = Purpose::from(LeaseErrand::Free(name.clone(), term, record));
        owner.outbox.write(now, vec![write], purpose);
    }

    /// The record names this member by a take of its own.
    pub(super) fn adopt(
        &mut self,
        now: Moment,
        name: &LeaseName,
        term: u64,
        owner: &mut Owner<'_>,
    ) {
        let Some(lease) = self.leases.get(name) else { return };
        let after_loss = lease.landed().is_some_and(|doubt| doubt.after_loss);
        self.won(now, name, term, after_loss, owner);
    }

    /// A take succeeded. That the lease is in a store that had forgotten it doesn't show that our
    /// member is there too: a beat has to show that first.
    pub(super) fn won(
        &mut self,
        now: Moment,
        name: &LeaseName,
        term: u64,
        after_loss: bool,
        owner: &mut Owner<'_>,
    ) {
        if !after_loss || owner.config.planted.is(Mutant::ForgottenElectedWithoutBeat) {
            return self.elect(name, term, owner);
        }
        let (Some(lease), Some(member)) = (self.leases.get_mut(name), owner.member.as_deref_mut())
        else {
            return;
        };
        lease.doubts.clear();
        lease.stage = Stage::Proving(term, member.attempts());
        self.proving.insert(name.clone());
        member.beat_soon(now);
        self.arm(name, Moment::NEVER);
    }

    /// This member holds the lease from now on.
    pub(super) fn elect(&mut self, name: &LeaseName, term: u64, owner: &mut Owner<'_>) {
        let Some(member) = owner.own_id().cloned() else { return };
        let Some(lease) = self.leases.get_mut(name) else { return };
        lease.stage = Stage::Held(term);
        lease.elected = term;
        lease.doubts.clear();
        lease.conflicts.reset();
        self.won = true;
        if name.kind() == LeaseKind::Leader {
            self.leads = Some(term);
        } else {
            self.running.insert(name.clone(), (member.clone(), term));
        }
        owner.outbox.say(ElectionEvent::Elected { lease: name.clone(), term, member });
        self.note_moved(name);
    }
}

impl Owner<'_> {
    /// The milliseconds until this member beats next; 0 if a beat is on its way.
    fn next_beat_in(&self, now: Moment) -> u32 {
        let due = self.member.as_ref().map(|member| member.wake_at(self.config.planted));
        let due = due.filter(|due| *due != Moment::NEVER).unwrap_or(now);
        u32::try_from(due.since(now).as_millis()).unwrap_or(0)
    }

    fn change(&self, term: u64, kind: ChangeKind) -> Change {
        Change { term, kind, node: self.config.profile.node.clone(), at_ms: self.wall_ms }
    }
}

pub(super) fn look_or_wait(lease: &Lease, now: Moment) -> Move {
    if now >= lease.look_at { Move::Look } else { Move::Wait(lease.look_at) }
}

/// Waits until this moment, and goes on looking.
pub(super) fn look_until(lease: &Lease, now: Moment, until: Moment) -> Move {
    match look_or_wait(lease, now) {
        Move::Wait(look_at) => Move::Wait(look_at.min(until)),
        look => look,
    }
}
