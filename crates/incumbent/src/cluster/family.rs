//! The leases of a family's duties, read again only where they changed.

use std::collections::{BTreeMap, BTreeSet};

use incumbent_core::records::{Content as _, LeaseRecord};
use incumbent_core::store::{Exchange, Found, Key, Lane, Read, Record};
use incumbent_core::{Moment, keys};

use super::reading::{nonsense, state};
use super::{Cluster, LeaseState};
use crate::driver::clock;
use crate::error::ClusterError;

/// The records of a family's leases and of those who hold them, as they were last seen.
pub(super) struct FamilyRecords {
    leases: BTreeMap<Key, Record>,
    members: BTreeMap<Key, Record>,
    /// When the last question was sent, and when the last that would have shown leases that are new.
    asked: Moment,
    listed: Moment,
}

impl FamilyRecords {
    /// Reads all of them.
    pub(super) async fn list(cluster: &Cluster, family: &str) -> Result<Self, ClusterError> {
        let now = clock::now();
        let leases = cluster.read_prefix(keys::family_leases(family)).await?;
        let leases = leases.into_iter().map(|record| (record.key.clone(), record)).collect();
        let mut all = Self { leases, members: BTreeMap::new(), asked: now, listed: now };
        all.complete(cluster).await?;
        Ok(all)
    }

    /// Asks about those that are known, and is told what has changed. Leases that are new aren't found.
    pub(super) async fn refresh(&mut self, cluster: &Cluster) -> Result<(), ClusterError> {
        let asked = clock::now();
        let question = |record: &Record| Read::Key {
            key: record.key.clone(),
            unless: Some(record.version.clone()),
        };
        let known = self.leases.values().chain(self.members.values());
        let reads = known.map(question).collect();
        let reply = cluster.exchange(Lane::Watch, Exchange { writes: Vec::new(), reads }).await?;
        let mut found = reply.reads.into_iter();
        let since = asked.since(self.asked);
        for records in [&mut self.leases, &mut self.members] {
            let keys: Vec<Key> = records.keys().cloned().collect();
            for (key, found) in keys.into_iter().zip(&mut found) {
                match found {
                    Found::Record(record) => drop(records.insert(key, record)),
                    Found::Absent => drop(records.remove(&key)),
                    Found::Unchanged => {
                        let age = records.get_mut(&key).and_then(|record| record.age.as_mut());
                        age.into_iter().for_each(|age| *age = age.saturating_add(since));
                    }
                    Found::Records(_) => return Err(nonsense().into()),
                }
            }
        }
        self.asked = asked;
        self.complete(cluster).await
    }

    /// When the question was sent that all the family's leases were the answer to.
    pub(super) fn listed(&self) -> Moment {
        self.listed
    }

    /// When the question was sent to which these are the answer.
    pub(super) fn asked(&self) -> Moment {
        self.asked
    }

    /// What the records say. One that can't be read is left out.
    pub(super) fn states(&self) -> Vec<LeaseState> {
        let stands = |record: LeaseRecord| {
            let member = holder(&record).and_then(|key| self.members.get(&key));
            state(record, member)
        };
        self.readable().map(stands).collect()
    }

    fn readable(&self) -> impl Iterator<Item = LeaseRecord> {
        self.leases.values().filter_map(|stored| LeaseRecord::read(stored).ok())
    }

    /// Reads the records of holders that are new, and forgets those of others. They are read after the
    /// leases: a member that is read later is at least as new as what names it.
    async fn complete(&mut self, cluster: &Cluster) -> Result<(), ClusterError> {
        let holders: BTreeSet<Key> = self.readable().filter_map(|record| holder(&record)).collect();
        self.members.retain(|key, _| holders.contains(key));
        let new = holders.into_iter().filter(|key| !self.members.contains_key(key));
        let new: Vec<Key> = new.collect();
        if new.is_empty() {
            return Ok(());
        }
        let reads = new.iter().map(|key| Read::Key { key: key.clone(), unless: None }).collect();
        let reply = cluster.exchange(Lane::Watch, Exchange { writes: Vec::new(), reads }).await?;
        for (key, found) in new.into_iter().zip(reply.reads) {
            match found {
                Found::Record(record) => drop(self.members.insert(key, record)),
                Found::Absent => {}
                Found::Unchanged | Found::Records(_) => return Err(nonsense().into()),
            }
        }
        Ok(())
    }
}

fn holder(record: &LeaseRecord) -> Option<Key> {
    Some(keys::member(&record.holder.as_ref()?.member))
}
