//! Checks docs/failures.md: what it says is shown somewhere is shown there.

mod page;
mod reference;

use std::path::Path;

use anyhow::{Context as _, Result};

use page::{Failure, Origin};
use reference::Reference;

const PAGE: &str = "docs/failures.md";
/// This page names invariants and planted mistakes in the same way.
const ARCHITECTURE: &str = "ARCHITECTURE.md";
/// How many failures of others the page tells, and how many of our own at least. Numbers above that
/// may have gaps, because several people add to the page at once.
const ALL: u32 = 72;
const OURS: u32 = 24;
/// Each of these must be shown by something that runs.
const COVERED: u32 = ALL;

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
            wrong.extend(missing.map(|why| format!("{failure}: `{shown}`: {why}")));
        }
        if failure.shown_by.is_empty() {
            uncovered.push(failure);
        }
    }
    let must = |failure: &Failure| failure.origin == Origin::Ours || failure.number <= COVERED;
    for failure in &uncovered {
        if must(failure) {
            wrong.push(format!("{failure} has no cover: {}", failure.title));
        } else {
            println!("{failure} is not shown yet: {} ({})", failure.title, failure.planned);
        }
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
    for mutant in reference::mutants(root) {
        if !quoted.contains(&format!("mutant:{mutant}").as_str()) {
            wrong.push(format!("{ARCHITECTURE}: the planted mistake {mutant} is not named"));
        }
    }
    Ok(wrong)
}

/// Each failure is told once, in order, and none up to these numbers is missing.
fn order(failures: &[Failure]) -> Vec<String> {
    let told: Vec<(Origin, u32)> =
        failures.iter().map(|failure| (failure.origin, failure.number)).collect();
    let elsewhere = (1..=ALL).map(|number| (Origin::Elsewhere, number));
    let ours = (1..=OURS).map(|number| (Origin::Ours, number));
    let mut wrong = Vec::new();
    for (origin, number) in elsewhere.chain(ours) {
        let failure = Failure { origin, number, ..Failure::default() };
        if !told.contains(&(origin, number)) {
            wrong.push(format!("{failure} is not told"));
        }
    }
    for (failure, next) in failures.iter().zip(told.iter().skip(1)) {
        if (failure.origin, failure.number) == *next {
            wrong.push(format!("{failure} is told twice"));
        }
    }
    if !told.is_sorted() {
        wrong.push("the failures are not in order".to_owned());
    }
    wrong
}
