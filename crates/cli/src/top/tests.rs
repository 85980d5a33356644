//! The picture for some clusters, as text.

use std::collections::BTreeMap;
use std::time::Duration;

use incumbent::{
    Ask, Change, ChangeKind, DutyCondition, DutyId, DutyStanding, Intent, Leader, LeaseState,
    Member, MemberId, MemberState, Moved, Unreadable,
};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent};

use super::draw;
use super::model::{Look, Model};
use crate::command::status::Snapshot;

/// 12:00:00 on some day.
const NOON: u64 = 1_800_014_400_000;

fn member(node: &str, state: MemberState) -> Member {
    Member {
        id: id(node),
        node: node.to_owned(),
        state,
        address: Some(format!("{node}:80")),
        labels: BTreeMap::from([("zone".to_owned(), "a".to_owned())]),
        joined_ms: NOON - 90_000,
        number: None,
        ttl: Some(Duration::from_secs(3)),
        age: Some(Duration::from_millis(400)),
        host: None,
        families: BTreeMap::new(),
        capacity: None,
        max_duties: None,
    }
}

fn id(node: &str) -> MemberId {
    MemberId::new(&format!("id-of-{node}"))
}

fn lease(name: &str, leader: Option<&str>) -> LeaseState {
    let leader = leader.map(|node| Leader {
        node: node.to_owned(),
        member: id(node),
        address: None,
        term: 7,
        payload: None,
        since_ms: Some(NOON - 30_000),
        state: MemberState::Alive,
        age: Some(Duration::from_secs(1)),
        ttl: Duration::from_secs(3),
    });
    let (lease, changes) = (name.to_owned(), Vec::new());
    LeaseState { lease, term: 7, leader, changes, unreadable: None }
}

fn duty(name: &str, node: Option<&str>, condition: DutyCondition) -> DutyStanding {
    DutyStanding {
        id: DutyId::parse(name).unwrap(),
        condition,
        node: node.map(ToOwned::to_owned),
        member: node.map(id),
        address: None,
        term: 2,
        version: None,
        progress: None,
        weight: 1,
        pinned: None,
    }
}

fn asked(ask: Ask) -> Intent {
    Intent::open("1".to_owned(), ask, String::new(), NOON)
}

fn fleet() -> Snapshot {
    let mut snapshot = Snapshot {
        members: vec![member("billing-1", MemberState::Alive), member("old", MemberState::Expired)],
        leases: vec![lease("incumbent/leader", Some("billing-1")), lease("scheduler", None)],
        ..Snapshot::default()
    };
    let failing = DutyCondition::Failing { error: "no route".to_owned(), times: 3, gave_up: false };
    snapshot.work.duties = vec![
        duty("projection/orders", Some("billing-1"), DutyCondition::Active),
        duty("projection/stock", Some("billing-1"), failing),
    ];
    snapshot.work.loads = BTreeMap::from([(id("billing-1"), 42)]);
    snapshot.work.intents = vec![asked(Ask::Drain { node: "billing-1".to_owned() })];
    snapshot
}

fn seen(snapshot: Snapshot) -> Model {
    let mut model = Model::new("billing", "sqlite:app.db");
    model.see(Look { snapshot, at_ms: NOON });
    model
}

/// What stands on a screen of this size, line by line.
fn drawn(model: &mut Model, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    model.fit(height);
    terminal.draw(|frame| draw::frame(frame, model)).unwrap();
    let buffer = terminal.backend().buffer().clone();
    let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    (0..height).map(|y| line(y).trim_end().to_owned()).collect()
}

fn press(model: &mut Model, keys: &str) {
    for key in keys.chars() {
        let code = match key {
            '\t' => KeyCode::Tab,
            '\n' => KeyCode::Enter,
            '\u{1b}' => KeyCode::Esc,
            'v' => KeyCode::Down,
            '$' => KeyCode::End,
            letter => KeyCode::Char(letter),
        };
        model.press(KeyEvent::from(code));
    }
}

#[test]
fn all_is_shown_in_eighty_columns() {
    let screen = drawn(&mut seen(fleet()), 80, 24);
    let text = screen.join("\n");
    let expected = [
        " incumbent top   billing  sqlite:app.db  12:00:00 UTC",
        "─▸Members 1 alive, 1 gone ─────",
        " NODE       STATE    HEARD  UP    DUTIES  LOAD  ADDRESS       LABELS",
        " billing-1  drained  0.4 s  90 s  2       44    billing-1:80  zone=a",
        " old        expired  0.4 s  90 s  -       -     old:80        zone=a",
        "─ Leases 1 held, 1 free ─────",
        " LEASE             LEADER     TERM  SINCE  DUE IN  WHERE",
        " scheduler         nobody     7     -      -       -",
        " incumbent/leader  billing-1  7     30 s   2.0 s   -",
        "─ Duties 1 failing, 1 active ─────",
        " DUTY               STATE    NODE       TERM  NOTE",
        " projection/stock   failing  billing-1  2     3×: no route",
        " projection/orders  active   billing-1  2",
        "─ Changes newest first ─────",
        " 11:58:30  old joined",
    ];
    for line in expected {
        assert!(screen.iter().any(|it| it.starts_with(line)), "{line:?} is missing in\n{text}");
    }
    assert_eq!(screen[23], " tab next part  ↑↓ scroll  / filter  p pause  q quit", "{text}");
}

#[test]
fn o33_what_can_not_be_read_is_told_and_the_rest_is_shown() {
    let mut model = seen(fleet());
    let mut broken = fleet();
    let (key, reason) = ("lease/scheduler".to_owned(), "not the JSON expected".to_owned());
    let scheduler = Unreadable { key, reason };
    let member = Unreadable { key: "member/id-of-billing-1".to_owned(), ..scheduler.clone() };
    broken.leases[1].unreadable = Some(scheduler.clone());
    broken.members.remove(0);
    broken.unreadable = vec![scheduler, member];
    model.see(Look { snapshot: broken, at_ms: NOON + 1000 });
    let text = drawn(&mut model, 100, 24).join("\n");
    for said in [
        "unreadable records: 2",
        "1 held, 1 unreadable",
        " scheduler         unreadable",
        " old",
        "record lease/",
    ] {
        assert!(text.contains(said), "{said:?} is missing in\n{text}");
    }
    assert!(!text.contains("is gone from the store"), "it is only unreadable:\n{text}");
    model.see(Look { snapshot: fleet(), at_ms: NOON + 2000 });
    let text = drawn(&mut model, 100, 24).join("\n");
    assert_eq!(text.matches("billing-1 joined").count(), 1, "it was there before:\n{text}");
    assert!(!text.contains("unreadable records"), "{text}");
}

#[test]
fn an_empty_cluster_says_so() {
    let text = drawn(&mut seen(Snapshot::default()), 80, 24).join("\n");
    for said in [
        "nobody has ever joined",
        "nobody has ever campaigned",
        "serves any",
        "nothing has changed",
    ] {
        assert!(text.contains(said), "{said:?} is missing in\n{text}");
    }
}

#[test]
fn what_changes_between_two_looks_is_told_with_the_newest_first() {
    let mut model = seen(fleet());
    let mut later = fleet();
    later.members[0].state = MemberState::Left;
    let (node, at_ms) = ("old".to_owned(), NOON + 1000);
    later.leases[1].changes = vec![Change { term: 8, kind: ChangeKind::Taken, node, at_ms }];
    later.work.moves = vec![Moved {
        duty: DutyId::parse("projection/orders").unwrap(),
        from: Some("billing-1".to_owned()),
        to: Some("old".to_owned()),
        why: "billing-1 has left".to_owned(),
        at_ms: NOON + 2000,
    }];
    model.see(Look { snapshot: later, at_ms: NOON + 3000 });
    let screen = drawn(&mut model, 80, 24);
    let title = screen.iter().position(|line| line.contains("Changes")).unwrap();
    assert_eq!(
        &screen[title + 1..title + 4],
        [
            " 12:00:03  billing-1 left",
            " 12:00:02  projection/orders from billing-1 to old: billing-1 has left",
            " 12:00:01  old leads scheduler",
        ]
    );
}

#[test]
fn a_filter_keeps_what_contains_it_until_it_is_taken_back() {
    let mut model = seen(fleet());
    press(&mut model, "/STO");
    let text = drawn(&mut model, 80, 24).join("\n");
    assert!(text.contains("/STO█") && text.contains("projection/stock"), "{text}");
    assert!(!text.contains("projection/orders"), "{text}");
    assert!(text.contains("nothing contains the filter"), "{text}");
    press(&mut model, "\n");
    assert!(!model.typing && !drawn(&mut model, 80, 24).join("\n").contains("projection/orders"));
    press(&mut model, "\u{1b}");
    assert!(drawn(&mut model, 80, 24).join("\n").contains("projection/orders"));
}

#[test]
fn the_part_in_focus_has_room_and_scrolls_no_further_than_its_end() {
    let mut many = fleet();
    let name = |number: usize| format!("projection/shard-{number:03}");
    many.work.duties =
        (0..100).map(|number| duty(&name(number), None, DutyCondition::Active)).collect();
    let mut model = seen(many);
    press(&mut model, "\t\t");
    let shards = |model: &mut Model| -> Vec<String> {
        let screen = drawn(model, 80, 24);
        screen.into_iter().filter(|line| line.contains("shard-")).collect()
    };
    let first = shards(&mut model);
    assert!(first.len() >= 10 && first[0].contains("shard-000"), "{first:?}");
    press(&mut model, "v");
    assert!(shards(&mut model)[0].contains("shard-001"));
    press(&mut model, "$");
    let last = shards(&mut model);
    let text = drawn(&mut model, 80, 24).join("\n");
    assert!(text.contains("100 active  89-100 of 100 shown"), "{text}");
    assert_eq!(last.len(), first.len());
    assert!(last.last().unwrap().contains("shard-099"), "{last:?}");
    press(&mut model, "vv");
    assert_eq!(shards(&mut model), last, "there is nothing below the end");
}

#[test]
fn trouble_and_pauses_are_said_and_no_size_or_name_breaks_the_picture() {
    let mut snapshot = fleet();
    snapshot.members[0].node = "日本語\u{1b}[2J".repeat(40);
    let mut model = seen(snapshot);
    press(&mut model, "p");
    assert!(drawn(&mut model, 80, 24)[0].contains("paused"));
    model.trouble = Some("the store can't be reached".to_owned());
    let head = drawn(&mut model, 80, 24).swap_remove(0);
    assert!(head.contains("as of 12:00:00 UTC: the store can't be reached"), "{head}");
    for width in 1..130 {
        for height in [1, 2, 3, 8, 13, 24, 50] {
            assert_eq!(drawn(&mut model, width, height).len(), usize::from(height));
        }
    }
}
