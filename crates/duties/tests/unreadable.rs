//! Records that can't be read, or that say they are another's: what is said about them.

use incumbent_core::records::Content;
use incumbent_core::store::{Key, Record, Version};
use incumbent_core::{MemberId, keys};
use incumbent_duties::records::{self, Report, Roster};

fn record(key: &str, value: impl Into<Vec<u8>>) -> Record {
    Record { key: Key::new(key), value: value.into(), version: Version::new("1"), age: None }
}

#[test]
fn o33_terms_that_leave_no_room_for_the_next_one_are_not_believed() {
    let roster = |term: u64| {
        let text = format!(r#"{{"format":1,"member":"m","term":{term},"revision":1,"duties":[]}}"#);
        Roster::read(&record("roster/m", text))
    };
    assert_eq!(roster(1 << 40).unwrap().term, 1 << 40);
    for absurd in [u64::MAX, u64::MAX / 2, u64::MAX / 4 + 1] {
        let said = roster(absurd).unwrap_err();
        assert!(said.reason.contains(&absurd.to_string()), "{}", said.reason);
    }
}

#[test]
fn o10_every_record_that_names_itself_is_held_to_it() {
    let id = MemberId::new("a");
    let (roster, report) = (Roster::empty(id.clone(), 1), Report::empty(id.clone()));
    assert!(Roster::read(&record(keys::roster(&id).as_str(), roster.bytes())).is_ok());
    assert!(Report::read(&record(keys::report(&id).as_str(), report.bytes())).is_ok());
    let said = [
        Roster::read(&record("roster/ax", roster.bytes())).unwrap_err(),
        Report::read(&record("report/ax", report.bytes())).unwrap_err(),
    ];
    assert!(said[0].reason.contains("roster/a") && said[1].reason.contains("report/a"), "{said:?}");
}

#[test]
fn o33_every_kind_of_record_is_looked_at() {
    let kinds = "member/a profile/a catalog/a roster/a report/a rollout moves lease/a once/a intent/a view board";
    for key in kinds.split(' ') {
        for value in ["", "{", "[]", "null", "{}", r#"{"format":"one"}"#, "\u{0}\u{1}"] {
            let flaw = records::flaw(&record(key, value));
            assert_eq!(flaw.map(|flaw| flaw.key).as_deref(), Some(key), "{value:?}");
        }
        // Deeper than any stack.
        assert!(records::flaw(&record(key, "[".repeat(100_000))).is_some(), "{key}");
    }
    assert_eq!(records::flaw(&record("of-a-later-version/a", "?")), None);
}
