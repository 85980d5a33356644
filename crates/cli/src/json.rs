//! Members and leases as JSON. The names of fields are documented in docs/cli.md and stable.

use std::time::Duration;

use incumbent::{Change, Leader, LeaseState, Member, MemberState, Moved, Unreadable};
use serde_json::{Value, json};

/// A member.
pub(crate) fn member(member: &Member) -> Value {
    json!({
        "id": member.id.as_str(),
        "node": member.node,
        "state": member.state.as_str(),
        "overdue": overdue(member.state, member.age, member.ttl),
        "address": member.address,
        "labels": member.labels,
        "joined_ms": member.joined_ms,
        "ttl_ms": member.ttl.map(millis),
        "age_ms": member.age.map(millis),
        "host": member.host.as_ref().map(|host| json!({
            "host": host.host,
            "boot": host.boot,
            "pid": host.pid,
        })),
        "families": member.families,
        "capacity": member.capacity,
        "max_duties": member.max_duties,
    })
}

/// A lease with its leader and its last changes.
pub(crate) fn lease(state: &LeaseState) -> Value {
    json!({
        "lease": state.lease,
        "term": state.term,
        "leader": state.leader.as_ref().map(leader),
        "changes": state.changes.iter().map(change).collect::<Vec<_>>(),
        "unreadable": state.unreadable.as_ref().map(unreadable),
    })
}

/// A record that can't be read.
pub(crate) fn unreadable(unreadable: &Unreadable) -> Value {
    json!({ "key": unreadable.key, "reason": unreadable.reason })
}

/// All of them.
pub(crate) fn unreadables(all: &[Unreadable]) -> Value {
    all.iter().map(unreadable).collect()
}

/// A leader.
pub(crate) fn leader(leader: &Leader) -> Value {
    json!({
        "node": leader.node,
        "member": leader.member.as_str(),
        "address": leader.address,
        "term": leader.term,
        "payload": leader.payload,
        "since_ms": leader.since_ms,
        "state": leader.state.as_str(),
        "overdue": overdue(leader.state, leader.age, Some(leader.ttl)),
        "ttl_ms": millis(leader.ttl),
        "age_ms": leader.age.map(millis),
    })
}

/// A change of hands.
pub(crate) fn change(change: &Change) -> Value {
    json!({
        "term": change.term,
        "kind": change.kind.as_str(),
        "node": change.node,
        "at_ms": change.at_ms,
    })
}

/// A move of a duty.
pub(crate) fn moved(moved: &Moved) -> Value {
    json!({
        "duty": moved.duty.as_str(),
        "from": moved.from,
        "to": moved.to,
        "why": moved.why,
        "at_ms": moved.at_ms,
    })
}

/// Whether a member was not heard of for its ttl, by the store's clock: it is probably gone, and
/// nobody who waits for it has noticed. For people alone, nothing is ever decided by it.
pub(crate) fn overdue(state: MemberState, age: Option<Duration>, ttl: Option<Duration>) -> bool {
    state == MemberState::Alive && age.zip(ttl).is_some_and(|(age, ttl)| age > ttl)
}

/// Whole milliseconds.
pub(crate) fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
