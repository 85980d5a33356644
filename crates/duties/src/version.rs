//! Which version of a family is newer.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// What decides which of a family's versions is newer: one answer for all of them, so that there
/// can be no circle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Basis {
    /// All are semantic versions.
    Semantic,
    /// A node declares an order that names all of them.
    Declared,
    /// The order in which living nodes first listed them.
    Appearance,
}

impl fmt::Display for Basis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Semantic => "by semantic version",
            Self::Declared => "by the order that the family declares",
            Self::Appearance => "by appearance: the one that a node listed last is the newest",
        })
    }
}

/// The versions of a family that are there, in order. A duty without a version is older than any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lineage {
    basis: Basis,
    /// From 1; equals are neither newer nor older.
    ranks: BTreeMap<String, usize>,
}

impl Lineage {
    /// Orders versions: semantic ones by their meaning if all are; else by an order that nodes
    /// declare, oldest first, if one names all; else by the numbers under which they appeared.
    #[must_use]
    pub fn new<'a>(
        versions: &BTreeSet<String>,
        declared: impl IntoIterator<Item = &'a [String]>,
        appeared: &BTreeMap<String, u64>,
    ) -> Self {
        let parsed = versions.iter().map(|version| Some((version, Semantic::parse(version)?)));
        if let Some(parsed) = parsed.collect::<Option<Vec<_>>>() {
            return Self { basis: Basis::Semantic, ranks: ranked(parsed) };
        }
        let complete = |order: &&[String]| versions.iter().all(|version| order.contains(version));
        // The longest knows most of what came later; content makes the choice the same everywhere.
        let longest =
            |one: &&[String], other: &&[String]| (one.len(), *one).cmp(&(other.len(), *other));
        if let Some(order) = declared.into_iter().filter(complete).max_by(longest) {
            let place = |version: &String| order.iter().position(|it| it == version);
            let ranks = ranked(versions.iter().map(|it| (it, place(it))).collect());
            return Self { basis: Basis::Declared, ranks };
        }
        // Those that appeared together have no order but that of their names.
        let key = |version: &String| {
            (appeared.get(version).copied().unwrap_or(u64::MAX), natural(version))
        };
        let ranks = ranked(versions.iter().map(|it| (it, key(it))).collect());
        Self { basis: Basis::Appearance, ranks }
    }

    /// What decides.
    #[must_use]
    pub fn basis(&self) -> Basis {
        self.basis
    }

    /// How new a version is: more is newer, and none at all is 0.
    #[must_use]
    pub fn rank(&self, version: Option<&str>) -> usize {
        version.and_then(|version| self.ranks.get(version)).copied().unwrap_or(0)
    }

    /// The newest version.
    #[must_use]
    pub fn newest(&self) -> Option<&str> {
        self.ranks.iter().max_by_key(|(_, rank)| **rank).map(|(version, _)| version.as_str())
    }

    /// All versions, newest first.
    #[must_use]
    pub fn versions(&self) -> Vec<&str> {
        let mut all: Vec<(&str, usize)> =
            self.ranks.iter().map(|(version, rank)| (version.as_str(), *rank)).collect();
        all.sort_by_key(|(_, rank)| std::cmp::Reverse(*rank));
        all.into_iter().map(|(version, _)| version).collect()
    }
}

/// Numbers versions that have no number yet, and forgets those that are gone: should one come back, it
/// is new again. Several that are new at once, as where the store lost the numbers, go by when their
/// first node joined, and then by name. Says whether anything changed.
pub fn number(appeared: &mut BTreeMap<String, u64>, there: &BTreeMap<&str, u64>) -> bool {
    let before = appeared.clone();
    appeared.retain(|version, _| there.contains_key(version.as_str()));
    let mut last = before.values().max().copied().unwrap_or(0);
    let mut new: Vec<(&str, u64)> =
        there.iter().map(|(version, joined)| (*version, *joined)).collect();
    new.retain(|(version, _)| !appeared.contains_key(*version));
    new.sort_by_key(|(version, joined)| (*joined, natural(version)));
    for (version, _) in new {
        last = last.saturating_add(1);
        appeared.insert(version.to_owned(), last);
    }
    *appeared != before
}

/// A version by the rules of semver.org, with any number of numbers before the first `-`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Semantic {
    numbers: Vec<u64>,
    /// What is before a release: empty for the release itself.
    candidate: Vec<Identifier>,
}

/// Numbers come before words.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier {
    Number(u64),
    Word(String),
}

impl Semantic {
    /// A number alone has at most six digits: a longer one may be the hash of a commit.
    fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix(['v', 'V']).unwrap_or(text);
        let text = text.split_once('+').map_or(text, |(version, _build)| version);
        let (numbers, candidate) = match text.split_once('-') {
            Some((numbers, candidate)) => (numbers, candidate.split('.').collect()),
            None => (text, Vec::new()),
        };
        let is_lone = !numbers.contains('.');
        let number = |part: &str| {
            let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            part.parse().ok().filter(|_| digits && !(is_lone && part.len() > 6))
        };
        let mut numbers: Vec<u64> = numbers.split('.').map(number).collect::<Option<_>>()?;
        while numbers.len() > 1 && numbers.last() == Some(&0) {
            numbers.pop();
        }
        let identifier = |part: &str| {
            let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
            let valid = !part.is_empty() && part.bytes().all(word);
            let number = part.parse().map(Identifier::Number);
            valid.then(|| number.unwrap_or_else(|_| Identifier::Word(part.to_owned())))
        };
        let candidate = candidate.into_iter().map(identifier).collect::<Option<_>>()?;
        Some(Self { numbers, candidate })
    }
}

impl Ord for Semantic {
    fn cmp(&self, other: &Self) -> Ordering {
        let releases = (self.candidate.is_empty(), other.candidate.is_empty());
        let candidates = match releases {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => self.candidate.cmp(&other.candidate),
        };
        self.numbers.cmp(&other.numbers).then(candidates)
    }
}

impl PartialOrd for Semantic {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Gives equal keys the same rank, from 1.
fn ranked<K: Ord>(mut keyed: Vec<(&String, K)>) -> BTreeMap<String, usize> {
    keyed.sort_by(|(_, one), (_, other)| one.cmp(other));
    let runs = keyed.chunk_by(|(_, one), (_, other)| one == other).enumerate();
    runs.flat_map(|(rank, run)| run.iter().map(move |(it, _)| ((*it).clone(), rank + 1))).collect()
}

/// The order of names, with numbers in them as numbers: v9 before v10.
fn natural(version: &str) -> Vec<(u64, String)> {
    let digit = |byte: &u8| byte.is_ascii_digit();
    let runs = version.as_bytes().chunk_by(|one, other| digit(one) == digit(other));
    let part = |run: &[u8]| {
        let text = String::from_utf8_lossy(run).into_owned();
        (text.parse().unwrap_or(u64::MAX), text)
    };
    runs.map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(versions: &[&str]) -> BTreeSet<String> {
        versions.iter().map(|version| (*version).to_owned()).collect()
    }

    fn lineage(versions: &[&str]) -> Lineage {
        Lineage::new(&set(versions), [], &BTreeMap::new())
    }

    #[test]
    fn semantic_versions_go_by_their_meaning() {
        // The example of semver.org, and what was seen: a release candidate beat its release.
        let order = [
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-alpha.beta",
            "1.0.0-beta",
            "1.0.0-beta.2",
            "1.0.0-beta.11",
            "1.0.0-rc.1",
            "1.0.0",
            "1.9.0",
            "1.10.0",
            "v2",
            "10",
        ];
        let lineage = lineage(&order);
        assert_eq!(lineage.basis(), Basis::Semantic);
        let newest_first: Vec<&str> = order.iter().rev().copied().collect();
        assert_eq!(lineage.versions(), newest_first);
        assert_eq!(lineage.newest(), Some("10"));
    }

    #[test]
    fn builds_of_one_version_are_neither_newer_nor_older() {
        let lineage = lineage(&["1.0.0+one", "1.0+two", "0.9.0"]);
        assert_eq!(lineage.rank(Some("1.0.0+one")), lineage.rank(Some("1.0+two")));
        assert!(lineage.rank(Some("0.9.0")) < lineage.rank(Some("1.0+two")));
        assert_eq!(lineage.rank(None), 0);
        assert!(lineage.rank(Some("0.9.0")) > 0);
    }

    #[test]
    fn what_is_not_semantic_is_not_taken_for_it() {
        for text in
            ["", "v", "abc1234", "1234567", "1..2", "1.2-", "1.2-a..b", "1.2-ü", "-1", "1.-2"]
        {
            assert_eq!(Semantic::parse(text), None, "{text:?}");
        }
        assert!(Semantic::parse(&format!("{}.1", u64::MAX)).is_some());
        assert_eq!(Semantic::parse(&format!("{}0.1", u64::MAX)), None, "too large a number");
    }

    #[test]
    fn hashes_go_by_a_declared_order_if_it_names_all() {
        let (short, long) =
            (["c0ffee", "bad"].map(str::to_owned), ["c0ffee", "bad", "abc"].map(str::to_owned));
        let appeared =
            [("abc".to_owned(), 1), ("bad".to_owned(), 2), ("c0ffee".to_owned(), 3)].into();
        let three = set(&["abc", "bad", "c0ffee"]);
        let declared = Lineage::new(&three, [short.as_slice(), long.as_slice()], &appeared);
        assert_eq!(declared.basis(), Basis::Declared);
        assert_eq!(declared.versions(), ["abc", "bad", "c0ffee"]);
        let by_appearance = Lineage::new(&three, [short.as_slice()], &appeared);
        assert_eq!(by_appearance.basis(), Basis::Appearance);
        assert_eq!(by_appearance.versions(), ["c0ffee", "bad", "abc"]);
    }

    #[test]
    fn a_version_that_comes_back_is_new_again() {
        let mut appeared = BTreeMap::new();
        let versions = set(&["a1b2c3d", "00ff00f"]);
        let both = BTreeMap::from([("a1b2c3d", 1), ("00ff00f", 2)]);
        assert!(number(&mut appeared, &BTreeMap::from([("a1b2c3d", 1)])));
        assert!(number(&mut appeared, &both));
        assert_eq!(Lineage::new(&versions, [], &appeared).newest(), Some("00ff00f"));
        assert!(!number(&mut appeared, &both), "nothing is new");
        assert!(number(&mut appeared, &BTreeMap::from([("00ff00f", 2)])));
        assert!(number(&mut appeared, &both));
        let back = Lineage::new(&versions, [], &appeared);
        assert_eq!(back.newest(), Some("a1b2c3d"), "a roll-back to an earlier hash is new");
    }

    #[test]
    fn where_the_numbers_were_lost_who_joined_first_is_older() {
        let mut appeared = BTreeMap::new();
        number(&mut appeared, &BTreeMap::from([("00ff00f", 7), ("a1b2c3d", 3), ("fffffff", 9)]));
        let versions = set(&["a1b2c3d", "00ff00f", "fffffff"]);
        let lineage = Lineage::new(&versions, [], &appeared);
        assert_eq!(lineage.versions(), ["fffffff", "00ff00f", "a1b2c3d"]);
    }

    #[test]
    fn one_that_is_not_semantic_takes_all_to_the_same_order() {
        // Compared two by two, 1.0 < 2.0 < abc < 1.0 would be a circle.
        let appeared = [("2.0".to_owned(), 1), ("abc".to_owned(), 2), ("1.0".to_owned(), 3)].into();
        let lineage = Lineage::new(&set(&["1.0", "2.0", "abc"]), [], &appeared);
        assert_eq!(lineage.basis(), Basis::Appearance);
        assert_eq!(lineage.versions(), ["1.0", "abc", "2.0"]);
    }
}
