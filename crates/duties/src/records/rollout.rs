use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::version;
use incumbent_core::records::{self, Content, Extra, FORMAT};

/// How many bytes of names and reasons are kept about duties that came back from a version.
const MAX_RETURNED: usize = 48 << 10;

/// How long a reason may be.
const MAX_REASON: usize = 200;

/// How long a version may be to be numbered.
const MAX_VERSION: usize = 200;

/// How many families are kept; of others versions go by their names.
const MAX_FAMILIES: usize = 500;

/// What the leader remembers about new versions of families.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Rollout {
    /// The format number.
    pub format: u32,
    /// The term of the leader that wrote it.
    pub term: u64,
    /// Families whose duties or nodes name versions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub families: BTreeMap<String, FamilyRollout>,
    /// Fields of other versions.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What is remembered of a family. Whatever is about a version is forgotten when its last node
/// has gone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FamilyRollout {
    /// Versions, numbered as living nodes first listed them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub appeared: BTreeMap<String, u64>,
    /// Duties, by name, with the versions that they failed on, and why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub returned: BTreeMap<String, BTreeMap<String, String>>,
    /// Versions that no duty of the family shall run, and why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub aborted: BTreeMap<String, String>,
    /// Versions that are no longer on trial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub promoted: Vec<String>,
    /// Fields of other versions.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Rollout {
    /// Nothing known yet.
    #[must_use]
    pub fn none(term: u64) -> Self {
        Self { format: FORMAT, term, ..Self::default() }
    }

    /// Takes in which versions of each family there are, with when the first node of each joined, and
    /// forgets the others.
    pub fn follow(&mut self, there: &BTreeMap<String, BTreeMap<String, u64>>) {
        self.families.retain(|family, _| there.contains_key(family));
        for (family, versions) in there {
            if self.families.len() >= MAX_FAMILIES && !self.families.contains_key(family) {
                continue;
            }
            let known = self.families.entry(family.clone()).or_default();
            let short = versions.iter().filter(|(version, _)| version.len() <= MAX_VERSION);
            let short = short.map(|(version, joined)| (version.as_str(), *joined)).collect();
            version::number(&mut known.appeared, &short);
            known.promoted.retain(|version| versions.contains_key(version));
            known.aborted.retain(|version, _| versions.contains_key(version));
            for tried in known.returned.values_mut() {
                tried.retain(|version, _| versions.contains_key(version));
            }
            known.returned.retain(|_, tried| !tried.is_empty());
        }
    }

    /// Remembers that a duty is not to try a version again. Where too many would have to be
    /// remembered, no duty of the family shall run it.
    pub fn give_up(&mut self, family: &str, duty: &str, version: &str, why: &str) {
        let why: String = why.chars().take(MAX_REASON).collect();
        let full = self.returned_bytes() + duty.len() + version.len() + why.len() > MAX_RETURNED;
        let known = self.families.entry(family.to_owned()).or_default();
        if full {
            for tried in known.returned.values_mut() {
                tried.remove(version);
            }
            known.returned.retain(|_, tried| !tried.is_empty());
            let why = format!("too many duties failed on it, the last: {why}");
            known.aborted.insert(version.to_owned(), why);
        } else {
            let tried = known.returned.entry(duty.to_owned()).or_default();
            tried.entry(version.to_owned()).or_insert(why);
        }
    }

    /// An operator wants a version for all duties of a family: what speaks against it is
    /// forgotten.
    pub fn promote(&mut self, family: &str, version: &str) {
        let known = self.families.entry(family.to_owned()).or_default();
        known.allow(version);
        if !known.promoted.iter().any(|it| it == version) {
            known.promoted.push(version.to_owned());
        }
    }

    /// An operator wants a version for no duty of a family.
    pub fn abort(&mut self, family: &str, version: &str, why: &str) {
        let known = self.families.entry(family.to_owned()).or_default();
        known.promoted.retain(|it| it != version);
        known.aborted.insert(version.to_owned(), why.chars().take(MAX_REASON).collect());
    }

    fn returned_bytes(&self) -> usize {
        let tried = |(duty, tried): (&String, &BTreeMap<String, String>)| {
            tried.iter().map(|(version, why)| duty.len() + version.len() + why.len()).sum::<usize>()
        };
        self.families.values().flat_map(|family| family.returned.iter().map(tried)).sum()
    }
}

impl FamilyRollout {
    /// Why a duty shall not run a version, if it shall not.
    #[must_use]
    pub fn against(&self, duty: &str, version: &str) -> Option<&str> {
        let failed = self.returned.get(duty).and_then(|tried| tried.get(version));
        failed.or_else(|| self.aborted.get(version)).map(String::as_str)
    }

    /// How many duties came back from a version.
    #[must_use]
    pub fn failures(&self, version: &str) -> usize {
        self.returned.values().filter(|tried| tried.contains_key(version)).count()
    }

    fn allow(&mut self, version: &str) {
        self.aborted.remove(version);
        for tried in self.returned.values_mut() {
            tried.remove(version);
        }
        self.returned.retain(|_, tried| !tried.is_empty());
    }
}

impl Content for Rollout {
    fn format(&self) -> u32 {
        self.format
    }

    fn check(&self) -> Result<(), String> {
        records::check_term(self.term)
    }
}
