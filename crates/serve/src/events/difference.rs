//! What changed between two looks at a cluster.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::{Value, json};

use crate::documents::{ChangeDocument, LeaseDocument, MemberDocument, MoveDocument};
use crate::snapshot::Snapshot;

/// All of it, with the name of each event.
pub(super) fn between(old: &Snapshot, new: &Snapshot) -> Vec<(&'static str, Value)> {
    let mut events = Vec::new();
    members(old, new, &mut events);
    leases(old, new, &mut events);
    duties(old, new, &mut events);
    let moves = new.work.moves.iter().filter(|moved| !old.work.moves.contains(moved));
    events.extend(moves.map(|moved| ("move", value(&MoveDocument::from(moved)))));
    if old.work.intents != new.work.intents {
        events.push(("intents", json!({ "intents": new.intent_documents() })));
    }
    events
}

fn members(old: &Snapshot, new: &Snapshot, events: &mut Vec<(&'static str, Value)>) {
    let known: HashMap<String, MemberDocument> =
        old.member_documents().into_iter().map(|member| (member.id.clone(), member)).collect();
    let now = new.member_documents();
    for member in &now {
        let change = match known.get(&member.id) {
            None => "joined",
            Some(known) if known.state != member.state => member.state,
            Some(known) if ageless(known) != ageless(member) => "changed",
            Some(_) => continue,
        };
        events.push(("member", with(value(member), "change", change.into())));
    }
    let there: std::collections::HashSet<&str> =
        now.iter().map(|member| member.id.as_str()).collect();
    for member in known.values().filter(|known| !there.contains(known.id.as_str())) {
        events.push(("member", with(value(member), "change", "gone".into())));
    }
}

fn leases(old: &Snapshot, new: &Snapshot, events: &mut Vec<(&'static str, Value)>) {
    let known: HashMap<&str, &incumbent::LeaseState> =
        old.leases.iter().map(|state| (state.lease.as_str(), state)).collect();
    for state in &new.leases {
        let known = known.get(state.lease.as_str()).copied();
        let document = LeaseDocument::from(state);
        let before = known.map(LeaseDocument::from);
        if before.as_ref().map(ageless) == Some(ageless(&document)) {
            continue;
        }
        let told = known.map_or(&[][..], |known| &known.changes);
        let fresh: Vec<_> = state.changes.iter().filter(|it| !told.contains(it)).collect();
        let document = value(&document);
        // A holder that was closed by others leaves no change before the next one takes the lease.
        if fresh.is_empty() {
            events.push(("lease", with(document.clone(), "change", Value::Null)));
        }
        for change in fresh {
            let change = value(&ChangeDocument::from(change));
            events.push(("lease", with(document.clone(), "change", change)));
        }
    }
}

fn duties(old: &Snapshot, new: &Snapshot, events: &mut Vec<(&'static str, Value)>) {
    let known: HashMap<&str, &incumbent::DutyStanding> =
        old.work.duties.iter().map(|duty| (duty.id.as_str(), duty)).collect();
    for duty in &new.work.duties {
        if known.get(duty.id.as_str()).copied() != Some(duty) {
            events.push(("duty", value(&crate::documents::DutyDocument::from(duty))));
        }
    }
    let now: std::collections::HashSet<&str> =
        new.work.duties.iter().map(|duty| duty.id.as_str()).collect();
    for duty in &old.work.duties {
        if !now.contains(duty.id.as_str()) {
            events.push(("duty-gone", json!({ "duty": duty.id.as_str() })));
        }
    }
}

fn value<T: Serialize>(document: &T) -> Value {
    serde_json::to_value(document).unwrap_or_default()
}

fn with(mut document: Value, field: &str, value: Value) -> Value {
    if let Some(fields) = document.as_object_mut() {
        fields.insert(field.to_owned(), value);
    }
    document
}

/// Without what changes with every beat.
fn ageless<T: Serialize>(document: &T) -> Value {
    let mut value = value(document);
    let strip = |value: &mut Value| {
        if let Some(fields) = value.as_object_mut() {
            fields.remove("age_ms");
        }
    };
    strip(&mut value);
    if let Some(leader) = value.get_mut("leader") {
        strip(leader);
    }
    value
}
