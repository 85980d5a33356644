//! O12: no record is larger than the store takes, and what is left out is said.

use std::collections::{BTreeMap, BTreeSet};

use incumbent_core::MemberId;
use incumbent_core::records::Content;
use incumbent_duties::DutyId;
use incumbent_duties::records::{Catalog, DutySpec, Failing, Moves, Report, Roster};

fn duties(count: usize) -> BTreeSet<DutyId> {
    (0..count).filter_map(|at| DutyId::new("projection", &format!("shard \"{at}\"")).ok()).collect()
}

#[test]
fn a_roster_names_as_many_as_fit_whichever_they_are() {
    for max in [1_000, 4_096, 100_000] {
        let all = duties(5_000);
        let room = Roster::room(max, all.iter());
        let mut roster = Roster::empty(MemberId::new("m1"), u64::MAX);
        roster.revision = u64::MAX;
        roster.duties = all.iter().rev().take(room).cloned().collect();
        assert!(roster.bytes().len() <= max, "{room} duties in {max} bytes");
        assert!(roster.cut(max).is_empty());
        roster.duties = all;
        let cut = roster.cut(max);
        assert!(roster.bytes().len() <= max && roster.duties.len() >= room && room > 20);
        assert_eq!(cut.len() + roster.duties.len(), 5_000);
    }
}

#[test]
fn a_report_keeps_what_the_leader_acts_on_and_counts_the_rest() {
    let all = duties(5_000);
    let sick = all.last().unwrap().clone();
    let mut report = Report::empty(MemberId::new("m1"));
    report.waiting = all.clone();
    report.progress = all.iter().map(|duty| (duty.clone(), "well on its way".to_owned())).collect();
    let failing = |gave_up| Failing { times: 3, error: "x".repeat(500), gave_up };
    report.failing = all.iter().take(50).map(|duty| (duty.clone(), failing(false))).collect();
    report.failing.insert(sick.clone(), failing(true));
    report.cut(8_000);
    assert!(report.bytes().len() <= 8_000);
    assert!(report.failing.contains_key(&sick));
    let kept = report.waiting.len() + report.progress.len() + report.failing.len();
    assert_eq!(kept as u64 + report.more, 10_051);
    let mut small = Report::empty(MemberId::new("m1"));
    small.waiting = duties(3);
    let before = small.clone();
    small.cut(8_000);
    assert_eq!(small, before, "what fits is left as it is");
}

#[test]
fn moves_and_catalogs_fit_too() {
    let mut moves = Moves::none(1);
    let members: Vec<MemberId> = (0..20).map(|at| MemberId::new(&format!("m{at}"))).collect();
    moves.avoided = duties(5_000).into_iter().map(|duty| (duty, members.clone())).collect();
    moves.cut(64 << 10);
    assert!(moves.bytes().len() <= 64 << 10 && !moves.avoided.is_empty());
    let spec = |at| {
        let labels: BTreeMap<String, String> = [("zone".to_owned(), "z".repeat(300))].into();
        DutySpec { selector: labels, ..DutySpec::named(&format!("d{at}")) }
    };
    let specs: Vec<DutySpec> = (0..1_200).map(spec).collect();
    let parts = Catalog::of("p", &specs, 20_000);
    assert!(parts.iter().all(|part| part.bytes().len() <= 20_000));
    assert_eq!(parts.iter().map(|part| part.duties.len()).sum::<usize>(), 1_200);
    assert_eq!(Catalog::of("p", &specs, 16 << 20).len(), 3, "and 500 at most");
}
