//! Making sense of records.

use std::collections::BTreeMap;

use incumbent_core::records::{
    Content, LeaseRecord, MemberRecord, MemberState, Profile, Unreadable,
};
use incumbent_core::store::{Exchange, Found, Key, Lane, Read, Record, StoreError};
use incumbent_core::{LeaseName, MemberId, keys};

use super::{Cluster, Leader, LeaseState};
use crate::error::ClusterError;
use crate::node::member::Member;

impl Cluster {
    pub(super) async fn read_lease(&self, name: &LeaseName) -> Result<LeaseState, ClusterError> {
        let Some(stored) = self.read_key(keys::lease(name)).await? else {
            return Ok(LeaseState::unheld(name.as_str()));
        };
        let record = LeaseRecord::read(&stored)?;
        let holder = match &record.holder {
            Some(holder) => self.read_key(keys::member(&holder.member)).await?,
            None => None,
        };
        let state = state(record, holder.as_ref());
        // Whoever asks for one lease must not take it for free because nobody knows.
        state.unreadable.clone().map_or(Ok(state), |unreadable| Err(unreadable.into()))
    }

    pub(super) async fn read_leases(&self) -> Result<Vec<LeaseState>, ClusterError> {
        // Leases first: a member that is read later is at least as new as what names it.
        let leases = self.read_prefix(keys::leases()).await?;
        let members = self.read_prefix(keys::members()).await?;
        let members: BTreeMap<&Key, &Record> =
            members.iter().map(|stored| (&stored.key, stored)).collect();
        let mut states = Vec::with_capacity(leases.len());
        let of_duty =
            |stored: &&Record| stored.key.as_str().starts_with(keys::duty_leases().as_str());
        for stored in leases.iter().filter(|stored| !of_duty(stored)) {
            states.push(match LeaseRecord::read(stored) {
                Ok(record) => {
                    let key = record.holder.as_ref().map(|holder| keys::member(&holder.member));
                    let holder = key.and_then(|key| members.get(&key).copied());
                    state(record, holder)
                }
                Err(unreadable) => {
                    let name = keys::name_in(&stored.key);
                    let name = name.unwrap_or_else(|| stored.key.as_str().to_owned());
                    LeaseState { unreadable: Some(unreadable), ..LeaseState::unheld(&name) }
                }
            });
        }
        states.sort_by(|one, other| one.lease.cmp(&other.lease));
        Ok(states)
    }

    pub(super) async fn read_members(&self) -> Result<Vec<Member>, ClusterError> {
        let reads = vec![Read::Prefix(keys::members()), Read::Prefix(keys::profiles())];
        let reply = self.exchange(Lane::Watch, Exchange { writes: Vec::new(), reads }).await?;
        let mut found = reply.reads.into_iter();
        let members = records(found.next())?;
        let profiles: BTreeMap<Key, Record> =
            records(found.next())?.into_iter().map(|stored| (stored.key.clone(), stored)).collect();
        let mut all = Vec::with_capacity(members.len());
        for stored in &members {
            let Ok(record) = MemberRecord::read(stored) else { continue };
            let profile = profiles.get(&keys::profile(&record.id));
            let profile = profile.and_then(|stored| Profile::read(stored).ok());
            all.push(Member::from_records(record, stored.age, profile));
        }
        all.sort_by(|one, other| (one.joined_ms, &one.id).cmp(&(other.joined_ms, &other.id)));
        Ok(all)
    }

    pub(super) async fn read_member(
        &self,
        lane: Lane,
        id: &MemberId,
    ) -> Result<Option<(MemberRecord, Record)>, ClusterError> {
        let Some(stored) = self.read_over(lane, keys::member(id)).await? else { return Ok(None) };
        Ok(Some((MemberRecord::read(&stored)?, stored)))
    }

    pub(crate) async fn read_key(&self, key: Key) -> Result<Option<Record>, ClusterError> {
        self.read_over(Lane::Watch, key).await
    }

    async fn read_over(&self, lane: Lane, key: Key) -> Result<Option<Record>, ClusterError> {
        let reads = vec![Read::Key { key, unless: None }];
        let reply = self.exchange(lane, Exchange { writes: Vec::new(), reads }).await?;
        match reply.reads.into_iter().next() {
            Some(Found::Record(record)) => Ok(Some(record)),
            Some(Found::Absent) => Ok(None),
            Some(Found::Unchanged | Found::Records(_)) | None => Err(nonsense().into()),
        }
    }

    pub(super) async fn read_prefix(&self, prefix: Key) -> Result<Vec<Record>, ClusterError> {
        let reads = vec![Read::Prefix(prefix)];
        let reply = self.exchange(Lane::Watch, Exchange { writes: Vec::new(), reads }).await?;
        records(reply.reads.into_iter().next())
    }
}

pub(super) fn records(found: Option<Found>) -> Result<Vec<Record>, ClusterError> {
    match found {
        Some(Found::Records(records)) => Ok(records),
        Some(Found::Absent | Found::Unchanged | Found::Record(_)) | None => Err(nonsense().into()),
    }
}

pub(super) fn nonsense() -> StoreError {
    StoreError::rejected("the store's answer doesn't fit the question: check it with the test kit")
}

/// What a lease's record and its holder's say together.
pub(super) fn state(record: LeaseRecord, holder: Option<&Record>) -> LeaseState {
    let member: Option<Result<(MemberRecord, &Record), Unreadable>> =
        holder.map(|stored| Ok((MemberRecord::read(stored)?, stored)));
    let (leader, unreadable) = match (&record.holder, member) {
        (Some(_), Some(Ok((member, stored)))) => {
            let holds = match member.state {
                MemberState::Alive | MemberState::Evicted => true,
                MemberState::Left | MemberState::Expired => false,
            };
            let leader = Leader::new(&record, member.state, member.ttl()).filter(|_| holds);
            (leader.map(|leader| Leader { age: stored.age, ..leader }), None)
        }
        (Some(_), Some(Err(unreadable))) => (None, Some(unreadable)),
        (Some(_), None) | (None, _) => (None, None),
    };
    let LeaseRecord { name, term, changes, .. } = record;
    LeaseState { lease: name, term, leader, changes, unreadable }
}
