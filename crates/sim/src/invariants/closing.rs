//! 3. No trust outlives closing (Left, Expired), or closing + ttl (Evicted); where the store forgot
//!    the member, if who closed it had seen it alive. And nothing is written as if a crash of the
//!    store might take it back but what ends trust that was over, or frees a lease.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use incumbent_core::MemberId;
use incumbent_core::records::{LeaseRecord, MemberRecord, MemberState};

use super::knowledge::{Forgotten, Knowledge};
use super::{Invariant, Landing, Step, Verdict};
use crate::process::Process;
use crate::store::Applied;

/// How a member was closed, and from which instant on it may trust no more.
type Closed = (MemberState, u64);

#[derive(Default)]
pub(super) struct Closing {
    /// From which instant on no trust is allowed.
    closed: BTreeMap<MemberId, Closed>,
    knowledge: Knowledge,
    /// Members that were closed by one that couldn't know better, after the store forgot them.
    excused: BTreeSet<MemberId>,
    /// The present member of each process, as long as nothing changes about `closed`.
    members: Vec<Option<MemberId>>,
    /// Which processes have a present member that was closed.
    suspects: Vec<(usize, MemberId, Closed)>,
}

impl Closing {
    /// Notes whose present members were closed. That is asked whenever anything happens, and changes
    /// only when a member is closed, or when the process that did something has become another.
    fn suspect(&mut self, node: usize, processes: &[Process]) {
        let present = processes.get(node).and_then(Process::member);
        let known = self.members.get(node);
        if known.is_some_and(|known| known.as_ref() == present) {
            return;
        }
        self.members = processes.iter().map(|process| process.member().cloned()).collect();
        let suspect = |(at, id): (usize, &Option<MemberId>)| {
            let id = id.as_ref()?;
            Some((at, id.clone(), *self.closed.get(id)?))
        };
        self.suspects = self.members.iter().enumerate().filter_map(suspect).collect();
    }
}

/// Whether nothing but time is lost with it.
fn may_be_lost(change: &Applied) -> bool {
    if change.key.as_str().starts_with("lease/") {
        return change.after::<LeaseRecord>().is_some_and(|record| record.holder.is_none());
    }
    let ended =
        |record: Rc<MemberRecord>| matches!(record.state, MemberState::Left | MemberState::Expired);
    change.key.as_str().starts_with("member/") && change.after().is_some_and(ended)
}

impl Invariant for Closing {
    fn started(&mut self, node: usize) {
        self.knowledge.started(node);
    }

    fn forgot(&mut self, forgotten: &Forgotten) {
        self.knowledge.forgot(forgotten);
        // An eviction that the store went back behind is undone: the member may beat on, until those
        // who saw it evicted delete it.
        for change in &forgotten.changes {
            let record = change.after::<MemberRecord>();
            let Some(record) = record.filter(|record| record.state == MemberState::Alive) else {
                continue;
            };
            let evicted = |(state, _): &(MemberState, u64)| *state == MemberState::Evicted;
            if self.closed.get(&record.id).is_some_and(evicted) {
                self.closed.remove(&record.id);
                self.members.clear();
                self.excused.insert(record.id.clone());
            }
        }
    }

    fn applied(&mut self, Landing { now, change, sender, .. }: Landing<'_>) -> Verdict {
        if !change.durable && !may_be_lost(change) {
            return Err(format!("{} was written as if a crash might take it back", change.key));
        }
        if !change.key.as_str().starts_with("member/") {
            return Ok(());
        }
        let (before, after) = (change.before::<MemberRecord>(), change.after::<MemberRecord>());
        if let Some(before) = &before
            && before.state != MemberState::Alive
            && after.as_ref().is_some_and(|after| after.state == MemberState::Alive)
        {
            return Err(format!("{} came back after it was {}", before.id, before.state.as_str()));
        }
        if let (Some(before), None) = (&before, &after)
            && before.state == MemberState::Alive
            && !self.closed.contains_key(&before.id)
            && !self.excused.contains(&before.id)
        {
            return Err(format!("{} was deleted while alive", before.id));
        }
        if sender.is_some_and(|sender| self.knowledge.excuses(now, change, sender.node)) {
            self.excused.extend(after.map(|record| record.id.clone()));
            return Ok(());
        }
        if let Some(after) = after {
            let from = match after.state {
                MemberState::Alive => return Ok(()),
                MemberState::Left | MemberState::Expired => now,
                MemberState::Evicted => now + after.ttl_ms * 1_000_000,
            };
            let entry = self.closed.entry(after.id.clone()).or_insert((after.state, from));
            entry.1 = entry.1.min(from);
            self.members.clear();
        }
        Ok(())
    }

    fn stepped(&mut self, Step { now, node, processes, .. }: Step<'_>) -> Verdict {
        self.suspect(node, processes);
        for (at, id, (state, from)) in &self.suspects {
            let Some(process) = processes.get(*at) else { continue };
            if now >= *from && process.clock.at(now) < process.trusted_until() {
                return Err(format!(
                    "{} trusts as {id:?}, which was {}",
                    process.plan.name,
                    state.as_str()
                ));
            }
        }
        Ok(())
    }
}
