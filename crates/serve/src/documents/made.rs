//! Documents made of what the library says.

use std::collections::BTreeSet;
use std::time::Duration;

use incumbent::{
    Ask, Change, DutyCondition, DutyStanding, Intent, IntentState, Leader, LeaseState, Member,
    Moved, Preview, Unreadable,
};

use crate::cursor::Cursor;

use super::{
    ChangeDocument, DutyDocument, HostDocument, IntentDocument, LeaderDocument, LeaseDocument,
    MemberDocument, MoveDocument, PinDocument, PlanDocument, UnplacedDocument, UnreadableDocument,
};

/// Whole milliseconds.
pub(crate) fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

impl From<&LeaseState> for LeaseDocument {
    fn from(state: &LeaseState) -> Self {
        Self {
            lease: state.lease.clone(),
            term: state.term,
            cursor: Cursor::of(state).to_string(),
            leader: state.leader.as_ref().map(LeaderDocument::from),
            changes: state.changes.iter().map(ChangeDocument::from).collect(),
            unreadable: state.unreadable.as_ref().map(UnreadableDocument::from),
        }
    }
}

impl From<&Unreadable> for UnreadableDocument {
    fn from(unreadable: &Unreadable) -> Self {
        Self { key: unreadable.key.clone(), reason: unreadable.reason.clone() }
    }
}

impl From<&Leader> for LeaderDocument {
    fn from(leader: &Leader) -> Self {
        Self {
            node: leader.node.clone(),
            member: leader.member.as_str().to_owned(),
            address: leader.address.clone(),
            term: leader.term,
            payload: leader.payload.clone(),
            since_ms: leader.since_ms,
            state: leader.state.as_str(),
            overdue: leader.is_overdue(),
            ttl_ms: millis(leader.ttl),
            age_ms: leader.age.map(millis),
        }
    }
}

impl From<&Change> for ChangeDocument {
    fn from(change: &Change) -> Self {
        let Change { term, kind, node, at_ms } = change;
        Self { term: *term, kind: kind.as_str(), node: node.clone(), at_ms: *at_ms }
    }
}

impl From<&Moved> for MoveDocument {
    fn from(moved: &Moved) -> Self {
        Self {
            duty: moved.duty.as_str().to_owned(),
            from: moved.from.clone(),
            to: moved.to.clone(),
            why: moved.why.clone(),
            at_ms: Some(moved.at_ms),
        }
    }
}

impl MemberDocument {
    pub(crate) fn new(member: &Member, duties: usize, load: u64, wished: &[&Ask]) -> Self {
        let of_node = |node: &String| *node == member.node;
        let cordon = |wish: &&&Ask| matches!(wish, Ask::Cordon { node } if of_node(node));
        let drain = |wish: &&&Ask| matches!(wish, Ask::Drain { node } if of_node(node));
        let families = member.families.iter();
        let versions = |versions: &BTreeSet<String>| versions.iter().cloned().collect();
        Self {
            id: member.id.as_str().to_owned(),
            node: member.node.clone(),
            state: member.state.as_str(),
            overdue: member.is_overdue(),
            address: member.address.clone(),
            labels: member.labels.clone(),
            joined_ms: member.joined_ms,
            ttl_ms: member.ttl.map(millis),
            age_ms: member.age.map(millis),
            host: member.host.as_ref().map(|host| HostDocument {
                host: host.host.clone(),
                boot: Some(host.boot.clone()).filter(|boot| !boot.is_empty()),
                pid: host.pid,
            }),
            families: families.map(|(name, it)| (name.clone(), versions(it))).collect(),
            capacity: member.capacity,
            max_duties: member.max_duties,
            cordoned: wished.iter().any(|wish| cordon(&wish)),
            drained: wished.iter().any(|wish| drain(&wish)),
            duties,
            load,
        }
    }
}

impl From<&DutyStanding> for DutyDocument {
    fn from(duty: &DutyStanding) -> Self {
        let (reason, error, failures) = match &duty.condition {
            DutyCondition::Unassigned(reason) => (Some(reason.clone()), None, None),
            DutyCondition::Failing { error, times, .. } => {
                (None, Some(error.clone()), Some(*times))
            }
            _ => (None, None, None),
        };
        Self {
            duty: duty.id.as_str().to_owned(),
            family: duty.id.family().to_owned(),
            name: duty.id.name().to_owned(),
            state: duty.condition.as_str(),
            reason,
            error,
            failures,
            node: duty.node.clone(),
            member: duty.member.as_ref().map(|member| member.as_str().to_owned()),
            address: duty.address.clone(),
            term: duty.term,
            version: duty.version.clone(),
            progress: duty.progress.clone(),
            weight: duty.weight,
            pinned: duty
                .pinned
                .as_ref()
                .map(|pinned| PinDocument { node: pinned.node.clone(), required: pinned.required }),
        }
    }
}

impl From<&Intent> for IntentDocument {
    fn from(intent: &Intent) -> Self {
        let (mut lease, mut term, mut duty, mut node) = (None, None, None, None);
        let (mut family, mut version) = (None, None);
        let kind = match &intent.ask {
            Ask::Resign { lease: it, term: of, .. } => {
                (lease, term) = (Some(it.clone()), Some(*of));
                "resign"
            }
            Ask::Pin { duty: it, node: on, .. } => {
                (duty, node) = (Some(it.clone()), Some(on.clone()));
                "pin"
            }
            Ask::Move { duty: it, node: to } => {
                (duty, node) = (Some(it.clone()), Some(to.clone()));
                "move"
            }
            Ask::Pause { duty: it } => {
                duty = Some(it.clone());
                "pause"
            }
            Ask::Cordon { node: it } => {
                node = Some(it.clone());
                "cordon"
            }
            Ask::Drain { node: it } => {
                node = Some(it.clone());
                "drain"
            }
            Ask::Freeze => "freeze",
            Ask::Hold { family: it } => {
                family = Some(it.clone());
                "hold"
            }
            Ask::Canary { family: it, .. } => {
                family = Some(it.clone());
                "canary"
            }
            Ask::Promote { family: it, version: of } => {
                (family, version) = (Some(it.clone()), Some(of.clone()));
                "promote"
            }
            Ask::Abort { family: it, version: of } => {
                (family, version) = (Some(it.clone()), Some(of.clone()));
                "abort"
            }
        };
        let state = match intent.state {
            IntentState::Open => "open",
            IntentState::Done => "done",
            IntentState::Obsolete => "obsolete",
        };
        let (id, by, at_ms) = (intent.id.clone(), intent.by.clone(), intent.at_ms);
        Self { id, kind, state, duty, node, family, version, lease, term, by, at_ms }
    }
}

impl From<Preview> for PlanDocument {
    fn from(preview: Preview) -> Self {
        let moves = preview.moves.into_iter().map(|step| MoveDocument {
            duty: step.duty.as_str().to_owned(),
            from: step.from,
            to: step.to,
            why: step.why,
            at_ms: None,
        });
        let unplaced = preview
            .unplaced
            .into_iter()
            .map(|(duty, reason)| UnplacedDocument { duty: duty.as_str().to_owned(), reason });
        Self { moves: moves.collect(), unplaced: unplaced.collect(), unknown: preview.unknown }
    }
}
