//! What versions there are, and what each duty runs as.

use std::collections::BTreeMap;

use super::{Asks, Descriptions, Survey};
use crate::duty::DutyId;
use crate::records::DutySpec;
use crate::version::Lineage;
use incumbent_core::names::MemberId;
use incumbent_core::records::{Canary, FamilyProfile, Profile};

/// A new version that only some duties run before the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    /// The new version.
    pub version: String,
    /// How it is tried.
    pub canary: Canary,
    /// How many duties may run it.
    pub limit: usize,
    /// Those that do.
    pub there: Vec<DutyId>,
    /// How many came back.
    pub failed: usize,
}

impl Survey {
    /// The order of the versions of each family that names any.
    #[must_use]
    pub fn lineages(&self) -> BTreeMap<&str, Lineage> {
        let none = BTreeMap::new();
        let mut lineages = BTreeMap::new();
        for (family, versions) in versions(self.members.values(), &self.duties) {
            let known = self.rollout.families.get(family);
            let appeared = known.map_or(&none, |known| &known.appeared);
            let declared = self.served(family).map(|(_, served)| served.order.as_slice());
            let lineage = Lineage::new(&versions.into_keys().collect(), declared, appeared);
            lineages.insert(family, lineage);
        }
        lineages
    }

    /// What a duty runs as on a node, or would: the newest of its versions that the node can run.
    #[must_use]
    pub fn runs_as<'a>(
        &self,
        node: &MemberId,
        id: &DutyId,
        specs: &'a Descriptions,
        lineage: Option<&Lineage>,
    ) -> Option<&'a DutySpec> {
        runs_as(self.members.get(node)?.families.get(id.family())?, specs, lineage)
    }

    /// How the newest version of a family is tried, if it is on trial: older ones are there, it has
    /// not been well for long enough, and an operator or its own nodes want it tried.
    #[must_use]
    pub fn trial(&self, family: &str, lineage: &Lineage) -> Option<Trial> {
        let newest = Some(lineage.newest()?.to_owned());
        let version = newest.clone()?;
        let known = self.rollout.families.get(family);
        if known.is_some_and(|known| known.promoted.contains(&version)) {
            return None;
        }
        let asked = Asks::sort(&self.asks).canaries.get(family).copied();
        let canary = asked.or_else(|| {
            let served = self.served(family).map(|(_, served)| served);
            served.filter(|it| it.versions.contains(&version)).find_map(|it| it.canary)
        })?;
        let duties = self.duties.iter().filter(|(id, _)| id.family() == family);
        let duties: Vec<_> = duties.filter(|(_, specs)| specs.contains_key(&newest)).collect();
        if duties.iter().all(|(_, specs)| specs.len() == 1) {
            return None;
        }
        let runs_it = |(id, specs): &&(&DutyId, &Descriptions)| {
            let home = self.homes.get(*id);
            let runs = home.and_then(|home| self.runs_as(home, id, specs, Some(lineage)));
            runs.is_some_and(|spec| spec.version == newest)
        };
        let there = duties.iter().filter(runs_it).map(|(id, _)| (*id).clone()).collect();
        let failed = known.map_or(0, |known| known.failures(&version));
        Some(Trial { version, canary, limit: canary.limit(duties.len()), there, failed })
    }

    /// Whether something speaks against a duty's running as described.
    #[must_use]
    pub fn is_against(&self, id: &DutyId, spec: &DutySpec) -> bool {
        let known = self.rollout.families.get(id.family());
        let version = spec.version.as_deref();
        known.zip(version).is_some_and(|(known, it)| known.against(id.name(), it).is_some())
    }

    /// Whether a duty doesn't run on its node although it should.
    pub(super) fn is_down(&self, id: &DutyId, home: &MemberId, runs_as: &DutySpec) -> bool {
        let known = self.rollout.families.get(id.family());
        let tried = known.and_then(|known| known.returned.get(id.name()));
        let version = runs_as.version.as_ref();
        tried.zip(version).is_some_and(|(tried, version)| tried.contains_key(version))
            || self.avoided.get(id).is_some_and(|avoided| avoided.contains(home))
    }

    /// The member behind the first node of this name.
    pub(crate) fn named(&self, node: &str) -> Option<&MemberId> {
        self.members.iter().find(|(_, profile)| profile.node == node).map(|(id, _)| id)
    }

    fn served(&self, family: &str) -> impl Iterator<Item = (&MemberId, &FamilyProfile)> {
        self.members.iter().filter_map(move |(id, it)| Some((id, it.families.get(family)?)))
    }
}

/// What a duty runs as, or would, where a family is served so.
#[must_use]
pub fn runs_as<'a>(
    family: &FamilyProfile,
    specs: &'a Descriptions,
    lineage: Option<&Lineage>,
) -> Option<&'a DutySpec> {
    let able = specs.values().map(Box::as_ref).filter(|spec| is_able(family, spec));
    able.max_by_key(|spec| rank(lineage, spec))
}

/// All versions of each family that nodes can run or duties need, with when the first of these nodes
/// joined.
pub fn versions<'a>(
    nodes: impl IntoIterator<Item = &'a Profile>,
    duties: &'a BTreeMap<DutyId, Descriptions>,
) -> BTreeMap<&'a str, BTreeMap<String, u64>> {
    let mut versions: BTreeMap<&str, BTreeMap<String, u64>> = BTreeMap::new();
    for profile in nodes {
        for (family, served) in profile.families.iter().filter(|(_, it)| !it.versions.is_empty()) {
            let known = versions.entry(family).or_default();
            for version in &served.versions {
                let joined = known.entry(version.clone()).or_insert(u64::MAX);
                *joined = profile.joined_ms.min(*joined);
            }
        }
    }
    // Mostly a duty has the family and the version of the one before it.
    let mut last = None;
    for (id, specs) in duties {
        for version in specs.keys().flatten() {
            let this = Some((id.family(), version));
            if last == this {
                continue;
            }
            last = this;
            let known = versions.entry(id.family()).or_default();
            if !known.contains_key(version) {
                known.insert(version.clone(), u64::MAX);
            }
        }
    }
    versions
}

/// How new a description is.
pub(super) fn rank(lineage: Option<&Lineage>, spec: &DutySpec) -> usize {
    lineage.map_or(0, |lineage| lineage.rank(spec.version.as_deref()))
}

pub(super) fn is_able(family: &FamilyProfile, spec: &DutySpec) -> bool {
    spec.version.as_ref().is_none_or(|version| family.versions.contains(version))
}
