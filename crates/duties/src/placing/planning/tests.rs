//! The leader's whole plan, from records to rosters.

use super::*;
use crate::records::DutySpec;
use crate::survey::known;
use incumbent_core::records::FamilyProfile;

const FAMILIES: usize = 5;

fn fleet(nodes: usize, each: usize) -> Planning {
    let families: Vec<String> = (0..FAMILIES).map(|it| format!("family-{it}")).collect();
    let mut lists = BTreeMap::new();
    for family in &families {
        let specs: Vec<DutySpec> = (0..nodes * each / FAMILIES)
            .map(|n| DutySpec {
                version: Some("2".to_owned()),
                ..DutySpec::named(&format!("duty-{n:06}"))
            })
            .collect();
        for list in Catalog::of(family, &specs, 1 << 20) {
            lists.insert(list.hash(), Arc::new(list));
        }
    }
    let known = Arc::new(known(lists.values().map(Arc::as_ref)));
    let mut members = BTreeMap::new();
    for n in 0..nodes {
        let mut profile = Profile::named(&format!("node-{n}"));
        for family in &families {
            let versions = ["1".to_owned(), "2".to_owned()].into();
            profile
                .families
                .insert(family.clone(), FamilyProfile { versions, ..Default::default() });
        }
        members.insert(MemberId::new(&format!("member-{n:05}")), Arc::new(profile));
    }
    let mut rosters = BTreeMap::new();
    for (n, id) in members.keys().enumerate() {
        let duties = known.keys().skip(n).step_by(nodes).cloned().collect();
        let roster = Roster { duties, ..Roster::empty(id.clone(), 1) };
        rosters.insert(
            id.clone(),
            Stored { content: Some(Arc::new(roster)), version: Some(Version::new("1")) },
        );
    }
    Planning {
        id: PlanningId(1),
        at_ms: 1,
        term: 1,
        own: members.keys().next().unwrap().clone(),
        loads: members.keys().map(|id| (id.clone(), 0)).collect(),
        unsure: members.keys().map(|id| (id.clone(), BTreeSet::new())).collect(),
        members,
        prepared: BTreeSet::new(),
        intents: Vec::new(),
        lists,
        lists_missing: false,
        known,
        up_to_date: true,
        ending: Vec::new(),
        rosters,
        unsettled: BTreeSet::new(),
        ran: BTreeMap::new(),
        bereft: BTreeMap::new(),
        on_the_way: BTreeMap::new(),
        avoided: Arc::default(),
        moves: Stored::EMPTY,
        rollout: Stored::EMPTY,
        rollout_unwritten: false,
        lingering: Vec::new(),
        soundings: Soundings::default(),
        placement: Placement::default(),
        may_rebalance: false,
        max_value: 1 << 20,
        planted: Planted::default(),
    }
}

fn one_left(planning: &Planning) -> Planning {
    let mut left = planning.clone();
    let gone = left.members.keys().nth(left.members.len() / 2).unwrap().clone();
    left.members.remove(&gone);
    let roster = left.rosters.remove(&gone).unwrap().content.unwrap();
    left.bereft = roster.duties.iter().map(|duty| (duty.clone(), gone.clone())).collect();
    left
}

#[test]
fn of_a_node_that_left_every_duty_goes_to_another_and_nothing_else_moves() {
    let steady = fleet(10, 20);
    let nothing = steady.clone().run();
    assert_eq!((nothing.moved, nothing.unplaced, nothing.rosters.len()), (0, 0, 0));
    let planned = one_left(&steady).run();
    assert_eq!((planned.moved, planned.unplaced, planned.rosters.len()), (20, 0, 9));
    let named = |draft: &RosterDraft| draft.roster.duties.len();
    assert_eq!(planned.rosters.iter().map(named).sum::<usize>(), 200);
    assert_eq!(planned.rosters.iter().map(|draft| draft.new.len()).sum::<usize>(), 20);
}
