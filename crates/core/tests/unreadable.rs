//! Records that can't be read: what is said about them.

use std::time::Duration;

use incumbent_core::records::{self, Content, LeaseRecord, MemberRecord, salvage};
use incumbent_core::store::{Key, Record, Version};

fn record(key: &str, value: impl Into<Vec<u8>>) -> Record {
    Record { key: Key::new(key), value: value.into(), version: Version::new("1"), age: None }
}

#[test]
fn o33_a_newer_format_is_told_from_damage_whatever_it_looks_like() {
    let newer = r#"{"format":2,"name":{"of":"another kind"}}"#;
    let said = LeaseRecord::read(&record("lease/a", newer)).unwrap_err().reason;
    assert!(said.contains("format 2") && said.contains("upgrade"), "{said}");
    assert_eq!(records::newer_format(newer.as_bytes()), Some(2));
    for older in [r#"{"format":1}"#, r#"{"format":-7}"#, r#"{"format":"2"}"#, "format", ""] {
        assert_eq!(records::newer_format(older.as_bytes()), None, "{older}");
        let said = LeaseRecord::read(&record("lease/a", older)).unwrap_err().reason;
        assert!(!said.contains("upgrade"), "{said}");
    }
    let none = r#"{"format":0,"name":"a","term":1}"#;
    let said = LeaseRecord::read(&record("lease/a", none)).unwrap_err().reason;
    assert_eq!(said, "there is no format 0");
}

#[test]
fn o33_terms_that_leave_no_room_for_the_next_one_are_not_believed() {
    let lease = |lost: u64| {
        let text = format!(r#"{{"format":1,"name":"a","term":5,"lost":{lost}}}"#);
        LeaseRecord::read(&record("lease/a", text))
    };
    assert_eq!(lease(7).unwrap().lost, 7);
    for absurd in [u64::MAX, u64::MAX / 2, u64::MAX / 4 + 1] {
        let said = lease(absurd).unwrap_err();
        assert!(said.reason.contains(&absurd.to_string()), "{}", said.reason);
    }
}

#[test]
fn o33_what_is_said_about_a_record_is_short_however_large_it_is() {
    let state = "ä".repeat(1_000_000);
    let value = format!(r#"{{"format":1,"id":"m","state":"{state}","beat":1}}"#);
    let said = MemberRecord::read(&record("member/m", value)).unwrap_err().reason;
    assert!(said.chars().count() < 300, "{} characters", said.chars().count());
}

#[test]
fn o33_a_lease_keeps_what_decides_about_it_if_all_of_that_can_be_read() {
    let holder = r#"{"member":"m","node":"n","mark":"x"}"#;
    let good = format!(
        r#"{{"format":1,"name":"a","term":7,"holder":{holder},"payload":[],"successor":7,"lost":9,
            "changes":[{{"term":7,"kind":"taken","node":"n","at_ms":1}},{{"kind":"?"}}]}}"#
    );
    let kept = salvage::lease(&record("lease/a", good.clone())).unwrap();
    assert_eq!((kept.term, kept.changes.len(), kept.payload), (7, 1, None));
    assert_eq!(kept.lost, 9, "the next term is above those that the store has lost");
    assert_eq!(kept.holder.unwrap().mark.as_deref(), Some("x"));
    let damaged = [
        good.replace(r#""format":1"#, r#""format":2"#),
        good.replace(r#""name":"a""#, r#""name":"b""#),
        good.replace(r#""term":7,"holder""#, r#""term":"7","holder""#),
        good.replace(r#""term":7,"holder""#, r#""term":0,"holder""#),
        good.replace(r#""term":7,"holder""#, r#""term":9223372036854775809,"holder""#),
        good.replace(holder, r#"{"member":3}"#),
        good.replace(r#""lost":9"#, r#""lost":18446744073709551615"#),
        good.replace(r#""lost":9"#, r#""lost":"9""#),
        good.replace(r#""term":7,"holder""#, r#""term":7,"term":900,"holder""#),
        good[..good.len() - 1].to_owned(),
    ];
    for text in damaged {
        assert_eq!(salvage::lease(&record("lease/a", text.clone())), None, "{text}");
    }
}

#[test]
fn o33_the_highest_term_is_found_in_what_is_left() {
    let term = |text: &str| salvage::term(text.as_bytes());
    assert_eq!(term(r#"{"term": 12, "changes":[{"term":"15"},{"term":14"#), Some(15));
    assert_eq!(term(r#"{"term":99999999999999999999999}"#), None);
    assert_eq!(term(r#"{"term":-1}"#), None);
    assert_eq!(term("terminal 5"), None);
}

#[test]
fn o33_a_ttl_counts_only_if_it_is_the_members_own_and_possible() {
    let ttl = |text: &str| salvage::ttl(&record("member/m", text));
    let good = r#"{"format":1,"id":"m","state":"zombie","ttl_ms":15000}"#;
    assert_eq!(ttl(good), Some(Duration::from_secs(15)));
    for (from, to) in
        [("\"m\"", "\"x\""), ("15000", "0"), ("15000", "3600001"), ("15000", "-3"), ("1,", "2,")]
    {
        assert_eq!(ttl(&good.replacen(from, to, 1)), None, "{from} {to}");
    }
}
