//! The picture, which depends on the model alone.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Padding, Paragraph};

use super::model::{Model, Pane};
use super::panes::Row;
use crate::out::plain;
use crate::screen::widgets::{self, columns, dim, happened, panel, stacked, style};
use crate::tone::Tone;
use crate::when;

/// What each key does.
const KEYS: [(&str, &str); 5] =
    [("tab", "next part"), ("↑↓", "scroll"), ("/", "filter"), ("p", "pause"), ("q", "quit")];

/// Draws everything.
pub(super) fn frame(frame: &mut Frame<'_>, model: &Model) {
    let body = frame.area().height.saturating_sub(2);
    let [head, body, foot] = stacked(frame.area(), [1, body, 1]);
    let [members, leases, duties, changes] = stacked(body, model.room.map(|room| room.lines));
    header(frame, head, model);
    let panes = &model.panes;

    let part = Part {
        pane: Pane::Members,
        title: "Members",
        note: &panes.members_note,
        empty: "nobody has ever joined this cluster",
    };
    let heads = ["NODE", "STATE", "HEARD", "UP", "DUTIES", "LOAD", "ADDRESS", "LABELS"];
    table(frame, members, model, part, heads, &panes.members);

    let part = Part {
        pane: Pane::Leases,
        title: "Leases",
        note: &panes.leases_note,
        empty: "nobody has ever campaigned",
    };
    let heads = ["LEASE", "LEADER", "TERM", "SINCE", "DUE IN", "WHERE"];
    table(frame, leases, model, part, heads, &panes.leases);

    let part = Part {
        pane: Pane::Duties,
        title: "Duties",
        note: &panes.duties_note,
        empty: "no node that is alive serves any",
    };
    let heads = ["DUTY", "STATE", "NODE", "TERM", "NOTE"];
    table(frame, duties, model, part, heads, &panes.duties);

    timeline(frame, changes, model);
    footer(frame, foot, model);
}

fn header(frame: &mut Frame<'_>, area: Rect, model: &Model) {
    let mut spans = vec![
        Span::styled(" incumbent top", Style::new().bold()),
        Span::raw(format!("   {}  ", plain(&model.cluster))),
        Span::styled(plain(&model.store), dim()),
        Span::raw(format!("  {} UTC ", when::time(model.at_ms))),
    ];
    if let Some(unreadable) = &model.unreadable {
        // Before what may be too long for the line.
        spans.insert(1, Span::styled(format!("   {unreadable}"), style(Tone::Bad)));
    }
    if model.paused {
        spans.push(Span::styled(" paused: p goes on ", style(Tone::Odd)));
    }
    if let Some(trouble) = &model.trouble {
        spans.truncate(1);
        let at = when::time(model.at_ms);
        spans
            .push(Span::styled(format!("   as of {at} UTC: {}", plain(trouble)), style(Tone::Bad)));
    }
    frame.render_widget(Paragraph::new(Line::from(spans)), area);
}

/// A part of the view, but for its rows.
struct Part<'a> {
    pane: Pane,
    title: &'a str,
    note: &'a str,
    /// What is said if there are no rows.
    empty: &'a str,
}

impl Part<'_> {
    fn block(&self, model: &Model) -> Block<'static> {
        let mut note = self.note.to_owned();
        let (first, rows, count) = model.shown(self.pane);
        if rows < count {
            note.push_str(&format!("  {}-{} of {count} shown", first + 1, first + rows));
        }
        panel(self.title, &note, model.pane == self.pane).padding(Padding::left(1))
    }

    /// Says that there is nothing to show.
    fn nothing(&self, frame: &mut Frame<'_>, area: Rect, model: &Model) {
        let all = model.filter.is_empty();
        let why = if all { self.empty } else { "nothing contains the filter" };
        let line = Line::styled(why.to_owned(), dim());
        frame.render_widget(Paragraph::new(line).block(self.block(model)), area);
    }
}

fn table<const N: usize>(
    frame: &mut Frame<'_>,
    area: Rect,
    model: &Model,
    part: Part<'_>,
    heads: [&str; N],
    rows: &[Row<N>],
) {
    if rows.is_empty() {
        part.nothing(frame, area, model);
        return;
    }
    let shown = visible(model, part.pane, rows);
    let table = columns(heads, shown, area.width.saturating_sub(1));
    frame.render_widget(table.block(part.block(model)), area);
}

/// The rows that are not scrolled out of sight.
fn visible<'a, T>(model: &Model, pane: Pane, all: &'a [T]) -> &'a [T] {
    let (first, rows, _) = model.shown(pane);
    all.get(first..first + rows).unwrap_or_default()
}

fn timeline(frame: &mut Frame<'_>, area: Rect, model: &Model) {
    let part = Part {
        pane: Pane::Changes,
        title: "Changes",
        note: "newest first",
        empty: "nothing has changed",
    };
    if model.panes.changes.is_empty() {
        part.nothing(frame, area, model);
        return;
    }
    let shown = visible(model, Pane::Changes, &model.panes.changes);
    let width = area.width.saturating_sub(1);
    let lines: Vec<Line<'_>> = shown
        .iter()
        .map(|told| happened(format!("{}  ", told.at), &told.text, told.tone, width))
        .collect();
    frame.render_widget(Paragraph::new(lines).block(part.block(model)), area);
}

fn footer(frame: &mut Frame<'_>, area: Rect, model: &Model) {
    let line = if model.typing {
        let typed = format!(" /{}█", plain(&model.filter));
        widgets::keys(&format!("{typed}  "), &[("enter", "keep"), ("esc", "show all")], area.width)
    } else if model.filter.is_empty() {
        widgets::keys(" ", &KEYS, area.width)
    } else {
        let about = format!(" only {:?}:  ", plain(&model.filter));
        let mut keys = vec![("esc", "show all")];
        keys.extend(KEYS);
        widgets::keys(&about, &keys, area.width)
    };
    frame.render_widget(Paragraph::new(line), area);
}
