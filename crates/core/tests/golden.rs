//! Records as they were written once must stay readable, and come back as they were.

#![allow(clippy::unwrap_used, clippy::panic, missing_docs, reason = "a test may")]

use incumbent_core::random::Random;
use incumbent_core::records::{
    Board, Content, Intent, LeaseRecord, MemberRecord, MemberState, Profile, View,
};
use incumbent_core::store::{Key, Record, Version};

const GOLDEN: [(&str, &str); 10] = [
    ("member", include_str!("golden/member.json")),
    ("member", include_str!("golden/member_evicted.json")),
    ("lease", include_str!("golden/lease_held.json")),
    ("lease", include_str!("golden/lease_marked.json")),
    ("lease", include_str!("golden/lease_free.json")),
    ("profile", include_str!("golden/profile.json")),
    ("profile", include_str!("golden/profile_control.json")),
    ("view", include_str!("golden/view.json")),
    ("board", include_str!("golden/board.json")),
    ("intent", include_str!("golden/intent.json")),
];

/// A record under the key that it belongs to.
fn stored(kind: &str, value: &[u8]) -> Record {
    let content: serde_json::Value = serde_json::from_slice(value).unwrap_or_default();
    let named = content.get("id").or(content.get("name")).and_then(serde_json::Value::as_str);
    let key = Key::new(&format!("{kind}/{}", named.unwrap_or("x")));
    Record { key, value: value.to_vec(), version: Version::new("1"), age: None }
}

/// Reads a record of this kind and writes it again.
fn again(kind: &str, value: &[u8]) -> Result<Vec<u8>, String> {
    fn through<T: Content>(record: &Record) -> Result<Vec<u8>, String> {
        T::read(record).map(|content| content.bytes()).map_err(|error| error.to_string())
    }
    let record = stored(kind, value);
    match kind {
        "member" => through::<MemberRecord>(&record),
        "lease" => through::<LeaseRecord>(&record),
        "profile" => through::<Profile>(&record),
        "view" => through::<View>(&record),
        "board" => through::<Board>(&record),
        "intent" => through::<Intent>(&record),
        other => panic!("no such kind: {other}"),
    }
}

#[test]
fn golden_records_come_back_to_the_letter() {
    for (kind, text) in GOLDEN {
        let text = text.trim_end();
        let written = String::from_utf8(again(kind, text.as_bytes()).unwrap()).unwrap();
        assert_eq!(written, text, "fields of other versions are kept too");
    }
}

#[test]
fn a_newer_format_is_said_and_not_guessed_at() {
    for (kind, text) in GOLDEN {
        let newer = text.replacen("\"format\":1", "\"format\":2", 1);
        let said = again(kind, newer.as_bytes()).unwrap_err();
        assert!(said.contains("format 2") && said.contains("upgrade"), "{said}");
    }
}

#[test]
fn closing_keeps_the_ttl_and_what_is_unknown() {
    let record = MemberRecord::read(&stored("member", GOLDEN[0].1.as_bytes())).unwrap();
    let closed = String::from_utf8(record.closed(MemberState::Expired).bytes()).unwrap();
    assert!(closed.contains("\"state\":\"expired\""));
    assert!(closed.contains("\"ttl_ms\":15000") && closed.contains("from_a_later_version"));
}

#[test]
fn senseless_values_are_refused() {
    for (kind, text) in [
        ("member", r#"{"format":1,"id":"a","state":"alive","beat":1,"ttl_ms":0,"due_ms":1}"#),
        ("member", r#"{"format":1,"id":"a","state":"alive","beat":1,"ttl_ms":9e18,"due_ms":1}"#),
        ("member", r#"{"format":1,"id":"a","state":"alive","beat":1,"ttl_ms":3600001,"due_ms":1}"#),
        ("member", r#"{"format":1,"id":"a","state":"resting","beat":1,"ttl_ms":15000,"due_ms":1}"#),
        ("lease", r#"{"format":1,"name":"a","term":18446744073709551615}"#),
        ("lease", r#"{"format":1,"name":"a","term":0,"holder":{"member":"m","node":"n"}}"#),
        ("lease", r#"{"format":1,"name":"a","term":-1}"#),
        ("intent", r#"{"format":1,"id":"i","ask":{"kind":"dance"},"state":"open"}"#),
    ] {
        assert!(again(kind, text.as_bytes()).is_err(), "{text}");
    }
}

#[test]
fn a_due_that_makes_no_sense_counts_as_a_third_of_the_ttl() {
    let mut record = MemberRecord::read(&stored("member", GOLDEN[0].1.as_bytes())).unwrap();
    for (due_ms, counts_as) in [(0, 5000), (7501, 5000), (u64::MAX, 5000), (7500, 7500)] {
        record.due_ms = due_ms;
        assert_eq!(record.due().as_millis(), counts_as);
    }
}

#[test]
fn damaged_records_never_panic() {
    let mut random = Random::new(1);
    for round in 0..20_000 {
        let (kind, text) = GOLDEN[random.below(GOLDEN.len() as u64) as usize];
        let mut bytes = text.trim_end().as_bytes().to_vec();
        if round % 2 == 0 {
            bytes.truncate(random.below(bytes.len() as u64) as usize);
            assert!(again(kind, &bytes).is_err(), "half a record is no record");
        } else {
            for _ in 0..=random.below(3) {
                let at = random.below(bytes.len() as u64) as usize;
                bytes[at] = random.number() as u8;
            }
            // Some damage can't be seen, such as another digit; but none may panic.
            let _ = again(kind, &bytes);
        }
    }
}
