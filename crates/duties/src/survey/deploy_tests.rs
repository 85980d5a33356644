//! Deploys as plans see them: who runs what, while nodes of two versions are there.

use std::sync::Arc;

use incumbent_planner as planner;

use super::*;
use crate::records::Catalog;
use crate::survey::known;
use incumbent_core::records::{Ask, Canary, FamilyProfile, Profile};

/// A small world in which plans come true at once.
struct Rollouts {
    survey: Survey,
    lists: BTreeMap<String, Vec<Catalog>>,
}

impl Rollouts {
    fn new() -> Self {
        Self { survey: Survey::default(), lists: BTreeMap::new() }
    }

    /// A node that lists so many duties as this version and has room for some.
    fn join(&mut self, node: &str, version: &str, duties: usize, capacity: u64) {
        self.join_as(node, version, duties, capacity, FamilyProfile::default());
    }

    fn join_as(
        &mut self,
        node: &str,
        version: &str,
        duties: usize,
        capacity: u64,
        mut family: FamilyProfile,
    ) {
        family.versions.insert(version.to_owned());
        let mut profile = Profile::named(node);
        profile.capacity = Some(capacity);
        profile.families.insert("shard".to_owned(), family);
        self.survey.members.insert(MemberId::new(node), profile);
        let spec = |at: usize| DutySpec {
            version: Some(version.to_owned()),
            ..DutySpec::named(&format!("{at:02}"))
        };
        let specs: Vec<DutySpec> = (0..duties).map(spec).collect();
        self.lists.insert(node.to_owned(), Catalog::of("shard", &specs, 1 << 20));
        self.relist();
    }

    fn leave(&mut self, node: &str) {
        let member = MemberId::new(node);
        self.survey.members.remove(&member);
        self.survey.homes.retain(|_, home| *home != member);
        self.survey.preparing.retain(|_, (who, _)| *who != member);
        self.lists.remove(node);
        self.relist();
    }

    fn relist(&mut self) {
        self.survey.duties = Arc::new(known(self.lists.values().flatten()));
        let there = crate::survey::versions(self.survey.members.values(), &self.survey.duties);
        let there = there.into_iter().map(|(family, it)| (family.to_owned(), it)).collect();
        self.survey.rollout.follow(&there);
    }

    /// Plans, and makes the plan come true.
    fn plan(&mut self) -> PlanAnswer {
        let answer = self.survey.answer(None, &planner::plan);
        let homes = answer.question.duties.iter().zip(&answer.plan.target);
        let member = |at: usize| answer.question.members.get(at).cloned();
        self.survey.homes =
            homes.filter_map(|(id, target)| Some((id.clone(), member((*target)?)?))).collect();
        let before = std::mem::take(&mut self.survey.preparing);
        for (id, member) in &answer.preparing {
            let prepared = before.get(id).is_some_and(|(who, it)| who == member && *it);
            self.survey.preparing.insert(id.clone(), (member.clone(), prepared));
        }
        answer
    }

    fn on(&self, node: &str) -> usize {
        let member = MemberId::new(node);
        self.survey.homes.values().filter(|home| **home == member).count()
    }

    fn fails(&mut self, node: &str) {
        let member = MemberId::new(node);
        let version =
            self.survey.members[&member].families["shard"].versions.first().unwrap().clone();
        let homes = self.survey.homes.iter().filter(|(_, home)| **home == member);
        for (id, _) in homes {
            self.survey.rollout.give_up("shard", id.name(), &version, "no route to host");
        }
    }
}

/// Three nodes of version 1 with room for 12 each run 32 duties.
fn running() -> Rollouts {
    let mut world = Rollouts::new();
    for node in ["old-1", "old-2", "old-3"] {
        world.join(node, "1", 32, 12);
    }
    world.plan();
    assert_eq!(world.survey.homes.len(), 32);
    world
}

#[test]
fn a_new_node_gets_what_it_has_room_for_and_the_rest_stays() {
    // Seen: 22 of 32 stood still, once one node of version 2 with room for 10 had joined.
    let mut world = running();
    world.join("new-1", "2", 32, 10);
    for _ in 0..3 {
        world.plan();
        assert_eq!((world.survey.homes.len(), world.on("new-1")), (32, 10));
    }
    let answer = world.plan();
    assert!(answer.plan.moves.is_empty(), "and then nothing moves: {:?}", answer.plan.moves);
    for (old, new) in [("old-1", "new-2"), ("old-2", "new-3"), ("old-3", "new-4")] {
        world.leave(old);
        world.join(new, "2", 32, 10);
        world.plan();
        assert_eq!(world.survey.homes.len(), 32);
    }
}

#[test]
fn nothing_is_handed_over_before_the_new_node_is_prepared() {
    let mut world = running();
    let prepares = FamilyProfile { prepares: true, ..FamilyProfile::default() };
    world.join_as("new-1", "2", 32, 10, prepares);
    let answer = world.plan();
    assert_eq!(answer.preparing.len(), 10, "as many as it has room for");
    assert_eq!((world.on("new-1"), world.survey.homes.len()), (0, 32));
    let first = answer.preparing.keys().next().unwrap().clone();
    world.survey.preparing.get_mut(&first).unwrap().1 = true;
    let answer = world.plan();
    assert_eq!((world.on("new-1"), answer.preparing.len()), (1, 9), "room stays reserved");
    assert!(answer.plan.moves.iter().any(|step| step.why == Why::Deployed));
    assert_eq!(world.survey.homes.len(), 32);
}

#[test]
fn another_node_prepares_for_what_one_was_not_prepared_for_in_time() {
    let canary = Some(Canary { duties: 1, well_ms: 60_000, ..Canary::default() });
    let prepares = || FamilyProfile { prepares: true, canary, ..FamilyProfile::default() };
    let mut world = running();
    world.join_as("new-1", "2", 32, 40, prepares());
    let answer = world.plan();
    let (id, who) = answer.preparing.first_key_value().unwrap();
    assert_eq!((answer.preparing.len(), who), (1, &MemberId::new("new-1")));
    world.join_as("new-2", "2", 32, 40, prepares());
    assert_eq!(world.plan().preparing, answer.preparing, "it stays there while it may");
    world.survey.avoided.insert(id.clone(), [who.clone()].into());
    let answer = world.plan();
    let there: Vec<_> = answer.preparing.iter().collect();
    assert_eq!(there, [(id, &MemberId::new("new-2"))], "in the same plan, although on trial");
}

#[test]
fn what_fails_on_the_new_version_goes_back_and_stays() {
    // Seen: one broken node of version 2 took all 32 and kept failing.
    let mut world = running();
    world.join("new-1", "2", 32, 40);
    world.plan();
    assert_eq!(world.on("new-1"), 32);
    world.fails("new-1");
    for _ in 0..3 {
        world.plan();
        assert_eq!((world.on("new-1"), world.survey.homes.len()), (0, 32));
    }
    world.survey.rollout.promote("shard", "2");
    world.plan();
    assert_eq!(world.on("new-1"), 32, "until an operator promotes it");
    world.fails("new-1");
    world.plan();
    world.join("newer", "3", 32, 40);
    world.plan();
    assert_eq!(world.on("newer"), 32, "or a newer one comes");
}

#[test]
fn what_fails_stays_if_the_old_version_is_gone_and_runs_rather_than_not() {
    let mut world = running();
    world.join("new-1", "2", 32, 40);
    world.plan();
    world.fails("new-1");
    for node in ["old-1", "old-2", "old-3"] {
        world.leave(node);
    }
    world.plan();
    assert_eq!(world.on("new-1"), 32);
    let full = FamilyProfile::default();
    world.join_as("old-4", "1", 32, 5, full);
    world.plan();
    assert_eq!((world.on("old-4"), world.survey.homes.len()), (5, 32), "as far as there is room");
}

#[test]
fn an_aborted_version_is_left_as_soon_as_the_old_one_is_prepared() {
    let mut world = Rollouts::new();
    let prepares = || FamilyProfile { prepares: true, ..FamilyProfile::default() };
    world.join_as("old", "1", 4, 10, prepares());
    world.plan();
    world.join("new", "2", 4, 10);
    world.plan();
    assert_eq!(world.on("new"), 4);
    world.survey.rollout.abort("shard", "2", "an operator asked for it");
    let answer = world.plan();
    assert_eq!((world.on("new"), answer.preparing.len()), (4, 4), "it runs until then");
    world.survey.preparing.values_mut().for_each(|(_, prepared)| *prepared = true);
    world.plan();
    assert_eq!(world.on("old"), 4);
    assert!(world.plan().plan.moves.is_empty());
}

#[test]
fn held_families_stay_and_those_that_lost_their_node_take_the_old_version() {
    let mut world = running();
    world.survey.asks = vec![Ask::Hold { family: "shard".to_owned() }];
    world.join("new-1", "2", 32, 40);
    world.plan();
    assert_eq!(world.on("new-1"), 0);
    world.leave("old-1");
    world.plan();
    assert_eq!((world.survey.homes.len(), world.on("new-1")), (32, 8), "24 fit on the old ones");
}

#[test]
fn of_three_versions_a_held_family_takes_none_that_is_newer_without_need() {
    // Seen: of versions 1 to 3, what lost its node of version 1 went to version 2, although
    // another node of version 1 had room.
    let mut world = Rollouts::new();
    world.join("old-1", "1", 4, 10);
    world.join("old-2", "1", 4, 10);
    world.plan();
    world.survey.asks = vec![Ask::Hold { family: "shard".to_owned() }];
    world.join("new", "2", 4, 10);
    world.join("newer", "3", 4, 10);
    world.plan();
    world.leave("old-1");
    world.plan();
    assert_eq!((world.on("old-2"), world.on("new"), world.on("newer")), (4, 0, 0));
    // Where some run version 2 already, what each of them ran decides.
    let ids: Vec<DutyId> = world.survey.duties.keys().cloned().collect();
    world.survey.homes.insert(ids[0].clone(), MemberId::new("new"));
    for (id, ran) in [(&ids[1], "1"), (&ids[2], "2")] {
        world.survey.homes.remove(id);
        world.survey.ran.insert(id.clone(), [ran.to_owned()].into());
    }
    world.plan();
    assert_eq!((world.on("old-2"), world.on("new"), world.on("newer")), (2, 2, 0));
    assert_eq!(world.survey.homes[&ids[1]], MemberId::new("old-2"));
    // And those that ran nothing that is still there run rather than not.
    world.leave("old-2");
    world.plan();
    assert_eq!((world.on("new"), world.on("newer")), (4, 0));
}

#[test]
fn a_canary_moves_so_many_and_no_more() {
    let mut world = running();
    let canary = Some(Canary { percent: 10, well_ms: 60_000, ..Canary::default() });
    world.join_as("new-1", "2", 32, 40, FamilyProfile { canary, ..FamilyProfile::default() });
    for _ in 0..3 {
        world.plan();
        assert_eq!(world.on("new-1"), 4, "a tenth of 32, and a part is a whole");
    }
    world.fails("new-1");
    for _ in 0..3 {
        world.plan();
        assert_eq!(world.on("new-1"), 0, "no others are tried in the place of those that failed");
    }
    let asked = Canary { duties: 6, ..Canary::default() };
    world.survey.asks = vec![Ask::Canary { family: "shard".to_owned(), canary: asked }];
    world.plan();
    assert_eq!(world.on("new-1"), 2, "an operator's word comes first, and four were tried");
    world.survey.rollout.promote("shard", "2");
    world.plan();
    assert_eq!(world.on("new-1"), 32);
}

#[test]
fn a_drained_node_of_the_newest_version_gives_its_duties_to_an_older_one() {
    // Seen: drain didn't help while healthy nodes of version 1 looked on.
    let mut world = running();
    world.join("new-1", "2", 32, 10);
    world.plan();
    world.survey.asks = vec![Ask::Drain { node: "new-1".to_owned() }];
    world.plan();
    assert_eq!((world.on("new-1"), world.survey.homes.len()), (0, 32));
    assert!(world.plan().plan.moves.is_empty());
}

#[test]
fn a_drained_node_gives_its_duties_to_its_own_version_first() {
    // Seen: they went to version 1 and back, although another node of version 2 had room.
    let mut world = Rollouts::new();
    world.join("x", "2", 3, 10);
    world.plan();
    world.join("y", "2", 3, 2);
    world.join("old", "1", 3, 10);
    world.survey.asks = vec![Ask::Drain { node: "x".to_owned() }];
    world.plan();
    assert_eq!((world.on("x"), world.on("y"), world.on("old")), (0, 2, 1), "as far as it fits");
    assert!(world.plan().plan.moves.is_empty());
}

#[test]
fn six_versions_of_which_only_the_oldest_has_room_are_no_reason_to_stand_still() {
    let mut world = Rollouts::new();
    for version in 1..=6 {
        let room = if version == 1 { 10 } else { 1 };
        world.join(&format!("v{version}"), &version.to_string(), 12, room);
    }
    world.plan();
    assert_eq!((world.survey.homes.len(), world.on("v1")), (12, 7));
}

#[test]
fn a_node_that_runs_both_versions_keeps_what_it_has() {
    let mut world = Rollouts::new();
    world.join("both", "1", 4, 10);
    world.plan();
    let member = MemberId::new("both");
    let family = world.survey.members.get_mut(&member).unwrap().families.get_mut("shard").unwrap();
    family.versions.insert("2".to_owned());
    world.join("new", "2", 4, 10);
    let answer = world.plan();
    let deployed = answer.plan.moves.iter().filter(|step| step.why == Why::Deployed).count();
    assert_eq!((deployed, world.survey.homes.len()), (0, 4));
}

#[test]
fn nothing_makes_room_for_a_deploy_that_will_not_make_it() {
    // A planner that imagines others stepping aside must not be taken at its word: they don't.
    let mut world = Rollouts::new();
    world.join("old", "1", 2, 10);
    world.plan();
    world.join("new", "2", 2, 1);
    let answer = world.plan();
    assert_eq!((world.on("old"), world.on("new")), (1, 1), "{:?}", answer.plan.moves);
    let answer = world.plan();
    assert!(answer.plan.moves.is_empty() && answer.preparing.is_empty());
}

#[test]
fn what_needs_no_version_keeps_off_nodes_that_would_run_a_newer_one() {
    // Any node may run a duty without a version, and a new one would run it as the new version.
    let mut world = running();
    let without: Vec<DutySpec> = (0..32).map(|at| DutySpec::named(&format!("{at:02}"))).collect();
    for node in ["old-1", "old-2", "old-3"] {
        world.lists.insert(node.to_owned(), Catalog::of("shard", &without, 1 << 20));
        let profile = world.survey.members.get_mut(&MemberId::new(node)).unwrap();
        profile.families.get_mut("shard").unwrap().versions.clear();
    }
    world.relist();
    world.survey.asks = vec![Ask::Hold { family: "shard".to_owned() }];
    world.join("new-1", "2", 32, 40);
    for _ in 0..3 {
        world.plan();
        assert_eq!(world.on("new-1"), 0, "nothing drifts there for the sake of evenness");
    }
    world.survey.asks.clear();
    world.plan();
    assert_eq!(world.on("new-1"), 32);
    world.fails("new-1");
    for _ in 0..3 {
        world.plan();
        assert_eq!((world.on("new-1"), world.survey.homes.len()), (0, 32));
    }
}
