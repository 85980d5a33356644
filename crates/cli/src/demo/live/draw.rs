//! The picture.

use std::time::Duration;

use incumbent::{Moment, clock};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::{Live, Target};
use crate::demo::DUTIES;
use crate::demo::news::News;
use crate::demo::process::{Condition, Process};
use crate::demo::stage::{Stage, duties, short};
use crate::screen::widgets::{self, Text, columns, dim, happened, panel, stacked, style};
use crate::span;
use crate::tone::Tone;

/// How many characters the bar of a countdown has.
const BAR: usize = 16;

/// What keys do to the node that is picked, or leads the lease that is.
const NODE_KEYS: [(&str, &str); 5] =
    [("k", "kill"), ("p", "pause"), ("d", "drain"), ("x", "stop"), ("e", "evict")];

/// What keys do to the lease that is picked.
const LEASE_KEYS: [(&str, &str); 2] = [("s", "resign"), ("t", "transfer")];

/// What keys do to nobody in particular.
const OTHER_KEYS: [(&str, &str); 4] = [
    ("↑↓", "pick a lease or a node"),
    ("r", "resume whoever is paused"),
    ("a", "add a node"),
    ("q", "quit"),
];

/// Draws everything.
pub(super) fn frame(frame: &mut Frame<'_>, live: &Live<'_>) {
    let count = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
    let leases = count(live.stage.recipe.leases.len()).saturating_add(2);
    let nodes = count(live.stage.processes.len()).saturating_add(2);
    // On a small screen the nodes give way before the leases, and the timeline keeps a few lines.
    let rest = frame.area().height.saturating_sub(leases + 3 + 5);
    let nodes = nodes.min(rest.max(5));
    let news = frame.area().height.saturating_sub(leases + nodes + 3);
    let [head, upper, middle, lower, foot] = stacked(frame.area(), [1, leases, nodes, news, 2]);
    header(frame, head, live.stage);
    lease_table(frame, upper, live);
    node_table(frame, middle, live);
    timeline(frame, lower, live);
    footer(frame, foot, live);
}

fn header(frame: &mut Frame<'_>, area: Rect, stage: &Stage) {
    let faults = stage.faults();
    let (led, ran) = (stage.ledger.leases.terms(), stage.ledger.duties.terms());
    let verdict = match faults.first() {
        None => Span::styled(
            format!("nothing twice at once in {led} terms, {ran} runs"),
            style(Tone::Good),
        ),
        Some(fault) => Span::styled(fault.clone(), style(Tone::Bad)),
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
    let row = |(number, lease): (usize, &String)| {
        let [leader, term, text] = leading(live.stage, lease);
        picked([Text::from(lease), leader, term, text], live.target == Target::Lease(number))
    };
    let rows: Vec<_> = live.stage.recipe.leases.iter().enumerate().map(row).collect();
    let heads = ["  LEASE", "LEADER", "TERM", "TRUST RUNS OUT IN"];
    let table = columns(heads, &rows, area.width).block(panel("Leases", "", false));
    frame.render_widget(table, area);
}

/// A row with a mark in front, if it is what the keys are about.
fn picked<const N: usize>(mut cells: [Text; N], is_picked: bool) -> ([Text; N], Style) {
    if let Some(first) = cells.first_mut() {
        first.text = format!("{} {}", if is_picked { '▸' } else { ' ' }, first.text);
    }
    (cells, if is_picked { Style::new().bold() } else { Style::new() })
}

/// Who leads, in which term, and for how long it may believe so without another beat.
fn leading(stage: &Stage, lease: &str) -> [Text; 3] {
    let Some((term, stint)) = stage.ledger.leases.latest(lease) else {
        return ["nobody", "-", ""].map(Text::from);
    };
    let ttl = stage.recipe.ttl;
    let left = Moment::from_nanos(stint.until).since(clock::now());
    let paused =
        stage.process(stint.node).is_ok_and(|process| process.condition == Condition::Paused);
    let who = match &stint.end {
        None if left > Duration::ZERO => (stage.name(stint.node), Tone::Good),
        None | Some(_) => ("nobody".to_owned(), Tone::Odd),
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
    let tone = if paused { Tone::Odd } else { who.1 };
    [Text::toned(who), Text::from(term.to_string()), Text::toned((text, tone))]
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
    format!("{}{} {:.1} s", "━".repeat(full), "┄".repeat(BAR - full), left.as_secs_f64())
}

fn node_table(frame: &mut Frame<'_>, area: Rect, live: &Live<'_>) {
    let stage = &live.stage;
    let room = usize::from(area.height.saturating_sub(2));
    let rows = shown(stage, room).into_iter().map(|(place, process)| {
        let names = |of: Vec<(String, u64)>| -> Vec<String> {
            of.iter().map(|(name, _)| short(name).to_owned()).collect()
        };
        let cells = [
            Text::from(&process.name),
            Text::from(process.pid.to_string()),
            condition(process),
            Text::toned((names(stage.led_by(place)).join(", "), Tone::Good)),
            Text::toned((names(stage.run_by(place)).join(", "), Tone::Work)),
        ];
        let (cells, style) = picked(cells, live.target == Target::Node(place));
        (cells, if process.condition.is_there() { style } else { style.patch(dim()) })
    });
    let rows: Vec<_> = rows.collect();
    let heads = ["  NODE", "PID", "STATE", "LEADS", "RUNS"];
    let run = duties().filter(|duty| stage.runner(duty).is_some()).count();
    let note = format!("{run} of {} duties run", DUTIES.len());
    let table = columns(heads, &rows, area.width).block(panel("Nodes", &note, false));
    frame.render_widget(table, area);
}

fn condition(process: &Process) -> Text {
    let tone = match process.condition {
        Condition::Running if process.drained => return Text::toned(("drained", Tone::Odd)),
        Condition::Starting | Condition::Running | Condition::Killed | Condition::Left => {
            Tone::Plain
        }
        Condition::Paused | Condition::Stopping => Tone::Odd,
        Condition::Failed => Tone::Bad,
    };
    Text::toned((process.condition.as_str(), tone))
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
    let room = usize::from(area.height.saturating_sub(1));
    let skipped = live.timeline.len().saturating_sub(room);
    let line = |news: &News| {
        let mark = match news.tone {
            Tone::Good | Tone::Work | Tone::Plain | Tone::Odd | Tone::Faint => "  ",
            Tone::Bad => "! ",
            Tone::Deed => "> ",
        };
        let at = format!(" {:>6.1} s  ", news.at.as_secs_f64());
        happened(at, &format!("{mark}{}", news.text), news.tone, area.width)
    };
    let lines: Vec<Line<'_>> = live.timeline.iter().skip(skipped).map(line).collect();
    frame.render_widget(Paragraph::new(lines).block(panel("Timeline", "", false)), area);
}

fn footer(frame: &mut Frame<'_>, area: Rect, live: &Live<'_>) {
    let stage = &live.stage;
    let node = live.target.node(stage).map(|place| stage.name(place));
    let about = format!(" {}:  ", node.as_deref().unwrap_or("nobody"));
    let mut keys = NODE_KEYS.to_vec();
    if matches!(live.target, Target::Lease(_)) {
        keys.extend(LEASE_KEYS);
    }
    let lines =
        vec![widgets::keys(&about, &keys, area.width), widgets::keys(" ", &OTHER_KEYS, area.width)];
    frame.render_widget(Paragraph::new(lines), area);
}
