//! From records to the question that the planner answers.

mod basis;
mod deploy;
mod versions;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use incumbent_planner as planner;

use crate::duty::DutyId;
use crate::records::{Catalog, DutySpec, Rollout, Roster};
use incumbent_core::mutant::Planted;
use incumbent_core::names::MemberId;
use incumbent_core::records::{Ask, Canary, Profile};

pub use basis::{ASKED, LeaderMemory, PlanBasis, loads, prepared};
pub use deploy::PlanAnswer;
pub use versions::{Trial, runs_as, versions};

/// What lists say about a duty, by the version that it needs. Almost every duty has one version, and a map
/// keeps room for eleven: what it keeps should be small.
pub type Descriptions = BTreeMap<Option<String>, Box<DutySpec>>;

/// All that a plan depends on.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// The members that are alive and have said who they are.
    pub members: BTreeMap<MemberId, Profile>,
    /// Which of them leads.
    pub leader: Option<MemberId>,
    /// What they have to do beside their duties.
    pub loads: BTreeMap<MemberId, u64>,
    /// All duties that should run.
    pub duties: Arc<BTreeMap<DutyId, Descriptions>>,
    /// Where each runs, or was asked to run.
    pub homes: BTreeMap<DutyId, MemberId>,
    /// What the last node of a duty could run, where it is known to be gone.
    pub ran: BTreeMap<DutyId, BTreeSet<String>>,
    /// Where each failed or never started.
    pub avoided: BTreeMap<DutyId, BTreeSet<MemberId>>,
    /// What operators ask for.
    pub asks: Vec<Ask>,
    /// Lists are missing that members name: nothing changes its version meanwhile.
    pub incomplete: bool,
    /// What is remembered about versions.
    pub rollout: Rollout,
    /// Who prepares for which duty, and whether it said that it has.
    pub preparing: BTreeMap<DutyId, (MemberId, bool)>,
    /// How to place.
    pub policy: planner::Policy,
    /// A mistake that is made on purpose.
    pub planted: Planted,
}

/// The question, and whom its indexes mean.
#[derive(Clone, Debug)]
pub struct Question {
    /// What the planner is asked.
    pub situation: planner::Situation,
    /// The members behind its nodes.
    pub members: Vec<MemberId>,
    /// The duties behind its duties.
    pub duties: Vec<DutyId>,
}

/// What operators ask for, by what it is about.
#[derive(Default)]
struct Asks<'a> {
    pins: BTreeMap<&'a str, planner::Pin>,
    moves: BTreeMap<&'a str, &'a str>,
    paused: BTreeSet<&'a str>,
    cordoned: BTreeSet<&'a str>,
    drained: BTreeSet<&'a str>,
    frozen: bool,
    held: BTreeSet<&'a str>,
    canaries: BTreeMap<&'a str, Canary>,
}

impl<'a> Asks<'a> {
    fn sort(asks: &'a [Ask]) -> Self {
        let mut sorted = Self::default();
        for ask in asks {
            match ask {
                Ask::Resign { .. } | Ask::Promote { .. } | Ask::Abort { .. } => {}
                Ask::Pin { duty, node, required: true } => {
                    sorted.pins.insert(duty, planner::Pin::Required(node.clone()));
                }
                Ask::Pin { duty, node, required: false } => {
                    sorted.pins.insert(duty, planner::Pin::Preferred(node.clone()));
                }
                Ask::Pause { duty } => {
                    sorted.paused.insert(duty);
                }
                Ask::Move { duty, node } => {
                    sorted.moves.insert(duty, node);
                }
                Ask::Cordon { node } => {
                    sorted.cordoned.insert(node);
                }
                Ask::Drain { node } => {
                    sorted.drained.insert(node);
                }
                Ask::Freeze => sorted.frozen = true,
                Ask::Hold { family } => {
                    sorted.held.insert(family);
                }
                Ask::Canary { family, canary } => {
                    sorted.canaries.insert(family, *canary);
                }
            }
        }
        sorted
    }
}

impl Survey {
    /// The question for the planner, with one description for each duty. What operators ask of
    /// unknown nodes or duties changes nothing (F43).
    fn question<'a>(
        &self,
        asks: &Asks<'_>,
        chosen: impl IntoIterator<Item = Option<&'a DutySpec>>,
    ) -> Question {
        let members: Vec<MemberId> = self.members.keys().cloned().collect();
        let at: BTreeMap<&MemberId, usize> =
            members.iter().enumerate().map(|(at, id)| (id, at)).collect();
        let nodes = self.members.iter().map(|(id, profile)| self.node(id, profile, asks));
        let nodes: Vec<planner::PlanNode> = nodes.collect();
        let named = |name: &str| nodes.iter().position(|node| node.name == name);
        // Both are in the same order: to look each up would take longer than all else here.
        let mut homes = self.homes.iter().peekable();
        let mut home_of = |id: &DutyId| {
            while homes.next_if(|(duty, _)| *duty < id).is_some() {}
            homes.next_if(|(duty, _)| *duty == id).map(|(_, member)| member)
        };
        let duties = self.duties.keys().zip(chosen).map(|(id, spec)| {
            let avoided = self.avoided.get(id).into_iter().flatten();
            let mut duty = spec.map_or_else(
                || planner::PlanDuty::new(id.family(), id.name()),
                |spec| described(id, spec),
            );
            duty.avoid = avoided.filter_map(|member| at.get(member).copied()).collect();
            duty.running = home_of(id).and_then(|member| at.get(member).copied());
            duty.paused = asks.paused.contains(id.as_str());
            if let Some(pin) = asks.pins.get(id.as_str()) {
                duty.pin = Some(pin.clone());
            }
            if let Some(to) = asks.moves.get(id.as_str()).and_then(|node| named(node)) {
                // It stays where it is thought to be, unless a rule forbids that.
                duty.running = Some(to);
            }
            duty
        });
        let duties = duties.collect();
        let mut policy = self.policy.clone();
        if asks.frozen {
            policy.rebalance = planner::Rebalance::Not;
        }
        let ids = self.duties.keys().cloned().collect();
        let situation = planner::Situation { nodes, duties, policy };
        Question { situation, members, duties: ids }
    }

    /// How many duties a roster can name in a store that takes values of this size, if it is fewer than
    /// there are.
    #[must_use]
    pub fn room(&self, max_value: usize) -> Option<u32> {
        let room = Roster::room(max_value, self.duties.keys());
        (room < self.duties.len()).then(|| u32::try_from(room).unwrap_or(u32::MAX))
    }

    /// The duties that go where an operator asked for, with the node that has them and the one
    /// that gets them. The planner takes them to be there already, so that it names no such move.
    #[must_use]
    pub fn asked_for<'a>(
        &'a self,
        question: &'a Question,
        plan: &planner::Plan,
    ) -> Vec<(&'a DutyId, Option<&'a str>, &'a str)> {
        let asked = Asks::sort(&self.asks).moves;
        if asked.is_empty() {
            return Vec::new();
        }
        let node = |id: &MemberId| self.members.get(id).map(|profile| profile.node.as_str());
        let come_true = |(duty, target): (&'a DutyId, &Option<usize>)| {
            let to = question.members.get((*target)?)?;
            let from = self.homes.get(duty);
            let is_asked = asked.get(duty.as_str()).copied() == node(to);
            (is_asked && from != Some(to)).then_some((duty, from.and_then(node), node(to)?))
        };
        question.duties.iter().zip(&plan.target).filter_map(come_true).collect()
    }

    /// The name of the node that has this index in a plan.
    #[must_use]
    pub fn node_at(&self, question: &Question, at: Option<usize>) -> Option<&str> {
        let member = question.members.get(at?)?;
        self.members.get(member).map(|profile| profile.node.as_str())
    }

    fn node(&self, id: &MemberId, profile: &Profile, asks: &Asks<'_>) -> planner::PlanNode {
        let support = |family: &incumbent_core::records::FamilyProfile| planner::FamilySupport {
            versions: family.versions.clone(),
            max_per_node: family.max_per_node,
        };
        planner::PlanNode {
            id: id.as_str().to_owned(),
            name: profile.node.clone(),
            labels: profile.labels.clone(),
            capacity: profile.capacity,
            max_duties: profile.max_duties,
            families: profile
                .families
                .iter()
                .map(|(name, family)| (name.clone(), support(family)))
                .collect(),
            load: self.loads.get(id).copied().unwrap_or(0),
            cordoned: asks.cordoned.contains(profile.node.as_str()),
            draining: asks.drained.contains(profile.node.as_str()),
            leader: self.leader.as_ref() == Some(id),
        }
    }
}

fn described(id: &DutyId, spec: &DutySpec) -> planner::PlanDuty {
    planner::PlanDuty {
        weight: spec.weight,
        version: spec.version.clone(),
        group: spec.group.clone(),
        selector: spec.selector.clone(),
        apart: spec.apart.clone(),
        spread: spec.spread.clone(),
        pin: spec.prefers.clone().map(planner::Pin::Preferred),
        leader: spec.leader,
        ..planner::PlanDuty::new(id.family(), id.name())
    }
}

/// All duties that catalogs list, each as every version describes it.
pub fn known<'a>(
    catalogs: impl IntoIterator<Item = &'a Catalog>,
) -> BTreeMap<DutyId, Descriptions> {
    let mut known: BTreeMap<DutyId, Descriptions> = BTreeMap::new();
    for catalog in catalogs {
        for spec in &catalog.duties {
            let Ok(id) = DutyId::new(&catalog.family, &spec.name) else { continue };
            let described = known.entry(id).or_default();
            let there = described.get(&spec.version);
            // Where lists differ about a version, content decides and not the order of reading.
            let content = |spec: &DutySpec| format!("{spec:?}");
            if there.is_none_or(|there| **there != *spec && content(there) < content(spec)) {
                described.insert(spec.version.clone(), Box::new(spec.clone()));
            }
        }
    }
    known
}

#[cfg(test)]
mod tests {
    use super::*;

    fn versioned(name: &str, version: &str) -> DutySpec {
        DutySpec { version: Some(version.to_owned()), ..DutySpec::named(name) }
    }

    #[test]
    fn every_version_of_a_duty_is_known_whatever_the_order() {
        let old = Catalog::of("p", &[versioned("a", "9"), DutySpec::named("only-old")], 1 << 20);
        let new = Catalog::of("p", &[versioned("a", "10"), DutySpec::named("only-new")], 1 << 20);
        let one = known(old.iter().chain(&new));
        assert_eq!(one, known(new.iter().chain(&old)));
        assert_eq!(one.len(), 3);
        let a = one.get(&DutyId::new("p", "a").unwrap()).unwrap();
        assert_eq!(a.len(), 2);
        let heavy = DutySpec { weight: 7, ..versioned("a", "9") };
        let heavy = Catalog::of("p", &[heavy], 1 << 20);
        assert_eq!(known(old.iter().chain(&heavy)), known(heavy.iter().chain(&old)));
    }

    #[test]
    fn a_move_that_an_operator_asked_for_is_named_once() {
        let [one, two] = ["m1", "m2"].map(MemberId::new);
        let able = |name: &str| {
            let mut profile = Profile::named(name);
            profile
                .families
                .insert("p".to_owned(), incumbent_core::records::FamilyProfile::default());
            profile
        };
        let duties =
            known(&Catalog::of("p", &[DutySpec::named("a"), DutySpec::named("b")], 1 << 20));
        let homes = duties.keys().map(|duty| (duty.clone(), one.clone())).collect();
        let mut survey = Survey {
            members: [(one, able("one")), (two.clone(), able("two"))].into(),
            duties: Arc::new(duties),
            homes,
            asks: vec![Ask::Move { duty: "p/a".into(), node: "two".into() }],
            ..Survey::default()
        };
        let PlanAnswer { question, plan, .. } = survey.answer(None, &planner::plan);
        let a = DutyId::new("p", "a").unwrap();
        assert_eq!(survey.asked_for(&question, &plan), [(&a, Some("one"), "two")]);
        assert!(plan.moves.iter().all(|step| question.duties[step.duty] != a), "{plan:?}");
        survey.homes.insert(a, two);
        let PlanAnswer { question, plan, .. } = survey.answer(None, &planner::plan);
        assert_eq!(survey.asked_for(&question, &plan), [], "it is there");
    }

    #[test]
    fn asks_about_what_is_unknown_change_nothing() {
        // F43: a rule that named an unknown agent poisoned every evaluation elsewhere.
        let member = MemberId::new("m1");
        let mut survey = Survey {
            members: [(member, Profile::named("one"))].into(),
            duties: Arc::new(known(&Catalog::of("p", &[DutySpec::named("a")], 1 << 20))),
            ..Survey::default()
        };
        let before = survey.answer(None, &planner::plan).question.situation;
        survey.asks = vec![
            Ask::Pin { duty: "p/ghost".into(), node: "one".into(), required: true },
            Ask::Pause { duty: "no slash".into() },
            Ask::Move { duty: "p/a".into(), node: "ghost".into() },
            Ask::Cordon { node: "ghost".into() },
            Ask::Drain { node: String::new() },
        ];
        let after = survey.answer(None, &planner::plan).question.situation;
        assert_eq!(before.nodes, after.nodes);
        assert_eq!(before.duties, after.duties);
    }
}
