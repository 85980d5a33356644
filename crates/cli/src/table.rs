//! Tables that fit the terminal.

use std::io::IsTerminal;

use anstyle::Style;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::out::{plain, say};
use crate::style::{DIM, PLAIN};
use crate::tone::Tone;

/// No column is made narrower than this to fit.
const NARROWEST: usize = 8;

/// A table: a head and some rows of as many cells.
pub(crate) struct Table<const N: usize> {
    heads: [&'static str; N],
    rows: Vec<[Cell; N]>,
    hidden: Vec<&'static str>,
}

/// What stands in a row and a column.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// Text in a style.
    pub(crate) fn styled(text: impl AsRef<str>, style: Style) -> Self {
        Self { text: plain(text.as_ref()), style }
    }

    /// Text that is of this tone.
    pub(crate) fn toned((text, tone): (impl AsRef<str>, Tone)) -> Self {
        Self::styled(text, tone.style())
    }
}

impl<T: AsRef<str>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::styled(text, PLAIN)
    }
}

impl<const N: usize> Table<N> {
    /// A table with this head.
    pub(crate) fn new(heads: [&'static str; N]) -> Self {
        Self { heads, rows: Vec::new(), hidden: Vec::new() }
    }

    /// Leaves a column out if it has nothing to tell.
    pub(crate) fn hide_if(&mut self, head: &'static str, has_nothing: bool) {
        if has_nothing {
            self.hidden.push(head);
        }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: [Cell; N]) {
        self.rows.push(cells);
    }

    /// Prints it: as wide as the terminal at most, and in full where there is none.
    pub(crate) fn print(&self) {
        for line in self.lines(terminal_width()) {
            say!("{line}");
        }
    }

    fn lines(&self, width: Option<usize>) -> Vec<String> {
        let texts: Vec<[&str; N]> =
            self.rows.iter().map(|row| row.each_ref().map(|cell| cell.text.as_str())).collect();
        let shown =
            |place: usize| self.heads.get(place).is_some_and(|it| !self.hidden.contains(it));
        let widths = widths(self.heads, &texts, width.map(|it| it + 2 * self.hidden.len()), shown);
        let heads = self.heads.map(|head| Cell::styled(head, DIM));
        let lines = std::iter::once(&heads).chain(&self.rows);
        lines.map(|cells| line(cells, &widths, shown)).collect()
    }
}

/// Columns as wide as their longest cell, or nothing if they aren't shown; then the widest gives way
/// until all fits.
pub(crate) fn widths<const N: usize>(
    heads: [&str; N],
    rows: &[[&str; N]],
    most: Option<usize>,
    shown: impl Fn(usize) -> bool,
) -> [usize; N] {
    let mut widths = heads.map(UnicodeWidthStr::width);
    for row in rows {
        for (width, text) in widths.iter_mut().zip(row) {
            *width = text.width().max(*width);
        }
    }
    for (_, width) in widths.iter_mut().enumerate().filter(|(place, _)| !shown(*place)) {
        *width = 0;
    }
    let most = most.unwrap_or(usize::MAX).saturating_sub(2 * N.saturating_sub(1));
    while widths.iter().sum::<usize>() > most {
        match widths.iter_mut().filter(|width| **width > NARROWEST).max() {
            Some(widest) => *widest -= 1,
            None => break,
        }
    }
    widths
}

fn line<const N: usize>(
    cells: &[Cell; N],
    widths: &[usize; N],
    shown: impl Fn(usize) -> bool,
) -> String {
    let mut line = String::new();
    for (number, (cell, width)) in cells.iter().zip(widths).enumerate() {
        if !shown(number) {
            continue;
        }
        let text = cut(&cell.text, *width);
        let style = cell.style;
        line.push_str(&format!("{style}{text}{style:#}"));
        // Nothing after the last column: a line that ends in blanks may wrap.
        if number + 1 < N {
            line.push_str(&" ".repeat(width.saturating_sub(text.width()) + 2));
        }
    }
    line.trim_end().to_owned()
}

/// The text as far as it fits the terminal, after so many columns of something else.
pub(crate) fn fit(text: &str, after: usize) -> String {
    match terminal_width() {
        Some(width) => cut(&plain(text), width.saturating_sub(after).max(NARROWEST)),
        None => plain(text),
    }
}

/// A paragraph of so many columns, or of the terminal's, or in one line where there is none; all
/// lines but the first are indented so far.
pub(crate) fn paragraph(text: &str, indent: usize) -> String {
    wrapped(&plain(text), indent, terminal_width())
}

fn wrapped(text: &str, indent: usize, width: Option<usize>) -> String {
    let Some(width) = width else { return text.to_owned() };
    let mut wrapped = String::new();
    let mut column = indent;
    for word in text.split(' ') {
        let needs = word.width() + 1;
        if column > indent && column + needs > width {
            wrapped.push('\n');
            wrapped.push_str(&" ".repeat(indent));
            column = indent;
        } else if column > indent {
            wrapped.push(' ');
        }
        wrapped.push_str(word);
        column += needs;
    }
    wrapped
}

/// The text in so many columns, with an ellipsis where something is left out.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut room = width.saturating_sub(1);
    let fits = |c: &char| {
        let wide = c.width().unwrap_or(0);
        let fits = wide <= room;
        room = room.saturating_sub(wide);
        fits
    };
    let mut cut: String = text.chars().take_while(fits).collect();
    cut.push('…');
    cut
}

fn terminal_width() -> Option<usize> {
    if !std::io::stdout().is_terminal() {
        return None;
    }
    let (columns, _) = ratatui::crossterm::terminal::size().ok()?;
    (columns > 0).then_some(usize::from(columns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_fit() {
        let mut table = Table::new(["NODE", "STATE"]);
        table.row(["knoten-ä".into(), "alive".into()]);
        table.row(["x".repeat(100).into(), "left".into()]);
        let lines: Vec<String> = table
            .lines(Some(40))
            .iter()
            .map(|line| anstream::adapter::strip_str(line).to_string())
            .collect();
        assert!(lines.iter().all(|line| line.width() <= 40), "{lines:?}");
        assert_eq!(lines[0].find("STATE"), Some(35));
        assert!(lines[2].contains('…'));
        assert!(table.lines(None)[2].contains(&"x".repeat(100)));
    }

    #[test]
    fn a_column_that_tells_nothing_takes_no_room() {
        let mut table = Table::new(["NODE", "WEIGHT", "STATE"]);
        table.row(["x".repeat(100).into(), "heavy".into(), "alive".into()]);
        table.hide_if("WEIGHT", true);
        let lines = table.lines(Some(40));
        let lines = lines.iter().map(|line| anstream::adapter::strip_str(line).to_string());
        let lines: Vec<String> = lines.collect();
        assert_eq!(lines[0].find("STATE"), Some(35), "{lines:?}");
        assert!(lines.iter().all(|line| !line.contains("WEIGHT") && !line.contains("heavy")));
        assert_eq!(lines[1].width(), 40);
    }

    #[test]
    fn a_paragraph_is_broken_between_words() {
        let text = "one two three four";
        assert_eq!(wrapped(text, 2, Some(12)), "one two\n  three\n  four");
        assert_eq!(wrapped(text, 2, None), text);
        assert_eq!(wrapped("lengthy", 4, Some(5)), "lengthy", "a word stays whole");
    }

    #[test]
    fn wide_characters_are_cut_between_them() {
        assert_eq!(cut("日本語", 4), "日…");
        assert_eq!(cut("abc", 3), "abc");
    }
}
