//! What live views are made of.

use ratatui::layout::Constraint;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Cell, Row, Table};
use unicode_width::UnicodeWidthStr;

use crate::out::plain;
use crate::table;

/// Between two columns.
const GAP: u16 = 2;

/// A cell of a table: text in a style.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    /// What it says.
    pub(crate) text: String,
    /// How it looks.
    pub(crate) style: Style,
}

impl Text {
    /// Text in a style. Nothing in it commands the terminal.
    pub(crate) fn styled(text: impl AsRef<str>, style: Style) -> Self {
        Self { text: plain(text.as_ref()), style }
    }
}

impl<T: AsRef<str>> From<T> for Text {
    fn from(text: T) -> Self {
        Self::styled(text, Style::new())
    }
}

/// A section of a view, set off by a line with its title.
pub(crate) fn panel<'a>(title: &str, note: &str, in_focus: bool) -> Block<'a> {
    let mark = if in_focus { '▸' } else { ' ' };
    let title = Line::from(vec![
        Span::styled(format!("─{mark}"), dim()),
        Span::styled(format!("{title} "), Style::new().bold().remove_modifier(Modifier::DIM)),
        Span::styled(if note.is_empty() { String::new() } else { format!("{note} ") }, dim()),
    ]);
    Block::new().borders(Borders::TOP).title(title).border_style(dim())
}

/// A table whose columns are as wide as they need to be, and fit. Rows are of a style beside that
/// of their cells.
pub(crate) fn columns<'a, const N: usize>(
    heads: [&str; N],
    rows: &[([Text; N], Style)],
    width: u16,
) -> Table<'a> {
    let texts: Vec<[&str; N]> =
        rows.iter().map(|(cells, _)| cells.each_ref().map(|cell| cell.text.as_str())).collect();
    let widths = table::widths(heads, &texts, Some(usize::from(width)));
    let body = rows.iter().map(|(cells, style)| {
        let cells = cells.iter().zip(widths).map(|(cell, width)| {
            Cell::from(Span::styled(table::cut(&cell.text, width), cell.style))
        });
        Row::new(cells).style(*style)
    });
    let body: Vec<Row<'_>> = body.collect();
    let lengths = widths.map(|width| Constraint::Length(u16::try_from(width).unwrap_or(u16::MAX)));
    let heads: [String; N] = heads.map(ToOwned::to_owned);
    Table::new(body, lengths).header(Row::new(heads).style(dim())).column_spacing(GAP)
}

/// What keys do, as many as fit.
pub(crate) fn keys<'a>(before: &str, keys: &[(&str, &str)], width: u16) -> Line<'a> {
    let mut room = usize::from(width);
    let mut spans = vec![Span::raw(before.to_owned())];
    room = room.saturating_sub(before.width());
    for (key, does) in keys {
        let needs = key.width() + does.width() + 3;
        if needs > room + 2 {
            break;
        }
        room = room.saturating_sub(needs);
        spans.push(Span::styled((*key).to_owned(), Style::new().bold()));
        spans.push(Span::styled(format!(" {does}  "), dim()));
    }
    Line::from(spans)
}

/// A line of a timeline: when, and what happened.
pub(crate) fn happened<'a>(at: String, text: &str, style: Style) -> Line<'a> {
    Line::from(vec![Span::styled(at, dim()), Span::styled(plain(text), style)])
}

/// What is as it should be.
pub(crate) fn good() -> Style {
    colour(Color::Green)
}

/// What deserves a look.
pub(crate) fn odd() -> Style {
    colour(Color::Yellow)
}

/// What is wrong.
pub(crate) fn bad() -> Style {
    colour(Color::Red).add_modifier(Modifier::BOLD)
}

/// Work that goes on.
pub(crate) fn work() -> Style {
    colour(Color::Cyan)
}

/// What is there for completeness.
pub(crate) fn dim() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

/// A colour, unless the user wants none.
fn colour(colour: Color) -> Style {
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if unwanted { Style::new() } else { Style::new().fg(colour) }
}
