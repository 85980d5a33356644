//! Checks docs/failures.md: what it says is shown somewhere is shown there.

mod page;
mod reference;

use std::path::Path;

use anyhow::{Context as _, Result};

use page::Failure;
use reference::Reference;

const PAGE: &str = "docs/failures.md";
/// This page names invariants and planted mistakes in the same way.
const ARCHITECTURE: &str = "ARCHITECTURE.md";
/// How many failures the page tells.
const ALL: u32 = 54;
/// The first of these concern leases alone, and each must be shown by something that runs.
const COVERED: u32 = 30;

/// Checks the page and lists what has no cover; says whether it holds.
pub(crate) fn check(root: &Path) -> Result<bool> {
    let text = std::fs::read_to_string(root.join(PAGE)).with_context(|| PAGE.to_owned())?;
    let failures = page::read(&text);
    let mut wrong = order(&failures);
    let mut uncovered = Vec::new();
    let mut references = 0;
    for failure in &failures {
        for shown in &failure.shown_by {
            references += 1;
            let missing = match Reference::read(shown) {
                Some(reference) => reference.missing(root),
                None => Some("that is no reference".to_owned()),
            };
            wrong.extend(missing.map(|why| format!("F{}: `{shown}`: {why}", failure.number)));
        }
        if failure.shown_by.is_empty() {
            uncovered.push(failure);
        }
    }
    for failure in uncovered.iter().filter(|failure| failure.number <= COVERED) {
        wrong.push(format!("F{} has no cover: {}", failure.number, failure.title));
    }
    for failure in uncovered.iter().filter(|failure| failure.number > COVERED) {
        println!("F{} is not shown yet: {} ({})", failure.number, failure.title, failure.planned);
    }
    let mut wrong: Vec<String> = wrong.into_iter().map(|line| format!("{PAGE}: {line}")).collect();
    wrong.extend(architecture(root)?);
    for line in &wrong {
        println!("{line}");
    }
    let covered = failures.len() - uncovered.len();
    println!(
        "{} failures, {covered} shown by {references} references, {} not yet, {} wrong",
        failures.len(),
        uncovered.len(),
        wrong.len()
    );
    Ok(wrong.is_empty())
}

/// Every reference there exists, and every planted mistake is named there.
fn architecture(root: &Path) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(root.join(ARCHITECTURE))?;
    let quoted: Vec<&str> = text.split('`').skip(1).step_by(2).collect();
    let mut wrong = Vec::new();
    for quote in &quoted {
        if let Some(why) = Reference::read(quote).and_then(|reference| reference.missing(root)) {
            wrong.push(format!("{ARCHITECTURE}: `{quote}`: {why}"));
        }
    }
    for mutant in reference::core_mutants(root) {
        if !quoted.contains(&format!("mutant:{mutant}").as_str()) {
            wrong.push(format!("{ARCHITECTURE}: the planted mistake {mutant} is not named"));
        }
    }
    Ok(wrong)
}

/// Each failure is told once, in order.
fn order(failures: &[Failure]) -> Vec<String> {
    let numbers: Vec<u32> = failures.iter().map(|failure| failure.number).collect();
    let mut wrong = Vec::new();
    for number in 1..=ALL {
        match numbers.iter().filter(|told| **told == number).count() {
            1 => {}
            0 => wrong.push(format!("F{number} is not told")),
            times => wrong.push(format!("F{number} is told {times} times")),
        }
    }
    if !numbers.is_sorted() {
        wrong.push("the failures are not in order".to_owned());
    }
    wrong
}
