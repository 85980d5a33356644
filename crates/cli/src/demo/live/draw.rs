//! The picture.

use std::time::Duration;

use incumbent::{Moment, clock};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Paragraph, Row, Table};

use super::Live;
use crate::demo::process::{Condition, Process};
use crate::demo::stage::{Stage, Tone};
use crate::span;

/// How many characters the bar of a countdown has.
const BAR: usize = 16;

/// What each key does, in the order of the help line.
const KEYS: [(&str, &str); 10] = [
    ("k", "kill"),
    ("p", "pause"),
    ("r", "resume"),
    ("s", "resign"),
    ("t", "transfer"),
    ("e", "evict"),
    ("d", "drain"),
    ("a", "add"),
    ("↑↓", "pick"),
    ("q", "quit"),
];

/// Draws everything.
pub(super) fn frame(frame: &mut Frame<'_>, live: &Live<'_>) {
    let count = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
    let leases = count(live.stage.recipe.leases.len()).saturating_add(3);
    let nodes = count(live.stage.processes.len()).saturating_add(3);
    // On a small screen the nodes give way before the leases, and the timeline keeps a few lines.
    let rest = frame.area().height.saturating_sub(leases + 2 + 5);
    let [head, upper, middle, lower, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(leases),
        Constraint::Length(nodes.min(rest.max(4))),
        Constraint::Min(3),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    header(frame, head, live);
    lease_table(frame, upper, live);
    node_table(frame, middle, live);
    timeline(frame, lower, live);
    footer(frame, foot);
}

fn header(frame: &mut Frame<'_>, area: Rect, live: &Live<'_>) {
    let stage = &live.stage;
    let faults = stage.faults();
    let verdict = match faults.first() {
        None => Span::styled(
            format!("never two leaders in {} terms", stage.ledger.terms()),
            colour(Color::Green),
        ),
        Some(fault) => Span::styled(fault.clone(), colour(Color::Red).bold()),
    };
    let ttl = span::setting(stage.recipe.ttl);
    let lasted = clock::now().since(stage.began).as_secs();
    let line = Line::from(vec![
        Span::styled(" incumbent demo", Style::new().bold()),
        Span::raw(format!("   ttl {ttl}   {}:{:02}   ", lasted / 60, lasted % 60)),
        verdict,
    ]);
    frame.render_widget(Paragraph::new(line), area);
}

fn lease_table(frame: &mut Frame<'_>, area: Rect, live: &Live<'_>) {
    let rows = live.stage.recipe.leases.iter().enumerate().map(|(number, lease)| {
        let mark = if number == live.chosen { "▸ " } else { "  " };
        let style = if number == live.chosen { Style::new().bold() } else { Style::new() };
        let mut cells = vec![Cell::from(format!("{mark}{lease}"))];
        cells.extend(leading(live, lease));
        Row::new(cells).style(style)
    });
    let widths = [
        Constraint::Length(16),
        Constraint::Length(10),
        Constraint::Length(6),
        Constraint::Min(24),
    ];
    let heads = ["  LEASE", "LEADER", "TERM", "TRUST RUNS OUT IN"];
    let table = Table::new(rows, widths).header(dim_row(heads)).block(block("Leases"));
    frame.render_widget(table, area);
}

/// Who leads, in which term, and for how long it may believe so without another beat.
fn leading<'a>(live: &Live<'_>, lease: &str) -> [Cell<'a>; 3] {
    let stage = &live.stage;
    let Some((term, stint)) = stage.ledger.latest(lease) else {
        return [Cell::from("nobody"), Cell::from("-"), Cell::from("")];
    };
    let ttl = stage.recipe.ttl;
    let left = Moment::from_nanos(stint.until).since(clock::now());
    let paused =
        stage.process(stint.node).is_ok_and(|process| process.condition == Condition::Paused);
    let (who, style) = match &stint.end {
        None if left > Duration::ZERO => (stage.name(stint.node), colour(Color::Green)),
        None | Some(_) => ("nobody".to_owned(), colour(Color::Yellow)),
    };
    let name = stage.name(stint.node);
    let text = match &stint.end {
        None if paused && left > Duration::ZERO => format!("{} paused", countdown(left, ttl)),
        None if paused => format!("{name} is paused and will find out"),
        None => countdown(left, ttl),
        Some(why) if why == "killed" => match ttl_left(stint.until, ttl) {
            Some(left) => format!("{name} was killed; others wait {}", span::text(left)),
            None => format!("{name} was killed; due now"),
        },
        Some(why) => format!("{name}: {why}"),
    };
    [Cell::from(Span::styled(who, style)), Cell::from(term.to_string()), Cell::from(text)]
}

/// How long others still wait for a member whose trust would have ended at this time.
fn ttl_left(until: u64, ttl: Duration) -> Option<Duration> {
    // Trust ends a tenth of the ttl before others may take over.
    let due = Moment::from_nanos(until) + ttl / 10;
    Some(due.since(clock::now())).filter(|left| !left.is_zero())
}

fn countdown(left: Duration, whole: Duration) -> String {
    let share = left.as_secs_f64() / whole.as_secs_f64();
    let full = ((share * BAR as f64).round() as usize).min(BAR);
    format!("{}{} {:.1} s", "█".repeat(full), "░".repeat(BAR - full), left.as_secs_f64())
}

fn node_table(frame: &mut Frame<'_>, area: Rect, live: &Live<'_>) {
    let stage = &live.stage;
    let room = usize::from(area.height.saturating_sub(3));
    let rows = shown(stage, room).into_iter().map(|(place, process)| {
        let style = match process.condition {
            Condition::Starting | Condition::Running => Style::new(),
            Condition::Paused | Condition::Draining => colour(Color::Yellow),
            Condition::Killed | Condition::Left => Style::new().add_modifier(Modifier::DIM),
            Condition::Failed => colour(Color::Red),
        };
        let member = process.member.as_deref().unwrap_or("-");
        let leads: Vec<String> = stage.led_by(place).into_iter().map(|(lease, _)| lease).collect();
        Row::new([
            Cell::from(format!("  {}", process.name)),
            Cell::from(process.pid.to_string()),
            Cell::from(member.get(..8).unwrap_or(member).to_owned()),
            Cell::from(process.condition.as_str()),
            Cell::from(leads.join(", ")),
        ])
        .style(style)
    });
    let rows: Vec<Row<'_>> = rows.collect();
    let widths = [
        Constraint::Length(16),
        Constraint::Length(10),
        Constraint::Length(10),
        Constraint::Length(10),
        Constraint::Min(10),
    ];
    let heads = ["  NODE", "PID", "MEMBER", "STATE", "LEADS"];
    let table = Table::new(rows, widths).header(dim_row(heads)).block(block("Nodes"));
    frame.render_widget(table, area);
}

/// The nodes that fit: those that are gone give way first, then the oldest.
fn shown(stage: &Stage, room: usize) -> Vec<(usize, &Process)> {
    let mut nodes: Vec<(usize, &Process)> = stage.processes.iter().enumerate().collect();
    while nodes.len() > room {
        let gone = nodes.iter().position(|(_, process)| !process.condition.is_there());
        nodes.remove(gone.unwrap_or(0));
    }
    nodes
}

fn timeline(frame: &mut Frame<'_>, area: Rect, live: &Live<'_>) {
    let room = usize::from(area.height.saturating_sub(2));
    let skipped = live.timeline.len().saturating_sub(room);
    let lines: Vec<Line<'_>> = live
        .timeline
        .iter()
        .skip(skipped)
        .map(|news| {
            let (style, mark) = match news.tone {
                Tone::Good => (colour(Color::Green), "  "),
                Tone::Plain => (Style::new(), "  "),
                Tone::Bad => (colour(Color::Red), "! "),
                Tone::Deed => (Style::new().bold(), "> "),
            };
            let at = format!(" {:>7.2} s  ", news.at.as_secs_f64());
            Line::from(vec![
                Span::styled(at, Style::new().add_modifier(Modifier::DIM)),
                Span::styled(format!("{mark}{}", news.text), style),
            ])
        })
        .collect();
    frame.render_widget(Paragraph::new(lines).block(block("Timeline")), area);
}

fn footer(frame: &mut Frame<'_>, area: Rect) {
    let mut spans = Vec::new();
    for (key, does) in KEYS {
        let gap = if spans.is_empty() { "" } else { " " };
        spans.push(Span::styled(format!("{gap}{key}"), Style::new().bold()));
        spans.push(Span::styled(format!(" {does}"), Style::new().add_modifier(Modifier::DIM)));
    }
    frame.render_widget(Paragraph::new(Line::from(spans)), area);
}

fn block(title: &str) -> Block<'_> {
    Block::bordered()
        .title(format!(" {title} "))
        .border_style(Style::new().add_modifier(Modifier::DIM))
}

fn dim_row<const N: usize>(heads: [&'static str; N]) -> Row<'static> {
    Row::new(heads).style(Style::new().add_modifier(Modifier::DIM))
}

/// A colour, unless the user wants none.
fn colour(colour: Color) -> Style {
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if unwanted { Style::new() } else { Style::new().fg(colour) }
}
