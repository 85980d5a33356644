//! A store that forgets, and what the nodes could know of what is lost.

use std::collections::BTreeSet;

use incumbent_core::records::{Content, LeaseRecord, MemberRecord, MemberState};
use incumbent_core::{LeaseName, MemberId, keys};

use crate::invariants::Forgotten;
use crate::process::Process;
use crate::scenario::{Extent, MILLI};
use crate::world::World;

impl World {
    /// The store loses records, or goes back to what it was so long ago.
    pub(crate) fn forget(&mut self, extent: Extent, back: Option<u64>) {
        let held = self.held();
        let acquainted = self.acquainted(&held);
        let prefixes: &[&str] = match extent {
            Extent::Everything => &[""],
            Extent::Leases => &["lease/"],
            Extent::Members => &["member/"],
        };
        let back_to = back.map(|ago| self.now.saturating_sub(ago));
        let changes = self.store.forget(self.now, prefixes, back_to);
        let there = self.leases_there();
        let is_there = |(lease, member): &(String, MemberId)| {
            there.iter().any(|record| {
                let holder = record.holder.as_ref().map(|holder| &holder.member);
                record.name == *lease && holder == Some(member)
            })
        };
        let torn = |held: &&(String, MemberId)| is_there(held) != self.is_alive(&held.1);
        let lasts = |held: &&(String, MemberId)| !is_there(held) && self.is_alive(&held.1);
        let forgotten = Forgotten {
            torn: held.iter().filter(torn).map(|(lease, _)| lease.clone()).collect(),
            lasting: held.iter().filter(lasts).map(|(lease, _)| lease.clone()).collect(),
            terms: there.into_iter().map(|record| (record.name, record.term)).collect(),
            acquainted,
            changes,
            at: self.now,
            until: self.now + self.scenario.longest_ttl() * 11 / 10 + 1000 * MILLI,
        };
        self.checks.tell(|check| check.forgot(&forgotten));
    }

    fn leases_there(&self) -> Vec<LeaseRecord> {
        let stored = self.store.records_below(&keys::leases());
        stored.iter().filter_map(|stored| LeaseRecord::read(stored).ok()).collect()
    }

    /// Which lease is held by which member that is alive.
    fn held(&self) -> Vec<(String, MemberId)> {
        let holder = |record: LeaseRecord| Some((record.name, record.holder?.member));
        let held = self.leases_there().into_iter().filter_map(holder);
        held.filter(|(_, member)| self.is_alive(member)).collect()
    }

    fn is_alive(&self, member: &MemberId) -> bool {
        self.store
            .record(&keys::member(member))
            .and_then(|stored| MemberRecord::read(&stored).ok())
            .is_some_and(|record| record.state == MemberState::Alive)
    }

    /// Which node has seen the holder of a lease alive, or is it.
    fn acquainted(&self, held: &[(String, MemberId)]) -> BTreeSet<(usize, String, MemberId)> {
        let mut acquainted = BTreeSet::new();
        for (lease, member) in held {
            let leases = self.watched.iter().cloned().chain([LeaseName::leader()]);
            let Some(name) = leases.into_iter().find(|name| name.as_str() == lease) else {
                continue;
            };
            let met = |process: &Process| {
                let rival = process.core.as_ref().and_then(|core| core.rival(&name));
                let rival = rival.filter(|(_, until)| until.is_some());
                let holder = rival.and_then(|(record, _)| record.holder.as_ref());
                holder.map(|holder| &holder.member).or(process.member()) == Some(member)
            };
            let nodes = self.processes.iter().enumerate().filter(|(_, process)| met(process));
            acquainted.extend(nodes.map(|(node, _)| (node, lease.clone(), member.clone())));
        }
        acquainted
    }
}
