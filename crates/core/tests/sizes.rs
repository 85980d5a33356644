//! O12: no record is larger than the store takes, and what is left out is said.

use incumbent_core::MemberId;
use incumbent_core::records::{Content, Extra, FORMAT, MemberState, View, ViewEntry};

#[test]
fn a_view_leaves_out_labels_first_and_says_so() {
    let entry = |number: u32| ViewEntry {
        id: MemberId::new(&format!("m{number}")),
        number,
        node: format!("node-{number}"),
        state: if number.is_multiple_of(2) { MemberState::Alive } else { MemberState::Expired },
        address: Some("10.0.0.1:80".to_owned()),
        labels: [("zone".to_owned(), "a".repeat(200))].into(),
        missing: false,
        preferred: false,
        joined_ms: 0,
    };
    let view = || View {
        format: FORMAT,
        term: 1,
        members: (1..=100).map(entry).collect(),
        left_out: None,
        extra: Extra::new(),
    };
    let cut = |max: usize| {
        let mut view = view();
        view.cut(max);
        assert!(view.bytes().len() <= max, "{max}");
        view
    };
    assert_eq!(cut(1 << 20), view());
    let no_labels = cut(14_000);
    assert_eq!(no_labels.left_out.as_deref(), Some("labels"));
    assert_eq!(no_labels.members.len(), 100);
    let few = cut(5_000);
    assert!(few.left_out.unwrap().contains("members"));
    assert!(few.members.iter().filter(|entry| entry.state == MemberState::Alive).count() > 40);
}
