//! What to do about a lease that isn't held, and doing it.

use std::time::Duration;

use super::{
    Event, Expect, Lane, LeaseName, LeaseRecord, MemberId, MemberRecord, Moment, Mutant, Node,
    Purpose, Read, Write, keys,
};
use crate::leader::Leader;
use crate::lease::{Known, Lease, Move, Stage};
use crate::placing::Placing;
use crate::records::{Change, ChangeKind, Content, Holder, MemberState};
use crate::watch::{Verdict, Watch};

/// How the lease came to be free.
#[derive(Clone, Copy)]
enum Freedom {
    Vacant,
    HolderClosed,
}

impl Node {
    pub(super) fn drive_leases(&mut self, now: Moment) {
        while let Some((at, name)) = self.timers.first().cloned() {
            if at > now {
                break;
            }
            self.arm(&name, Moment::NEVER);
            self.drive_lease(now, &name);
        }
        self.send_looks(now);
    }

    fn drive_lease(&mut self, now: Moment, name: &LeaseName) {
        // Each round either sends something, waits, or changes the stage; the bound is a belt
        // to go with these braces.
        for _ in 0..4 {
            let Some(lease) = self.leases.get(name) else { return };
            let step = self.next_move(lease, now);
            let writes = matches!(
                step,
                Move::Close(_) | Move::Take | Move::Free(_) | Move::Touch | Move::Adopt(_)
            );
            if writes && !self.trusted(now) {
                // Nothing is written without trust; joining again brings us back here.
                return;
            }
            match step {
                Move::Wait(at) => return self.arm(name, at),
                Move::Look => return self.look(name),
                Move::Close(holder) => return self.close(now, name, &holder),
                Move::Take => return self.take(now, name),
                Move::Free(term) => return self.free(now, name, term),
                Move::Touch => return self.touch(now, name),
                Move::Adopt(term) => return self.elect(now, name, term),
                Move::NoteFree => self.note(name, |lease| lease.free_since = Some(now)),
                Move::Settled => {
                    self.note(name, |lease| lease.stage = Stage::Seeking);
                    self.duty_changed(now, name);
                }
                Move::Forget => {
                    self.leases.remove(name);
                    return self.duty_changed(now, name);
                }
            }
        }
    }

    fn note(&mut self, name: &LeaseName, change: impl FnOnce(&mut Lease)) {
        if let Some(lease) = self.leases.get_mut(name) {
            change(lease);
        }
    }

    fn next_move(&self, lease: &Lease, now: Moment) -> Move {
        let nothing = Move::Wait(Moment::NEVER);
        if lease.looking {
            return nothing;
        }
        match lease.stage {
            Stage::Taking | Stage::Freeing(_) | Stage::Held(_) | Stage::Stopping(_) => nothing,
            Stage::ToFree(term) => self.unhold(lease, term, now),
            Stage::Seeking => self.seek(lease, now),
        }
    }

    fn unhold(&self, lease: &Lease, term: u64, now: Moment) -> Move {
        match &lease.known {
            Known::Record(record, _) => {
                let own = lease.holder() == self.own_id();
                let unscoped = self.config.planted.is(Mutant::ReleaseNotScoped);
                let undone = self.config.planted.is(Mutant::ReleaseSettledByRead)
                    && lease.released >= term
                    && lease.is_electable();
                let elects =
                    self.config.planted.is(Mutant::AnyReadElects) && lease.released >= term;
                if own && (undone || elects) && record.term == term {
                    Move::Adopt(term)
                } else if (own && record.term == term) || (unscoped && record.holder.is_some()) {
                    Move::Free(term)
                } else {
                    Move::Settled
                }
            }
            Known::Unread | Known::Unreadable => look_or_wait(lease, now),
            Known::Absent => Move::Settled,
        }
    }

    fn seek(&self, lease: &Lease, now: Moment) -> Move {
        let settled =
            lease.unsettled.is_none() || self.config.planted.is(Mutant::DoubtfulTakeForgotten);
        if lease.want.is_none() && settled && !self.is_own(lease) {
            return Move::Forget;
        }
        let record = match &lease.known {
            Known::Unread | Known::Unreadable => return look_or_wait(lease, now),
            Known::Absent => return self.approach(lease, now, Freedom::Vacant),
            Known::Record(record, _) => record,
        };
        let Some(holder) = &record.holder else {
            return self.approach(lease, now, Freedom::Vacant);
        };
        if Some(&holder.member) == self.own_id() {
            return self.settle_own(lease, record.term, now);
        }
        self.outwait(lease, &holder.member, now)
    }

    fn is_own(&self, lease: &Lease) -> bool {
        lease.holder().is_some() && lease.holder() == self.own_id()
    }

    /// The record names this member although it isn't held: a take landed late, or a release
    /// is on its way.
    fn settle_own(&self, lease: &Lease, term: u64, now: Moment) -> Move {
        if self.config.planted.is(Mutant::LateTakeIgnored) {
            return Move::Wait(Moment::NEVER);
        }
        if term <= lease.released {
            return look_or_wait(lease, now);
        }
        if lease.is_electable() && !self.running.contains_key(&lease.name) {
            return Move::Adopt(term);
        }
        Move::Free(term)
    }

    fn outwait(&self, lease: &Lease, holder: &MemberId, now: Moment) -> Move {
        let planted = self.config.planted;
        let fresh = Watch::new();
        let watch = self.watches.get(holder).unwrap_or(&fresh);
        if watch.closing {
            return Move::Wait(lease.look_at.max(now + Duration::from_secs(1)));
        }
        match watch.verdict(self.config.timing.ttl, planted) {
            Verdict::Unread | Verdict::Unreadable => look_or_wait(lease, now),
            Verdict::Absent if planted.is(Mutant::AbsentMeansClosed) => {
                self.approach(lease, now, Freedom::HolderClosed)
            }
            Verdict::Absent if lease.is_electable() => Move::Close(holder.clone()),
            Verdict::Absent => look_or_wait(lease, now),
            Verdict::Closed(_) => self.approach(lease, now, Freedom::HolderClosed),
            Verdict::EvictedUntil(at) if now >= at => {
                self.approach(lease, now, Freedom::HolderClosed)
            }
            Verdict::AliveUntil(at) if now >= at && lease.is_electable() => {
                if planted.is(Mutant::ExpiryWithoutSwap) {
                    return self.approach(lease, now, Freedom::HolderClosed);
                }
                Move::Close(holder.clone())
            }
            Verdict::AliveUntil(at) | Verdict::EvictedUntil(at) => {
                if now >= lease.look_at && !planted.is(Mutant::HintsRequired) {
                    return Move::Look;
                }
                if planted.is(Mutant::HintsRequired) {
                    return if now >= lease.look_at {
                        Move::Look
                    } else {
                        Move::Wait(Moment::NEVER)
                    };
                }
                Move::Wait(if lease.is_electable() { at.min(lease.look_at) } else { lease.look_at })
            }
        }
    }

    /// The lease is free: take it, after holding back as fairness asks.
    fn approach(&self, lease: &Lease, now: Moment, freedom: Freedom) -> Move {
        let Some(want) = &lease.want else {
            // Not wanted, but a take of ours may still land unless something newer is there.
            return if lease.unsettled.is_some() { Move::Touch } else { Move::Forget };
        };
        if !want.electable || self.running.contains_key(&lease.name) {
            return look_or_wait(lease, now);
        }
        let Some(since) = lease.free_since else { return Move::NoteFree };
        let ttl = self.config.timing.ttl;
        let member_for = self.member.as_ref().map_or(Duration::ZERO, |me| now.since(me.since));
        let successor = match (&lease.known, freedom) {
            (Known::Record(record, _), Freedom::Vacant) => record.successor.as_ref(),
            _ => None,
        };
        let hold_back = match successor {
            Some(successor) if Some(successor) == self.own_id() => Duration::ZERO,
            Some(_) if self.config.planted.is(Mutant::EndlessHoldBack) => {
                return Move::Wait(now + ttl);
            }
            Some(_) => ttl / 3,
            None => want.preference.delay(ttl, member_for),
        };
        let at = (since + hold_back).max(lease.not_before);
        if now >= at { Move::Take } else { Move::Wait(at) }
    }

    fn look(&mut self, name: &LeaseName) {
        if let Some(lease) = self.leases.get_mut(name) {
            lease.looking = true;
            self.to_look.insert(name.clone());
        }
    }

    /// One request reads all leases that want a look, and each of their holders once.
    fn send_looks(&mut self, now: Moment) {
        let looking = |pending: &super::Pending| matches!(pending.purpose, Purpose::Look { .. });
        if self.to_look.is_empty() || self.pending.values().any(looking) {
            return;
        }
        let leases: Vec<LeaseName> = std::mem::take(&mut self.to_look).into_iter().collect();
        let own = self.own_id().cloned();
        let mut reads = Vec::with_capacity(leases.len() + 1);
        let mut holders: Vec<MemberId> = Vec::new();
        for lease in leases.iter().filter_map(|name| self.leases.get(name)) {
            let unless = lease.version().cloned();
            reads.push(Read::Key { key: keys::lease(&lease.name), unless });
            if let Some(holder) = lease.holder().filter(|holder| Some(*holder) != own.as_ref()) {
                holders.push(holder.clone());
            }
        }
        holders.sort();
        holders.dedup();
        for holder in &holders {
            let unless = self.watches.get(holder).and_then(|watch| watch.version().cloned());
            reads.push(Read::Key { key: keys::member(holder), unless });
        }
        self.send(now, Lane::Watch, Vec::new(), reads, Purpose::Look { leases, holders });
    }

    /// Closes a holder that wasn't heard of for its ttl, or that has no record at all.
    fn close(&mut self, now: Moment, name: &LeaseName, holder: &MemberId) {
        let Some(watch) = self.watches.get_mut(holder) else { return };
        watch.closing = true;
        let (record, expect) = match watch.seen() {
            Some((record, version)) => {
                (record.closed(MemberState::Expired), Expect::Version(version.clone()))
            }
            None => {
                let ttl = self.config.timing.ttl;
                let record = MemberRecord::joining(holder.clone(), ttl, ttl / 3);
                (record.closed(MemberState::Expired), Expect::Absent)
            }
        };
        let put = self.put(keys::member(holder), expect, record.bytes(), true);
        self.send(now, Lane::Change, vec![put], Vec::new(), Purpose::Close(record));
        if self.config.planted.is(Mutant::CloseAndTakeTogether) {
            self.take(now, name);
        }
    }

    fn take(&mut self, now: Moment, name: &LeaseName) {
        let Some(record) = self.leases.get(name).map(|lease| self.taken(lease)) else { return };
        let Some(lease) = self.leases.get_mut(name) else { return };
        lease.stage = Stage::Taking;
        let expect = lease.expect();
        // Nobody waits to hear that a duty was taken, and there are many.
        let put = self.put(keys::lease(name), expect, record.bytes(), !name.is_duty());
        let purpose = Purpose::Take(name.clone(), record);
        self.send(now, Lane::Change, vec![put], Vec::new(), purpose);
    }

    /// The record after this node took the lease.
    fn taken(&self, lease: &Lease) -> LeaseRecord {
        let mut record = lease.record();
        let kind = match lease.holder().and_then(|holder| self.watches.get(holder)) {
            None => ChangeKind::Taken,
            Some(watch) => match watch.seen().map(|(record, _)| record.state) {
                Some(MemberState::Left) => ChangeKind::Inherited,
                Some(MemberState::Evicted) => ChangeKind::Evicted,
                Some(MemberState::Expired | MemberState::Alive) | None => ChangeKind::Expired,
            },
        };
        if !self.config.planted.is(Mutant::TermNotRaised) || record.term == 0 {
            record.term += 1;
        }
        let profile = &self.config.profile;
        record.holder = self.own_id().map(|member| Holder {
            member: member.clone(),
            node: profile.node.clone(),
            address: profile.address.clone(),
        });
        record.payload = lease.want.as_ref().and_then(|want| want.payload.clone());
        record.successor = None;
        record.remember(self.change(record.term, kind));
        record
    }

    fn change(&self, term: u64, kind: ChangeKind) -> Change {
        Change { term, kind, node: self.config.profile.node.clone(), at_ms: self.wall_ms }
    }

    /// Frees a term of our own; the comparison makes sure that it is that term and no other.
    fn free(&mut self, now: Moment, name: &LeaseName, term: u64) {
        let change = self.change(term, ChangeKind::Freed);
        let Some(lease) = self.leases.get_mut(name) else { return };
        lease.stage = Stage::Freeing(term);
        lease.released = lease.released.max(term);
        let mut record = lease.record();
        record.holder = None;
        record.payload = None;
        record.successor = lease.successor.take();
        record.remember(change);
        let expect = lease.expect();
        let write = if self.config.planted.is(Mutant::LeaseDeleted) {
            Write::Delete(keys::lease(name))
        } else {
            self.put(keys::lease(name), expect, record.bytes(), true)
        };
        let purpose = Purpose::Free(name.clone(), term, record);
        self.send(now, Lane::Change, vec![write], Vec::new(), purpose);
    }

    fn touch(&mut self, now: Moment, name: &LeaseName) {
        let Some(lease) = self.leases.get_mut(name) else { return };
        lease.stage = Stage::Taking;
        let mut record = lease.record();
        record.holder = None;
        let expect = lease.expect();
        let put = self.put(keys::lease(name), expect, record.bytes(), false);
        let purpose = Purpose::Touch(name.clone(), record);
        self.send(now, Lane::Change, vec![put], Vec::new(), purpose);
    }

    /// This member holds the lease from now on.
    pub(super) fn elect(&mut self, now: Moment, name: &LeaseName, term: u64) {
        let Some(member) = self.own_id().cloned() else { return };
        let Some(lease) = self.leases.get_mut(name) else { return };
        lease.stage = Stage::Held(term);
        lease.unsettled = None;
        lease.conflicts.reset();
        self.index.reread_intents();
        if *name == LeaseName::leader() {
            self.leader = Some(Leader::new(term));
            self.placing = Some(Placing::new(term));
        } else {
            self.running.insert(name.clone(), (member.clone(), term));
        }
        self.say(Event::Elected { lease: name.clone(), term, member });
        self.duty_changed(now, name);
    }
}

fn look_or_wait(lease: &Lease, now: Moment) -> Move {
    if now >= lease.look_at { Move::Look } else { Move::Wait(lease.look_at) }
}
