//! The rows of each part of the view.

use std::collections::BTreeMap;
use std::time::Duration;

use incumbent::{Ask, DutyCondition, DutyStanding, LeaseState, Member};
use ratatui::style::Style;

use crate::change::Item;
use crate::command::status::{Snapshot, of};
use crate::screen::widgets::{Text, dim};
use crate::span;
use crate::standing;
use crate::tone::Tone;
use crate::when;

/// A row and its style.
pub(super) type Row<const N: usize> = ([Text; N], Style);

/// A line about something that changed.
#[derive(Clone, Debug)]
pub(super) struct Told {
    /// The time of day.
    pub(super) at: String,
    /// What it is like.
    pub(super) tone: Tone,
    /// In words.
    pub(super) text: String,
}

/// The rows of each part, and a line about all there is, whether it is shown or not.
#[derive(Clone, Debug, Default)]
pub(super) struct Panes {
    pub(super) members: Vec<Row<8>>,
    pub(super) members_note: String,
    pub(super) leases: Vec<Row<6>>,
    pub(super) leases_note: String,
    pub(super) duties: Vec<Row<5>>,
    pub(super) duties_note: String,
    pub(super) changes: Vec<Told>,
}

impl Panes {
    /// What was seen at this time, as far as it contains the filter.
    pub(super) fn of(snapshot: &Snapshot, changes: &[Item], at_ms: u64, filter: &str) -> Self {
        let wanted = filter.to_lowercase();
        let mut leases: Vec<&LeaseState> = snapshot.leases.iter().collect();
        // What incumbent keeps for itself comes last.
        leases.sort_by_key(|state| state.lease.starts_with("incumbent/"));
        let mut duties: Vec<&DutyStanding> = snapshot.work.duties.iter().collect();
        duties.sort_by_key(|duty| urgency(&duty.condition));
        let mut members: Vec<&Member> = snapshot.members.iter().collect();
        members.sort_by(|one, other| {
            (!one.is_alive(), &one.node).cmp(&(!other.is_alive(), &other.node))
        });
        let member = |member: &&Member| member_row(snapshot, member, at_ms);
        let changes = changes.iter().map(told);
        Self {
            members: kept(members.iter().map(member), &wanted),
            members_note: members_note(snapshot),
            leases: kept(leases.iter().map(|state| lease_row(state, at_ms)), &wanted),
            leases_note: leases_note(snapshot),
            duties: kept(duties.iter().map(|duty| duty_row(duty)), &wanted),
            duties_note: duties_note(snapshot),
            changes: changes.filter(|told| contains(&told.text, &wanted)).collect(),
        }
    }

    /// How many rows each part has.
    pub(super) fn counts(&self) -> [usize; 4] {
        [self.members.len(), self.leases.len(), self.duties.len(), self.changes.len()]
    }
}

fn kept<const N: usize>(rows: impl Iterator<Item = Row<N>>, wanted: &str) -> Vec<Row<N>> {
    rows.filter(|(cells, _)| cells.iter().any(|cell| contains(&cell.text, wanted))).collect()
}

fn contains(text: &str, wanted: &str) -> bool {
    wanted.is_empty() || text.to_lowercase().contains(wanted)
}

fn told(item: &Item) -> Told {
    Told { at: when::time(item.at_ms()), tone: item.tone(), text: item.sentence() }
}

/// NODE, STATE, HEARD, UP, DUTIES, LOAD, ADDRESS, LABELS.
fn member_row(snapshot: &Snapshot, member: &Member, at_ms: u64) -> Row<8> {
    let duties = Some(snapshot.duties_of(member).count());
    let duties = duties.filter(|duties| *duties > 0 || member.max_duties.is_some());
    let load = Some(snapshot.load_of(member));
    let load = load.filter(|load| *load > 0 || member.capacity.is_some());
    let labels: Vec<String> =
        member.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let cells = [
        Text::from(if member.node.is_empty() { "?" } else { &member.node }),
        Text::toned(standing::member(member, &snapshot.work.intents)),
        Text::from(or_none(member.age.map(span::steady))),
        Text::from(since(member.joined_ms, at_ms)),
        Text::from(or_none(duties.map(|duties| of(duties, member.max_duties)))),
        Text::from(or_none(load.map(|load| of(load, member.capacity)))),
        Text::from(member.address.as_deref().unwrap_or("-")),
        Text::from(labels.join(" ")),
    ];
    (cells, if member.is_alive() { Style::new() } else { dim() })
}

/// LEASE, LEADER, TERM, SINCE, DUE IN, WHERE.
fn lease_row(state: &LeaseState, at_ms: u64) -> Row<6> {
    let leader = state.leader.as_ref();
    let due = leader.and_then(|it| it.age.map(|age| it.ttl.saturating_sub(age)));
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let cells = [
        Text::from(&state.lease),
        Text::toned(standing::leader(state)),
        Text::from(or_none((state.term > 0).then(|| state.term.to_string()))),
        Text::from(or_none(leader.and_then(|it| it.since_ms).map(|it| since(it, at_ms)))),
        Text::from(or_none(due.map(span::steady))),
        Text::from(or_none(leader.and_then(|it| it.address.clone()))),
    ];
    (cells, if state.lease.starts_with("incumbent/") { dim() } else { Style::new() })
}

/// DUTY, STATE, NODE, TERM, NOTE.
fn duty_row(duty: &DutyStanding) -> Row<5> {
    let (note, tone) = standing::duty(duty);
    let cells = [
        Text::from(duty.id.as_str()),
        Text::toned((duty.condition.as_str(), tone)),
        Text::from(duty.node.as_deref().unwrap_or("-")),
        Text::from(duty.term.to_string()),
        Text::from(note),
    ];
    (cells, Style::new())
}

/// What is wrong comes first.
fn urgency(condition: &DutyCondition) -> u8 {
    match condition {
        DutyCondition::Failing { .. } => 0,
        DutyCondition::Unassigned(_) => 1,
        DutyCondition::Revoking | DutyCondition::Assigning => 2,
        DutyCondition::Active => 3,
        DutyCondition::Paused => 4,
        _ => 5,
    }
}

fn members_note(snapshot: &Snapshot) -> String {
    let alive = snapshot.members.iter().filter(|member| member.is_alive()).count();
    match snapshot.members.len() - alive {
        0 => format!("{alive} alive"),
        gone => format!("{alive} alive, {gone} gone"),
    }
}

fn leases_note(snapshot: &Snapshot) -> String {
    let count = |which: &dyn Fn(&LeaseState) -> bool| {
        snapshot.leases.iter().filter(|state| which(state)).count()
    };
    let unreadable = count(&|state| state.unreadable.is_some());
    let held = count(&|state| state.leader.is_some());
    let free = snapshot.leases.len() - held - unreadable;
    let mut note = format!("{held} held");
    for (count, word) in [(free, "free"), (unreadable, "unreadable")] {
        if count > 0 {
            note.push_str(&format!(", {count} {word}"));
        }
    }
    note
}

/// How many duties are in which state, what is wrong first.
fn duties_note(snapshot: &Snapshot) -> String {
    let mut counts: BTreeMap<(u8, &str), usize> = BTreeMap::new();
    for duty in &snapshot.work.duties {
        *counts.entry((urgency(&duty.condition), duty.condition.as_str())).or_default() += 1;
    }
    let counts = counts.iter().map(|((_, state), count)| format!("{count} {state}"));
    let counts: Vec<String> = counts.collect();
    let frozen = snapshot.work.intents.iter().any(|intent| intent.ask == Ask::Freeze);
    format!("{}{}", counts.join(", "), if frozen { ", frozen" } else { "" })
}

fn since(then_ms: u64, now_ms: u64) -> String {
    // Nobody ever said when.
    if then_ms == 0 {
        return "-".to_owned();
    }
    span::setting(Duration::from_secs(now_ms.saturating_sub(then_ms) / 1000))
}
