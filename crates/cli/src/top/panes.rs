//! The rows of each part of the view.

use std::collections::BTreeMap;
use std::time::Duration;

use incumbent::{DutyCondition, DutyStanding, LeaseState, Member, Wish};
use ratatui::style::Style;

use crate::change::Item;
use crate::command::status::Snapshot;
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
    let own = |duty: &&DutyStanding| duty.member.as_ref() == Some(&member.id);
    let duties = snapshot.work.duties.iter().filter(own).count();
    let load = snapshot.work.loads.get(&member.id).filter(|load| **load > 0);
    let labels: Vec<String> =
        member.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let cells = [
        Text::from(if member.node.is_empty() { "?" } else { &member.node }),
        member_state(snapshot, member),
        Text::from(or_none(member.age.map(span::steady))),
        Text::from(since(member.joined_ms, at_ms)),
        Text::from(or_none((duties > 0).then(|| duties.to_string()))),
        Text::from(or_none(load.map(ToString::to_string))),
        Text::from(member.address.as_deref().unwrap_or("-")),
        Text::from(labels.join(" ")),
    ];
    (cells, if member.is_alive() { Style::new() } else { dim() })
}

fn member_state(snapshot: &Snapshot, member: &Member) -> Text {
    let wished = |wish: &Wish| match wish {
        Wish::Drain { node } if *node == member.node => Some("drained"),
        Wish::Cordon { node } if *node == member.node => Some("cordoned"),
        Wish::Resign { .. }
        | Wish::Pin { .. }
        | Wish::Pause { .. }
        | Wish::Move { .. }
        | Wish::Cordon { .. }
        | Wish::Drain { .. }
        | Wish::Freeze => None,
    };
    let (state, tone) = standing::member(member);
    match snapshot.work.wishes.iter().filter_map(wished).max() {
        Some(wished) if tone == Tone::Good => Text::toned((wished, Tone::Odd)),
        Some(_) | None => Text::toned((state, tone)),
    }
}

/// LEASE, LEADER, TERM, SINCE, DUE IN, WHERE.
fn lease_row(state: &LeaseState, at_ms: u64) -> Row<6> {
    let leader = state.leader.as_ref();
    let due = leader.and_then(|it| it.age.map(|age| it.ttl.saturating_sub(age)));
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let cells = [
        Text::from(&state.lease),
        Text::toned(standing::leader(state)),
        Text::from(state.term.to_string()),
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
        DutyCondition::Done => 5,
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
    let free = snapshot.leases.iter().filter(|state| state.leader.is_none()).count();
    match free {
        0 => format!("{} held", snapshot.leases.len()),
        free => format!("{} held, {free} free", snapshot.leases.len() - free),
    }
}

/// How many duties are in which state, what is wrong first.
fn duties_note(snapshot: &Snapshot) -> String {
    let mut counts: BTreeMap<(u8, &str), usize> = BTreeMap::new();
    for duty in &snapshot.work.duties {
        *counts.entry((urgency(&duty.condition), duty.condition.as_str())).or_default() += 1;
    }
    let counts = counts.iter().map(|((_, state), count)| format!("{count} {state}"));
    let counts: Vec<String> = counts.collect();
    let frozen = snapshot.work.wishes.contains(&Wish::Freeze);
    format!("{}{}", counts.join(", "), if frozen { ", frozen" } else { "" })
}

fn since(then_ms: u64, now_ms: u64) -> String {
    span::setting(Duration::from_secs(now_ms.saturating_sub(then_ms) / 1000))
}
