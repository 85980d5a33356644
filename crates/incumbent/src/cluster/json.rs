//! What is known of a cluster as JSON. The names of fields are those of docs/cli.md, and stable.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use incumbent_core::MemberId;
use incumbent_core::records::{HostIdentity, MemberState};
use serde::{Serialize, Serializer};

use super::{DutyCondition, DutyStanding, Leader, Pinned};
use crate::node::member::Member;

#[derive(Serialize)]
struct LeaderJson<'a> {
    node: &'a str,
    member: &'a MemberId,
    address: Option<&'a str>,
    term: u64,
    payload: Option<&'a str>,
    since_ms: Option<u64>,
    state: MemberState,
    overdue: bool,
    ttl_ms: u64,
    age_ms: Option<u64>,
}

impl Serialize for Leader {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let shown = LeaderJson {
            node: &self.node,
            member: &self.member,
            address: self.address.as_deref(),
            term: self.term,
            payload: self.payload.as_deref(),
            since_ms: self.since_ms,
            state: self.state,
            overdue: self.is_overdue(),
            ttl_ms: millis(self.ttl),
            age_ms: self.age.map(millis),
        };
        shown.serialize(serializer)
    }
}

#[derive(Serialize)]
struct MemberJson<'a> {
    id: &'a MemberId,
    node: &'a str,
    state: MemberState,
    overdue: bool,
    address: Option<&'a str>,
    labels: &'a BTreeMap<String, String>,
    joined_ms: u64,
    ttl_ms: Option<u64>,
    age_ms: Option<u64>,
    host: Option<HostJson<'a>>,
    families: &'a BTreeMap<String, BTreeSet<String>>,
    capacity: Option<u64>,
    max_duties: Option<u32>,
}

/// What proves the death of the process is nobody's business.
#[derive(Serialize)]
struct HostJson<'a> {
    host: &'a str,
    boot: &'a str,
    pid: u32,
}

impl Serialize for Member {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        fn host(it: &HostIdentity) -> HostJson<'_> {
            let HostIdentity { host, boot, pid, .. } = it;
            HostJson { host, boot, pid: *pid }
        }
        let shown = MemberJson {
            id: &self.id,
            node: &self.node,
            state: self.state,
            overdue: self.is_overdue(),
            address: self.address.as_deref(),
            labels: &self.labels,
            joined_ms: self.joined_ms,
            ttl_ms: self.ttl.map(millis),
            age_ms: self.age.map(millis),
            host: self.host.as_ref().map(host),
            families: &self.families,
            capacity: self.capacity,
            max_duties: self.max_duties,
        };
        shown.serialize(serializer)
    }
}

#[derive(Serialize)]
struct DutyJson<'a> {
    duty: &'a str,
    family: &'a str,
    name: &'a str,
    state: &'static str,
    reason: Option<&'a str>,
    error: Option<&'a str>,
    failures: Option<u32>,
    node: Option<&'a str>,
    member: Option<&'a MemberId>,
    address: Option<&'a str>,
    term: u64,
    version: Option<&'a str>,
    progress: Option<&'a str>,
    weight: u64,
    pinned: Option<&'a Pinned>,
}

impl Serialize for DutyStanding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (reason, error, failures) = match &self.condition {
            DutyCondition::Unassigned(reason) => (Some(reason.as_str()), None, None),
            DutyCondition::Failing { error, times, .. } => {
                (None, Some(error.as_str()), Some(*times))
            }
            DutyCondition::Assigning
            | DutyCondition::Active
            | DutyCondition::Revoking
            | DutyCondition::Paused
            | DutyCondition::Done => (None, None, None),
        };
        let shown = DutyJson {
            duty: self.id.as_str(),
            family: self.id.family(),
            name: self.id.name(),
            state: self.condition.as_str(),
            reason,
            error,
            failures,
            node: self.node.as_deref(),
            member: self.member.as_ref(),
            address: self.address.as_deref(),
            term: self.term,
            version: self.version.as_deref(),
            progress: self.progress.as_deref(),
            weight: self.weight,
            pinned: self.pinned.as_ref(),
        };
        shown.serialize(serializer)
    }
}

/// Whether a member was not heard of for its ttl, by the store's clock.
pub(crate) fn is_overdue(state: MemberState, age: Option<Duration>, ttl: Option<Duration>) -> bool {
    state == MemberState::Alive && age.zip(ttl).is_some_and(|(age, ttl)| age > ttl)
}

/// Whole milliseconds.
fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
