//! References from the page to what shows something, and whether that exists.

use std::path::Path;

use crate::tree;

/// Something that shows what happens here instead.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reference<'a> {
    /// `test:path/to/file.rs::function`
    Test { file: &'a str, function: &'a str },
    /// `invariant:one-leader`: a checker of the simulator, or of the drill.
    Invariant(&'a str),
    /// `mutant:no-margin`: a planted mistake.
    Mutant(&'a str),
    /// `fault:store-clock-jump`: something that the simulator does to clusters.
    Fault(&'a str),
    /// `boundary:late-read`: a scripted run of the simulator.
    Boundary(&'a str),
    /// `kit:swap-once`: a property of the conformance kit.
    Kit(&'a str),
}

impl<'a> Reference<'a> {
    pub(super) fn read(text: &'a str) -> Option<Self> {
        let (kind, rest) = text.split_once(':')?;
        Some(match kind {
            "test" => {
                let (file, function) = rest.split_once("::")?;
                Self::Test { file, function }
            }
            "invariant" => Self::Invariant(rest),
            "mutant" => Self::Mutant(rest),
            "fault" => Self::Fault(rest),
            "boundary" => Self::Boundary(rest),
            "kit" => Self::Kit(rest),
            _ => return None,
        })
    }

    /// Why this isn't there, if it isn't.
    pub(super) fn missing(&self, root: &Path) -> Option<String> {
        match *self {
            Self::Test { file, function } => {
                let Some(text) = tree::text(root, file) else {
                    return Some(format!("there is no file {file}"));
                };
                (!has_test(&text, function)).then(|| format!("{file} has no test {function}"))
            }
            Self::Invariant(name) => {
                let wanted = format!("\"{name}\"");
                let drill = format!("crates/drill/src/invariants/{}.rs", name.replace('-', "_"));
                let drilled = says(root, &drill, &wanted).is_none();
                says(root, "crates/sim/src/invariants.rs", &wanted).filter(|_| !drilled)
            }
            Self::Kit(name) => {
                says(root, "crates/testkit/src/properties/mod.rs", &format!("property!(\"{name}\""))
            }
            Self::Boundary(name) => {
                says(root, "crates/sim/src/boundaries.rs", &format!("name: \"{name}\""))
            }
            Self::Fault(name) => {
                says(root, "crates/sim/src/scenario.rs", &format!("Fault::{}", camel(name)))
            }
            Self::Mutant(name) => {
                let variant = camel(name);
                let flaw = camel(name.strip_prefix("store-").unwrap_or(name));
                let core = format!("Self::{variant} =>");
                let found = says(root, "crates/core/src/mutant.rs", &core).is_none()
                    || says(root, "crates/incumbent/src/driver/mutant.rs", &core).is_none()
                    || says(root, "crates/sim/src/plant.rs", &format!("Self::{variant}")).is_none()
                    || says(root, "crates/sim/src/plant.rs", &format!("Flaw::{flaw}")).is_none();
                (!found).then(|| "there is no such planted mistake".to_owned())
            }
        }
    }
}

/// Nothing if the file has this text as a whole word.
fn says(root: &Path, file: &str, wanted: &str) -> Option<String> {
    let Some(text) = tree::text(root, file) else {
        return Some(format!("there is no file {file}"));
    };
    let found = text.match_indices(wanted).any(|(at, _)| {
        let after = text.get(at + wanted.len()..).and_then(|rest| rest.chars().next());
        !after.is_some_and(|after| after.is_alphanumeric() || after == '_')
    });
    (!found).then(|| format!("{file} doesn't say {wanted}"))
}

/// Whether a function of this name stands below an attribute that makes it a test.
fn has_test(text: &str, function: &str) -> bool {
    let wanted = format!("fn {function}(");
    let mut marked = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            marked = true;
        } else if marked && line.contains(&wanted) {
            return true;
        } else if line.contains("fn ") {
            marked = false;
        }
    }
    false
}

/// The names of all mistakes that can be planted in the core, or in driver and runners.
pub(super) fn mutants(root: &Path) -> Vec<String> {
    let files = ["crates/core/src/mutant.rs", "crates/incumbent/src/driver/mutant.rs"];
    files.iter().flat_map(|file| mutants_of(root, file)).collect()
}

fn mutants_of(root: &Path, file: &str) -> Vec<String> {
    let text = tree::text(root, file).unwrap_or_default();
    let listed = text.lines().skip_while(|line| !line.contains("const ALL")).skip(1);
    let listed = listed.take_while(|line| !line.contains("];"));
    let variant = |line: &str| {
        line.trim().strip_prefix("Self::").map(|name| kebab(name.trim_end_matches(',')))
    };
    listed.filter_map(variant).collect()
}

fn kebab(name: &str) -> String {
    let mut kebab = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !kebab.is_empty() {
            kebab.push('-');
        }
        kebab.extend(letter.to_lowercase());
    }
    kebab
}

fn camel(name: &str) -> String {
    let capital = |word: &str| {
        let mut letters = word.chars();
        letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
    };
    name.split('-').map(capital).collect::<Vec<String>>().concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_found_and_what_is_not_is_not() {
        let root = tree::root().unwrap();
        for there in [
            "test:xtask/src/failures/reference.rs::what_is_there_is_found_and_what_is_not_is_not",
            "invariant:one-leader",
            "mutant:trust-from-reply",
            "mutant:store-blind-swap",
            "mutant:clock-stops",
            "mutant:guard-skips-trust",
            "invariant:steps",
            "fault:store-clock-jump",
            "boundary:late-read",
            "kit:swap-once",
        ] {
            assert_eq!(Reference::read(there).unwrap().missing(&root), None, "{there}");
        }
        for not_there in [
            "test:xtask/src/failures/reference.rs::has_test",
            "test:xtask/src/nowhere.rs::anything",
            "invariant:two-leaders",
            "mutant:trust-from",
            "fault:flood",
            "kit:swap",
        ] {
            assert!(Reference::read(not_there).unwrap().missing(&root).is_some(), "{not_there}");
        }
        assert_eq!(Reference::read("hope:for-the-best"), None);
    }

    #[test]
    fn all_mutants_are_known() {
        let mutants = mutants(&tree::root().unwrap());
        assert!(mutants.len() > 25, "{mutants:?}");
        assert!(mutants.contains(&"trust-from-reply".to_owned()));
        assert!(mutants.contains(&"guard-skips-trust".to_owned()));
        assert!(mutants.iter().all(|name| kebab(&camel(name)) == *name));
    }
}
