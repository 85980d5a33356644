//! The page as sections: a heading `### F7 · title`, and a line `Shown by:` in each.

/// One failure as the page tells it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) number: u32,
    pub(super) title: String,
    /// What stands in backquotes after `Shown by:`.
    pub(super) shown_by: Vec<String>,
    /// What stands there where nothing is shown yet.
    pub(super) planned: String,
}

const SHOWN_BY: &str = "Shown by:";

pub(super) fn read(text: &str) -> Vec<Failure> {
    let mut failures: Vec<Failure> = Vec::new();
    let mut shown = false;
    for line in text.lines() {
        if let Some((number, title)) = heading(line) {
            failures.push(Failure { number, title, ..Failure::default() });
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

fn heading(line: &str) -> Option<(u32, String)> {
    let (number, title) = line.strip_prefix("### F")?.split_once(" · ")?;
    Some((number.parse().ok()?, title.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_read_with_all_their_references() {
        let text = "# Page\n\n### F7 · A title\n\nText with `code: here`.\n\n\
                    Shown by: `mutant:no-margin`,\n`kit:swap-once`.\n\nMore `text: after`.\n\n\
                    ### F31 · Another\n\nShown by: planned with duties.\n";
        let failures = read(text);
        let [first, second] = &failures[..] else { panic!("two sections: {failures:?}") };
        assert_eq!((first.number, first.title.as_str()), (7, "A title"));
        assert_eq!(first.shown_by, ["mutant:no-margin", "kit:swap-once"]);
        assert!(second.shown_by.is_empty());
        assert_eq!(second.planned, "planned with duties");
    }
}
