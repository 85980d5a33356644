//! What was found, and how it is told.

use anstyle::Style;
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use crate::out::{plain, say};
use crate::style::{BAD, DIM, GOOD, HEAD, ODD, PLAIN};

/// As wide as a terminal at least is.
const WIDTH: usize = 80;
/// Where the text of a finding begins.
const INDENT: usize = 19;

/// How good something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mark {
    /// As it should be.
    Ok,
    /// It works, but should be changed.
    Warn,
    /// It doesn't work.
    Fail,
}

impl Mark {
    /// The word for it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }

    fn style(self) -> Style {
        match self {
            Self::Ok => GOOD,
            Self::Warn => ODD,
            Self::Fail => BAD,
        }
    }
}

/// The answer to one question.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    /// What was looked at, in a word.
    pub(crate) check: &'static str,
    /// How it is.
    pub(crate) mark: Mark,
    /// What was found, and what to do about it unless all is well.
    pub(crate) said: String,
    /// What else is good to know, each a line.
    pub(crate) notes: Vec<String>,
}

impl Finding {
    /// Something is as it should be.
    pub(crate) fn ok(check: &'static str, said: impl Into<String>) -> Self {
        Self::new(check, Mark::Ok, said)
    }

    /// Something works, but should be changed.
    pub(crate) fn warn(check: &'static str, said: impl Into<String>) -> Self {
        Self::new(check, Mark::Warn, said)
    }

    /// Something doesn't work.
    pub(crate) fn fail(check: &'static str, said: impl Into<String>) -> Self {
        Self::new(check, Mark::Fail, said)
    }

    /// A finding with this mark.
    pub(crate) fn new(check: &'static str, mark: Mark, said: impl Into<String>) -> Self {
        Self { check, mark, said: said.into(), notes: Vec::new() }
    }

    /// The same with one thing more that is good to know.
    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// Prints it in a paragraph of 80 columns at most.
    pub(crate) fn print(&self) {
        for line in self.lines() {
            say!("{line}");
        }
    }

    fn lines(&self) -> Vec<String> {
        let (mark, style, check) = (self.mark.as_str(), self.mark.style(), self.check);
        let mut head = format!("{style}{mark:<5}{style:#} {HEAD}{check:<12}{HEAD:#} ");
        let text = if self.mark == Mark::Ok { PLAIN } else { style };
        let said = wrapped(&plain(&self.said)).into_iter().map(|line| (text, line));
        let notes = self.notes.iter().flat_map(|note| wrapped(&plain(note)));
        let mut lines = Vec::new();
        for (style, line) in said.chain(notes.map(|line| (DIM, line))) {
            lines.push(format!("{head}{style}{line}{style:#}"));
            head = " ".repeat(INDENT);
        }
        lines
    }

    /// As JSON.
    pub(crate) fn json(&self) -> Value {
        json!({
            "check": self.check,
            "mark": self.mark.as_str(),
            "said": self.said,
            "notes": self.notes,
        })
    }
}

/// The words in lines that fit beside the indentation. A number stays with its unit.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match words.last_mut() {
            Some(number) if number.ends_with(|c: char| c.is_ascii_digit()) && is_unit(word) => {
                number.push(' ');
                number.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    for word in words {
        match lines.last_mut() {
            Some(line) if line.width() + 1 + word.width() <= WIDTH - INDENT => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines
}

fn is_unit(word: &str) -> bool {
    let word = word.trim_end_matches([',', ';', '.', ':', ')']);
    ["ns", "µs", "ms", "s", "min", "h", "d", "%"].contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_fits_80_columns_and_lines_up() {
        let long = "a sentence of some 15 s ".repeat(20);
        let finding = Finding::warn("supervision", long.clone()).note(long);
        let lines = finding.lines();
        let lines: Vec<String> =
            lines.iter().map(|line| anstream::adapter::strip_str(line).to_string()).collect();
        assert!(lines.iter().all(|line| line.width() <= WIDTH), "{lines:#?}");
        assert!(lines[0].starts_with("warn  supervision  a sentence"), "{}", lines[0]);
        assert!(!lines.iter().any(|line| line.ends_with("15")), "{lines:#?}");
        let blank = " ".repeat(INDENT);
        assert!(lines[1..].iter().all(|line| line.starts_with(&blank)), "{lines:#?}");
    }
}
