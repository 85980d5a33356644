//! Who is there and what is left behind: which members are to be closed, and which records are to
//! be deleted because nobody will need them any more.
//!
//! The leader of the cluster keeps one. Where nobody leads it, everybody sweeps now and then
//! (`sweep.rs`), by the same rules.

use std::collections::{BTreeMap, BTreeSet};

use crate::keys;
use crate::mutant::{Mutant, Planted};
use crate::names::{LeaseName, MemberId};
use crate::records::{Ask, Content, Intent, IntentState, LeaseRecord, MemberRecord, MemberState};
use crate::settings::Timing;
use crate::store::{Expect, Found, Key, Read, Record, Version};
use crate::time::Moment;

/// How many closings and deletions are sent at once.
const MOST_WRITES: usize = 100;

/// How many leases are looked at together, to see whether a term is over.
const MOST_LEASES: usize = 32;

/// A write that is wanted; the node stamps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WantedWrite {
    /// This content, if what is there is as expected.
    Put(Key, Expect, Vec<u8>),
    /// Nothing.
    Delete(Key),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Census {
    members: BTreeMap<MemberId, Listed>,
    /// Closed members that have nothing but their member record any more. That goes last: it is
    /// the only way to the others.
    cleared: BTreeSet<MemberId>,
    /// Those whose other records are being deleted.
    clearing: Vec<MemberId>,
    /// Intents that are done with, and when they may be deleted.
    finished: BTreeMap<Key, Moment>,
    /// Open requests to resign: of which term of which lease, and when to see whether it is over.
    requests: BTreeMap<Key, (LeaseName, u64, Moment)>,
    /// The requests whose leases are being read.
    asked: Vec<Key>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Listed {
    record: MemberRecord,
    version: Version,
    /// When the first reply arrived that showed this version.
    received: Moment,
    /// Since when it isn't there any more.
    gone: Option<Moment>,
}

/// What a listing of the members showed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct News {
    /// How much is not as it was.
    pub(crate) changes: u64,
    /// How much of that makes plans wrong.
    pub(crate) upsets: u64,
    /// A profile is new, or has changed.
    pub(crate) profiles: bool,
}

impl Census {
    pub(crate) fn members(&self) -> impl Iterator<Item = (&MemberId, &MemberRecord)> {
        self.members.iter().map(|(id, seen)| (id, &seen.record))
    }

    pub(crate) fn member(&self, id: &MemberId) -> Option<(&MemberRecord, &Version)> {
        self.members.get(id).map(|seen| (&seen.record, &seen.version))
    }

    pub(crate) fn is_alive(&self, id: &MemberId) -> bool {
        self.members.get(id).is_some_and(|seen| seen.record.state == MemberState::Alive)
    }

    /// Whether a member is alive, and was heard of within its ttl as far as the listings tell.
    pub(crate) fn is_heard_of(&self, id: &MemberId, now: Moment) -> bool {
        let heard = |seen: &Listed| now.since(seen.received) < seen.record.ttl();
        self.is_alive(id) && self.members.get(id).is_some_and(heard)
    }

    /// When the first of the living expires, unless it is heard of.
    pub(crate) fn next_expiry(&self) -> Moment {
        let expires = |seen: &Listed| seen.gone.unwrap_or(seen.received) + seen.record.ttl();
        let alive = self.members.values().filter(|seen| seen.record.state == MemberState::Alive);
        alive.map(expires).min().unwrap_or(Moment::NEVER)
    }

    /// Whether something is left behind, which is to be deleted in its time.
    pub(crate) fn has_remains(&self) -> bool {
        let ended = |seen: &Listed| seen.record.state != MemberState::Alive;
        !self.finished.is_empty() || self.members.values().any(ended)
    }

    pub(crate) fn see_members(&mut self, now: Moment, records: &[Record]) -> News {
        let mut news = News::default();
        let mut there = BTreeSet::new();
        for stored in records {
            let known = keys::member_in(&stored.key).and_then(|id| self.members.get_key_value(&id));
            if let Some((id, seen)) = known
                && seen.version == stored.version
            {
                // Most were seen before, and a version says the same whenever it is read.
                there.insert(id.clone());
                continue;
            }
            // A record that is unreadable, or that of somebody else, stays as it is: it is neither
            // closed nor deleted.
            let Ok(record) = MemberRecord::read(stored) else { continue };
            there.insert(record.id.clone());
            let known = self.members.get(&record.id);
            let state = known.is_some_and(|seen| seen.record.state != record.state);
            let report = known.is_none_or(|seen| seen.record.report != record.report);
            news.changes += u64::from(state || report);
            news.upsets += u64::from(state);
            news.profiles |= known.is_none_or(|seen| seen.record.profile < record.profile);
            if known.is_none_or(|seen| seen.version != stored.version) {
                let version = stored.version.clone();
                if record.state == MemberState::Alive {
                    // A stale read: while it counts as alive, records are written for it.
                    self.cleared.remove(&record.id);
                }
                self.members.insert(
                    record.id.clone(),
                    Listed { record, version, received: now, gone: None },
                );
            }
        }
        let before = self.members.len();
        self.members.retain(|id, seen| {
            if there.contains(id) {
                seen.gone = None;
                return true;
            }
            // Nobody deletes a living member: the store forgot it, and it may trust for a while.
            let gone = *seen.gone.get_or_insert(now);
            seen.record.state == MemberState::Alive && now < gone + seen.record.ttl()
        });
        self.cleared.retain(|id| there.contains(id));
        let gone = u64::from(self.members.len() != before);
        News { changes: news.changes + gone, upsets: news.upsets + gone, ..news }
    }

    /// Takes in the intents; gives back those that are in force until they are taken back.
    pub(crate) fn see_intents(
        &mut self,
        now: Moment,
        records: &[Record],
        timing: &Timing,
    ) -> BTreeMap<Key, (Version, Intent)> {
        let there: BTreeSet<&Key> = records.iter().map(|stored| &stored.key).collect();
        self.finished.retain(|key, _| there.contains(key));
        self.requests.retain(|key, _| there.contains(key));
        let mut intents = BTreeMap::new();
        for stored in records {
            let Ok(intent) = Intent::read(stored) else { continue };
            let key = stored.key.clone();
            if intent.state != IntentState::Open {
                self.requests.remove(&key);
                self.finished.entry(key).or_insert(now + timing.visible);
            } else if let Ask::Resign { lease, term, .. } = &intent.ask {
                let request = || (LeaseName::reserved(lease), *term, now + timing.ttl);
                self.requests.entry(key).or_insert_with(request);
            } else {
                intents.insert(key, (stored.version.clone(), intent));
            }
        }
        intents
    }

    /// The leases of requests to resign that are open for a while.
    pub(crate) fn lease_reads(&mut self, now: Moment, timing: &Timing) -> Vec<Read> {
        self.asked.clear();
        let due = self.requests.iter_mut().filter(|(_, (_, _, at))| now >= *at);
        let mut reads = Vec::new();
        for (key, (lease, _, at)) in due.take(MOST_LEASES) {
            *at = now + timing.ttl;
            self.asked.push(key.clone());
            reads.push(Read::Key { key: keys::lease(lease), unless: None });
        }
        reads
    }

    /// Takes in these leases: a request whose term is over is done with.
    pub(crate) fn see_leases<'a>(
        &mut self,
        now: Moment,
        found: impl Iterator<Item = &'a Found>,
        planted: Planted,
    ) {
        for (key, found) in std::mem::take(&mut self.asked).into_iter().zip(found) {
            let Some((_, term, _)) = self.requests.get(&key) else { continue };
            let over = match found {
                Found::Record(stored) => LeaseRecord::read(stored).is_ok_and(|lease| {
                    lease.term > *term || (lease.term == *term && lease.holder.is_none())
                }),
                Found::Absent => true,
                Found::Unchanged | Found::Records(_) => false,
            };
            if over && !planted.is(Mutant::RemainsForgotten) {
                self.requests.remove(&key);
                self.finished.insert(key, now);
            }
        }
    }

    /// Decides what to close and what to delete.
    pub(crate) fn review(
        &mut self,
        now: Moment,
        timing: &Timing,
        planted: Planted,
    ) -> Vec<WantedWrite> {
        let mut writes = Vec::new();
        self.clearing.clear();
        for (id, seen) in &self.members {
            if writes.len() >= MOST_WRITES {
                break;
            }
            let ttl = seen.record.ttl();
            let quiet = now.since(seen.received);
            match seen.record.state {
                MemberState::Alive if planted.is(Mutant::AliveDeleted) && quiet > ttl / 3 => {
                    writes.push(WantedWrite::Delete(keys::member(id)));
                }
                MemberState::Alive if seen.gone.is_some() => {}
                MemberState::Alive if quiet >= ttl => {
                    let closed = seen.record.closed(MemberState::Expired);
                    let expect = Expect::Version(seen.version.clone());
                    writes.push(WantedWrite::Put(keys::member(id), expect, closed.bytes()));
                }
                MemberState::Left | MemberState::Expired if quiet >= timing.visible => {
                    delete(&mut writes, &self.cleared, &mut self.clearing, id);
                }
                // Deleted only after being watched for its ttl, or a watcher that comes later
                // would conclude too early.
                MemberState::Evicted
                    if quiet >= timing.visible.max(ttl)
                        || planted.is(Mutant::EvictedDeletedEarly) =>
                {
                    delete(&mut writes, &self.cleared, &mut self.clearing, id);
                }
                MemberState::Alive
                | MemberState::Left
                | MemberState::Expired
                | MemberState::Evicted => {}
            }
        }
        let room = MOST_WRITES.saturating_sub(writes.len());
        let over = self.finished.iter().filter(|(_, at)| now >= **at);
        writes.extend(over.take(room).map(|(key, _)| WantedWrite::Delete(key.clone())));
        writes
    }

    /// Takes in whether the writes were answered. What became of each shows in the next listing.
    pub(crate) fn wrote(&mut self, answered: bool) {
        let clearing = std::mem::take(&mut self.clearing);
        if answered {
            self.cleared.extend(clearing);
        }
    }
}

fn delete(
    writes: &mut Vec<WantedWrite>,
    cleared: &BTreeSet<MemberId>,
    clearing: &mut Vec<MemberId>,
    id: &MemberId,
) {
    writes.push(WantedWrite::Delete(keys::profile(id)));
    writes.push(WantedWrite::Delete(keys::roster(id)));
    writes.push(WantedWrite::Delete(keys::report(id)));
    if cleared.contains(id) {
        // The others once more: what was on its way to them may have landed since.
        writes.push(WantedWrite::Delete(keys::member(id)));
    } else {
        clearing.push(id.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_vanishes_counts_as_alive_for_its_ttl() {
        let at = |millis: u64| Moment::from_nanos(millis * 1_000_000);
        let id = MemberId::new("m");
        let ttl = std::time::Duration::from_secs(15);
        let record = MemberRecord::joining(id.clone(), ttl, ttl / 3);
        let stored = |record: &MemberRecord| Record {
            key: keys::member(&id),
            value: record.bytes(),
            version: Version::new(record.state.as_str()),
            age: None,
        };
        let mut census = Census::default();
        census.see_members(at(0), &[stored(&record)]);
        census.see_members(at(1_000), &[]);
        census.see_members(at(15_999), &[]);
        assert!(census.is_alive(&id), "it may still trust");
        assert_eq!(census.next_expiry(), at(16_000), "and isn't looked for all the time");
        let writes = census.review(at(15_999), &Timing::default(), Planted::default());
        assert_eq!(writes, [], "there is nothing to close");
        census.see_members(at(16_000), &[]);
        assert!(!census.is_alive(&id));
        // Who was closed is deleted in the end, and that is that.
        census.see_members(at(17_000), &[stored(&record.closed(MemberState::Expired))]);
        census.see_members(at(18_000), &[]);
        assert_eq!(census.members().count(), 0);
    }
}
