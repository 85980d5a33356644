//! Reading leases and those that hold them.

use super::{
    Answered, ElectionEvent, Known, Lane, Lease, LeaseErrand, LeaseName, LeaseRecord, Leases,
    MemberId, Moment, Mutant, Owner, Purpose, Read, Stage, Watch, keys,
};
use crate::mutant::fault;
use crate::pace;
use crate::store::{ErrorKind, Found};

impl Leases {
    pub(super) fn look(&mut self, name: &LeaseName) {
        if let Some(lease) = self.leases.get_mut(name) {
            lease.looking = true;
            self.to_look.insert(name.clone());
        }
    }

    /// One request reads all leases that want a look, and each of their holders once.
    pub(super) fn send_looks(&mut self, now: Moment, owner: &mut Owner<'_>) {
        let looking = |purpose: &Purpose| matches!(purpose, Purpose::Lease(errand) if matches!(**errand, LeaseErrand::Look { .. }));
        if self.to_look.is_empty() || owner.outbox.awaits(looking) {
            return;
        }
        let to_look = std::mem::take(&mut self.to_look).into_iter();
        let to_look = to_look.filter(|name| self.leases.contains_key(name));
        let (covered, leases): (Vec<LeaseName>, Vec<LeaseName>) =
            to_look.partition(|name| self.is_covered(name, now, owner));
        let own = owner.own_id().cloned();
        let mut reads = Vec::with_capacity(leases.len() + 1);
        let mut holders: Vec<MemberId> = Vec::new();
        let mut counted = Vec::with_capacity(leases.len());
        for name in leases {
            let Some(lease) = self.leases.get_mut(&name) else { continue };
            lease.hinted = false;
            let watch = lease.holder().and_then(|holder| self.watches.get(holder));
            let freed = watch.and_then(Watch::freed).unwrap_or(0);
            let unless = lease.version().cloned();
            reads.push(Read::Key { key: keys::lease(&name), unless });
            counted.push((name, freed));
        }
        let leases = counted;
        for name in leases.iter().map(|(name, _)| name).chain(&covered) {
            let Some(lease) = self.leases.get(name) else { continue };
            let others = lease.awaited().filter(|holder| Some(*holder) != own.as_ref());
            holders.extend(others.cloned());
        }
        holders.sort();
        holders.dedup();
        for holder in &holders {
            let unless = self.watches.get(holder).and_then(|watch| watch.version().cloned());
            reads.push(Read::Key { key: keys::member(holder), unless });
        }
        let purpose = Purpose::from(LeaseErrand::Look { leases, covered, holders });
        owner.outbox.ask(now, Lane::Watch, reads, purpose);
    }

    /// Whether the holder's own record tells enough: it has freed nothing since the lease was read, no
    /// hint has come, and that is less than a ttl ago; or than a second, if its beat is overdue.
    fn is_covered(&self, name: &LeaseName, now: Moment, owner: &Owner<'_>) -> bool {
        let Some(lease) = self.leases.get(name) else { return false };
        let steady = lease.stage == Stage::Seeking
            && !lease.hinted
            && lease.loss.is_none()
            && lease.doubts.is_empty()
            && !owner.is_named_by(lease);
        steady && now < self.read_again_at(lease, owner) && self.has_freed_nothing(lease)
    }

    /// When a lease is read again whatever its holder says of itself.
    fn read_again_at(&self, lease: &Lease, owner: &Owner<'_>) -> Moment {
        let watch = lease.holder().and_then(|holder| self.watches.get(holder));
        let overdue = watch.is_none_or(Watch::is_overdue);
        // The look for the last beat of a ttl comes a little before that is over, or after.
        let after = if overdue { pace::LOOK } else { owner.config.timing.ttl * 9 / 10 };
        fault!(owner.config.planted, LeasesNotReadAgain => Moment::NEVER, lease.seen + after)
    }

    /// Whether the holder says that it has freed nothing since the lease was read.
    pub(super) fn has_freed_nothing(&self, lease: &Lease) -> bool {
        let watch = lease.holder().and_then(|holder| self.watches.get(holder));
        watch.and_then(Watch::freed).is_some_and(|freed| freed == lease.counted)
    }

    /// The holder of a lease was looked at, but not the lease.
    pub(super) fn heard(
        &mut self,
        now: Moment,
        name: &LeaseName,
        well: bool,
        owner: &mut Owner<'_>,
    ) {
        if !well {
            return self.looked_at(now, now, name, Err(ErrorKind::Unknown), owner);
        }
        let Some(lease) = self.leases.get(name) else { return };
        let news = !self.has_freed_nothing(lease);
        let latest = self.read_again_at(lease, owner) + owner.config.timing.ttl / 5;
        let Some(lease) = self.leases.get_mut(name) else { return };
        lease.looking = false;
        lease.failures.reset();
        let Some(watch) = lease.holder().and_then(|holder| self.watches.get_mut(holder)) else {
            lease.look_at = now;
            return self.arm(name, now);
        };
        self.sighted.insert(name.clone());
        if news || lease.hinted {
            return self.look(name);
        }
        let at = watch.look_at(now, owner.config.push, owner.random);
        lease.look_at = at.min(latest);
        self.arm(name, now);
    }

    pub(super) fn looked(
        &mut self,
        now: Moment,
        sent: Moment,
        leases: &[(LeaseName, u64)],
        holders: &[MemberId],
        answer: Answered<'_>,
        owner: &mut Owner<'_>,
    ) {
        let planted = owner.config.planted;
        if let Ok(reply) = answer {
            for (holder, found) in holders.iter().zip(reply.reads.iter().skip(leases.len())) {
                let watch = self.watches.entry(holder.clone()).or_insert_with(Watch::new);
                if let Some(unreadable) = watch.observe(sent, now, found, planted) {
                    owner.outbox.say(ElectionEvent::Unreadable(unreadable));
                }
            }
        }
        for (at, (name, freed)) in leases.iter().enumerate() {
            if let Some(lease) = self.leases.get_mut(name) {
                // What made it be read is still to be read if that failed, whatever its holder says (O63).
                lease.counted = if answer.is_ok() { *freed } else { 0 };
            }
            let found = answer.map(|reply| reply.reads.get(at));
            self.looked_at(now, sent, name, found, owner);
        }
        self.forget_watches();
    }

    fn looked_at(
        &mut self,
        now: Moment,
        sent: Moment,
        name: &LeaseName,
        found: Result<Option<&Found>, ErrorKind>,
        owner: &mut Owner<'_>,
    ) {
        let (own, ttl) = (owner.own_id().cloned(), owner.config.timing.ttl);
        let planted = owner.config.planted;
        let Some(lease) = self.leases.get_mut(name) else { return };
        lease.looking = false;
        let Ok(Some(found)) = found else {
            let at = now + lease.failures.pause(owner.random);
            lease.look_at = fault!(owner.config.planted, RetriesAtOnce => now, at);
            let at = lease.look_at;
            return self.arm(name, at);
        };
        lease.failures.reset();
        self.sighted.insert(name.clone());
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
        if holder != remembered {
            lease.counted = 0;
        }
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
                watch.look_at(now, owner.config.push, owner.random)
            }
            Some(_) | None if owner.config.push => now + owner.config.timing.beat,
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
            self.note_loss(now, owner);
        }
        if let Some(event) = event {
            owner.outbox.say(event);
        }
        self.arm(name, now);
    }

    /// Drops watches of members that no lease hangs from any more.
    fn forget_watches(&mut self) {
        // Each lease keeps two at most, so that half of them go, and going through them is rare.
        if self.watches.len() > self.leases.len() * 4 + 8 {
            let leases = &self.leases;
            self.watches.retain(|member, watch| {
                watch.closing
                    || leases.values().any(|lease| lease.awaited().any(|awaited| awaited == member))
            });
        }
    }
}
