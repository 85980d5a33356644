//! Rules that no compiler knows.

use std::path::Path;

use anyhow::Result;

use crate::tree;

/// The longest source file, in lines.
const LONGEST: usize = 500;

/// Something that should not be there.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    file: String,
    line: usize,
    what: String,
}

/// Checks all files and prints what it finds; says whether it found nothing.
pub(crate) fn check(root: &Path) -> Result<bool> {
    let mut findings = Vec::new();
    let mut files = 0;
    for file in tree::files(root)? {
        if file == "Cargo.lock" {
            continue;
        }
        if let Some(text) = tree::text(root, &file) {
            files += 1;
            look(&file, &text, &mut findings);
        }
    }
    for Finding { file, line, what } in &findings {
        println!("{file}:{line}: {what}");
    }
    println!("{files} files, {} findings", findings.len());
    Ok(findings.is_empty())
}

fn look(file: &str, text: &str, findings: &mut Vec<Finding>) {
    let source = file.ends_with(".rs");
    let mut find = |line: usize, what: String| {
        findings.push(Finding { file: file.to_owned(), line, what });
    };
    let lines: Vec<&str> = text.lines().collect();
    if source && lines.len() > LONGEST {
        find(
            lines.len(),
            format!("{} lines are too many: split it, {LONGEST} at most", lines.len()),
        );
    }
    for (at, line) in lines.iter().enumerate() {
        for path in machine_paths() {
            if line.contains(&path) {
                find(at + 1, format!("{path:?} is a path of one machine"));
            }
        }
        if !source {
            continue;
        }
        for leftover in leftovers() {
            if line.contains(&leftover) {
                find(at + 1, format!("{leftover} is a leftover"));
            }
        }
        if line.trim_start().starts_with(&ignored()) && !is_child_process(&lines, at) {
            find(at + 1, "an ignored test shows nothing: make it run, or remove it".to_owned());
        }
    }
}

/// Tests that start this very test binary again as another process have one function that is
/// only run so. It is called `child_process`, and it is no test.
fn is_child_process(lines: &[&str], at: usize) -> bool {
    let function = lines.iter().skip(at + 1).find(|line| line.contains("fn "));
    function.is_some_and(|line| line.contains("fn child_process("))
}

// Put together here, so that this file doesn't find itself.
fn machine_paths() -> [String; 5] {
    [["/ho", "me/"], ["/ro", "ot/"], ["/Us", "ers/"], ["/wo", "rk/"], ["../sha", "red"]]
        .map(|parts| parts.concat())
}

fn leftovers() -> [String; 3] {
    [["to", "do!("], ["unimple", "mented!("], ["FIX", "ME"]].map(|parts| parts.concat())
}

fn ignored() -> String {
    ["#[ig", "nore"].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(file: &str, text: &str) -> Vec<Finding> {
        let mut findings = Vec::new();
        look(file, text, &mut findings);
        findings
    }

    #[test]
    fn each_rule_finds_its_sinner() {
        for text in [
            "a\n".repeat(LONGEST + 1),
            format!("{}\"later\")", leftovers()[0]),
            format!("{}]\nfn slow() {{}}", ignored()),
            format!("let path = \"{}me\";", machine_paths()[0]),
        ] {
            assert_eq!(found("src/lib.rs", &text).len(), 1, "{text}");
        }
    }

    #[test]
    fn what_is_allowed_is_not_found() {
        assert!(found("src/lib.rs", &"a\n".repeat(LONGEST)).is_empty());
        assert!(found("notes.md", &"a\n".repeat(2 * LONGEST)).is_empty());
        let child = format!("{} = \"why\"]\nfn child_process() {{}}", ignored());
        assert!(found("tests/processes.rs", &child).is_empty());
    }
}
