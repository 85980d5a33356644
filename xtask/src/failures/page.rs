//! The page as sections: a heading `### F7 · title` or `### O7 · title`, and a line `Shown by:` in each.

use std::fmt;

/// One failure as the page tells it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) origin: Origin,
    pub(super) number: u32,
    pub(super) title: String,
    /// What stands in backquotes after `Shown by:`.
    pub(super) shown_by: Vec<String>,
    /// What stands there where nothing is shown yet.
    pub(super) planned: String,
}

/// Where a failure happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Origin {
    /// `F`: in other systems.
    #[default]
    Elsewhere,
    /// `O`: in this one.
    Ours,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = match self.origin {
            Origin::Elsewhere => 'F',
            Origin::Ours => 'O',
        };
        write!(f, "{letter}{}", self.number)
    }
}

const SHOWN_BY: &str = "Shown by:";

pub(super) fn read(text: &str) -> Vec<Failure> {
    let mut failures: Vec<Failure> = Vec::new();
    let mut shown = false;
    for line in text.lines() {
        if let Some((origin, number, title)) = heading(line) {
            failures.push(Failure { origin, number, title, ..Failure::default() });
            shown = false;
            continue;
        }
        let Some(failure) = failures.last_mut() else { continue };
        let rest = match line.strip_prefix(SHOWN_BY) {
            Some(rest) => {
                shown = true;
                rest
            }
            // The list may go on over several lines, up to an empty one.
            None if shown && !line.trim().is_empty() => line,
            None => {
                shown = false;
                continue;
            }
        };
        let quoted = rest.split('`').skip(1).step_by(2);
        failure.shown_by.extend(quoted.filter(|quote| quote.contains(':')).map(str::to_owned));
        if failure.shown_by.is_empty() {
            failure.planned = rest.trim().trim_end_matches('.').to_owned();
        }
    }
    failures
}

fn heading(line: &str) -> Option<(Origin, u32, String)> {
    let (name, title) = line.strip_prefix("### ")?.split_once(" · ")?;
    let (origin, number) = match name.strip_prefix('F') {
        Some(number) => (Origin::Elsewhere, number),
        None => (Origin::Ours, name.strip_prefix('O')?),
    };
    Some((origin, number.parse().ok()?, title.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_read_with_all_their_references() {
        let text = "# Page\n\n### F7 · A title\n\nText with `code: here`.\n\n\
                    Shown by: `mutant:no-margin`,\n`kit:swap-once`.\n\nMore `text: after`.\n\n\
                    ### O31 · Another\n\nShown by: planned with duties.\n";
        let failures = read(text);
        let [first, second] = &failures[..] else { panic!("two sections: {failures:?}") };
        assert_eq!((first.number, first.title.as_str()), (7, "A title"));
        assert_eq!(first.shown_by, ["mutant:no-margin", "kit:swap-once"]);
        assert_eq!(second.to_string(), "O31");
        assert!(second.shown_by.is_empty());
        assert_eq!(second.planned, "planned with duties");
    }
}
