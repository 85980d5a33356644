//! What live views are made of.

use ratatui::layout::Constraint;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Cell, Row, Table};
use unicode_width::UnicodeWidthStr;

use crate::out::plain;
use crate::table;
use crate::tone::Tone;

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

    /// Text that is of this tone.
    pub(crate) fn toned((text, tone): (impl AsRef<str>, Tone)) -> Self {
        Self::styled(text, style(tone))
    }
}

impl<T: AsRef<str>> From<T> for Text {
    fn from(text: T) -> Self {
        Self::styled(text, Style::new())
    }
}

/// A section of a view, set off by a line with its title.
pub(crate) fn panel<'a>(title: &str, note: &str, in_focus: bool) -> Block<'a> {
    let bright = Style::new().bold().remove_modifier(Modifier::DIM);
    let mark = if in_focus { "▸" } else { " " };
    let note = if note.is_empty() { String::new() } else { format!("{note} ") };
    let title = Line::from(vec![
        Span::styled("─", dim()),
        Span::styled(mark, bright),
        Span::styled(format!("{title} "), bright),
        Span::styled(note, dim()),
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

/// A line of a timeline: when, and what happened, as far as it fits.
pub(crate) fn happened<'a>(at: String, text: &str, tone: Tone, width: u16) -> Line<'a> {
    let text = table::cut(&plain(text), usize::from(width).saturating_sub(at.width()));
    Line::from(vec![Span::styled(at, dim()), Span::styled(text, style(tone))])
}

/// How a tone looks.
pub(crate) fn style(tone: Tone) -> Style {
    match tone {
        Tone::Good => colour(Color::Green),
        Tone::Work => colour(Color::Cyan),
        Tone::Plain => Style::new(),
        Tone::Odd => colour(Color::Yellow),
        Tone::Bad => colour(Color::Red).bold(),
        Tone::Deed => Style::new().bold(),
        Tone::Faint => dim(),
    }
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
