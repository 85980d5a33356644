//! Reading leases and those that hold them.

use super::{
    Answered, ElectionEvent, Known, Lane, LeaseErrand, LeaseName, LeaseRecord, Leases, MemberId,
    Moment, Mutant, Owner, Purpose, Read, Watch, keys,
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
        let mut leases: Vec<LeaseName> = std::mem::take(&mut self.to_look).into_iter().collect();
        leases.retain(|name| self.leases.contains_key(name));
        let own = owner.own_id().cloned();
        let mut reads = Vec::with_capacity(leases.len() + 1);
        let mut holders: Vec<MemberId> = Vec::new();
        for name in &leases {
            let Some(lease) = self.leases.get_mut(name) else { continue };
            lease.hinted = false;
            let unless = lease.version().cloned();
            reads.push(Read::Key { key: keys::lease(&lease.name), unless });
            let others = lease.awaited().filter(|holder| Some(*holder) != own.as_ref());
            holders.extend(others.cloned());
        }
        holders.sort();
        holders.dedup();
        for holder in &holders {
            let unless = self.watches.get(holder).and_then(|watch| watch.version().cloned());
            reads.push(Read::Key { key: keys::member(holder), unless });
        }
        let purpose = Purpose::from(LeaseErrand::Look { leases, holders });
        owner.outbox.ask(now, Lane::Watch, reads, purpose);
    }

    pub(super) fn looked(
        &mut self,
        now: Moment,
        sent: Moment,
        leases: &[LeaseName],
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
        for (at, name) in leases.iter().enumerate() {
            let found = answer.map(|reply| reply.reads.get(at));
            self.looked_at(now, sent, name, found, owner);
        }
        self.forget_watches(leases.len());
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
    fn forget_watches(&mut self, looked: usize) {
        if self.watches.len() > looked * 2 + 8 {
            let leases = &self.leases;
            self.watches.retain(|member, watch| {
                watch.closing
                    || leases.values().any(|lease| lease.awaited().any(|awaited| awaited == member))
            });
        }
    }
}
