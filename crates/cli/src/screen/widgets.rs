//! What live views are made of.

use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Paragraph};
use unicode_width::UnicodeWidthStr;

use crate::out::plain;
use crate::table;
use crate::tone::Tone;

/// Between two columns.
const GAP: usize = 2;

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
///
/// It is no table of ratatui's, and views don't use its layouts: both ask a solver of linear
/// constraints, which now and then never came back on a terminal that was made narrower.
pub(crate) fn columns<'a, const N: usize>(
    heads: [&str; N],
    rows: &[([Text; N], Style)],
    width: u16,
) -> Paragraph<'a> {
    let texts: Vec<[&str; N]> =
        rows.iter().map(|(cells, _)| cells.each_ref().map(|cell| cell.text.as_str())).collect();
    let widths = table::widths(heads, &texts, Some(usize::from(width)), |_| true);
    let line = |cells: &[Text; N], style: Style| {
        let spans = cells.iter().zip(widths).flat_map(|(cell, width)| {
            let text = table::cut(&cell.text, width);
            let gap = " ".repeat(width.saturating_sub(text.width()) + GAP);
            [Span::styled(text, cell.style), Span::raw(gap)]
        });
        Line::from_iter(spans).style(style)
    };
    let mut lines = vec![line(&heads.map(Text::from), dim())];
    lines.extend(rows.iter().map(|(cells, style)| line(cells, *style)));
    Paragraph::new(lines)
}

/// Areas of these heights, one below the other, as far as there is room.
pub(crate) fn stacked<const N: usize>(area: Rect, heights: [u16; N]) -> [Rect; N] {
    let mut below = area;
    heights.map(|height| {
        let height = height.min(below.height);
        let one = Rect { height, ..below };
        below.y += height;
        below.height -= height;
        one
    })
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
