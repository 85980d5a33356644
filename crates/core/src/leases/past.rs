//! What a node has seen, handed on to the next one of its process.

use std::collections::BTreeMap;

use super::losses::MOST_MEMORIES;
use super::{Lease, LeaseName, Leases, MemberId, Memory, Moment, Watch};

/// What a node has seen that a store can't go back behind: terms, who held them, and what the store
/// has forgotten of late. It means something to nodes of the same process and cluster alone, because
/// it holds moments of this clock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Past {
    memories: BTreeMap<LeaseName, Memory>,
    /// Of those that held these leases last.
    watches: BTreeMap<MemberId, Watch>,
    highest_term: u64,
    first_term: u64,
    lost_until: Moment,
}

impl Leases {
    /// What was seen so far, of so many leases at most.
    pub(crate) fn past(&self) -> Past {
        let mut memories = self.memories.clone();
        let seen = |lease: &&Lease| lease.memory.highest > 0;
        let wanted: Vec<&Lease> =
            self.leases.values().map(Box::as_ref).filter(seen).take(MOST_MEMORIES).collect();
        while memories.len() + wanted.len() > MOST_MEMORIES && memories.pop_first().is_some() {}
        memories.extend(wanted.into_iter().map(|lease| (lease.name.clone(), lease.memory.clone())));
        let holders = memories.values().filter_map(|memory| memory.holder.as_ref());
        let watch = |holder: &MemberId| Some((holder.clone(), self.watches.get(holder)?.settled()));
        Past {
            watches: holders.filter_map(watch).collect(),
            memories,
            highest_term: self.highest_term,
            first_term: self.first_term,
            lost_until: self.lost_until,
        }
    }

    /// Takes in what another node of this process has seen.
    pub(crate) fn recall(&mut self, past: Past) {
        for (name, memory) in past.memories {
            match self.leases.get_mut(&name) {
                Some(lease) => lease.memory = memory,
                None => drop(self.memories.insert(name, memory)),
            }
        }
        self.watches.extend(past.watches);
        self.highest_term = past.highest_term;
        self.first_term = past.first_term;
        self.lost_until = past.lost_until;
    }
}
