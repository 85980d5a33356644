//! Who is woken, and who isn't, within one process and across two.

mod common;

use common::{
    Hints, Place, applied, beat, change, child, create, eventually, find, role, version, write,
};
use incumbent_core::store::{Key, Lane, Outcome, Store, Write};
use incumbent_sqlite::{HintSource, SqliteStore};

const SOURCES: [HintSource; 2] = [HintSource::Watch, HintSource::Poll];

#[test]
fn a_change_through_another_store_wakes_and_one_through_the_same_does_too() {
    for source in SOURCES {
        let place = Place::new();
        let one = SqliteStore::open(place.options().hints(source)).expect("the store opens");
        let two = place.store();
        let hints = Hints::of(&one, "c");
        let more = Hints::of(&one, "c");
        write(&two, "c", create("k", 1)).expect("a write");
        write(&two, "c", change("k", 1, 2)).expect("a write");
        eventually("a hint", || hints.count() > 0 && more.count() > 0);
        let before = hints.count();
        write(&one, "c", change("k", 2, 3)).expect("a write");
        eventually("another hint", || hints.count() > before);
        assert_eq!(find(&one, "c", "k").expect("a record").version, version(3));
    }
}

#[test]
fn beats_refused_writes_deletes_and_other_clusters_wake_nobody() {
    for source in SOURCES {
        let place = Place::new();
        let watching = SqliteStore::open(place.options().hints(source)).expect("the store opens");
        let writing = place.store();
        let hints = Hints::of(&watching, "c");
        let control = Hints::of(&watching, "control");
        assert_eq!(write(&writing, "c", create("k", 0)), Ok(applied(0)));
        for attempt in 1..200 {
            let lane = if attempt % 2 == 0 { Lane::Beat } else { Lane::Change };
            let beat = vec![beat("k", attempt - 1, attempt)];
            let reply = common::send(&writing, "c", lane, beat, vec![]).expect("a beat");
            assert_eq!(reply.writes, [applied(attempt)]);
        }
        assert_eq!(write(&writing, "c", change("k", 7, 1000)), Ok(Outcome::Refused));
        let delete = Write::Delete(Key::new("k"));
        assert_eq!(write(&writing, "c", delete), Ok(Outcome::Deleted));
        assert_eq!(write(&writing, "control", create("k", 1)), Ok(applied(1)));
        assert_eq!(write(&writing, "control", change("k", 1, 2)), Ok(applied(2)));
        // Whoever was to be woken by the earlier writes was woken no later than this one.
        eventually("the control's hint", || control.count() > 0);
        assert_eq!(hints.count(), 0, "{source:?}");
    }
}

#[test]
#[cfg(target_os = "linux")]
#[allow(clippy::disallowed_methods)] // Measures, decides nothing.
fn hints_come_at_once_and_not_with_the_next_look_in_a_second() {
    let place = Place::new();
    let (watching, writing) = (place.store(), place.store());
    let hints = Hints::of(&watching, "c");
    write(&writing, "c", create("k", 0)).expect("a write");
    let start = std::time::Instant::now();
    for attempt in 1..=40 {
        let before = hints.count();
        write(&writing, "c", change("k", attempt - 1, attempt)).expect("a write");
        eventually("a hint", || hints.count() > before);
    }
    // Looking once a second would take forty.
    let took = start.elapsed();
    assert!(took.as_secs() < 20, "{took:?}");
}

#[test]
fn a_dropped_subscription_is_not_called_and_the_others_are() {
    let place = Place::new();
    let store = place.store();
    write(&store, "c", create("k", 0)).expect("a write");
    let gone = Hints::of(&store, "c");
    let count = gone.counter();
    drop(gone);
    let stays = Hints::of(&store, "c");
    write(&store, "c", change("k", 0, 1)).expect("a write");
    eventually("a hint", || stays.count() > 0);
    assert_eq!(count(), 0);
}

#[test]
fn a_wake_may_come_back_into_the_store() {
    let place = Place::new();
    let store = place.store();
    write(&store, "c", create("k", 0)).expect("a write");
    let (sender, receiver) = std::sync::mpsc::channel();
    let inner = store.clone();
    let wake = std::sync::Arc::new(move || {
        // Subscribing and unsubscribing takes the locks that a careless watcher would hold.
        drop(inner.hints("d", std::sync::Arc::new(|| ())));
        let _ = sender.send(());
    });
    let _guard = store.hints("c", wake).expect("the store pushes");
    write(&store, "c", change("k", 0, 1)).expect("a write");
    let woken = receiver.recv_timeout(std::time::Duration::from_secs(20));
    assert_eq!(woken, Ok(()));
}

#[test]
fn a_change_by_another_process_wakes_and_its_beats_don_t() {
    let place = Place::new();
    let store = place.store();
    let hints = Hints::of(&store, "c");
    let control = Hints::of(&store, "control");
    let beats = child("beats", &place).status().expect("a child");
    assert!(beats.success());
    eventually("the control's hint", || control.count() > 0);
    assert_eq!(hints.count(), 0);
    let changes = child("change", &place).status().expect("a child");
    assert!(changes.success());
    eventually("the hint", || hints.count() > 0);
    assert_eq!(find(&store, "c", "lease").map(|record| record.value.len() > 2), Some(true));
}

#[test]
fn hints_go_on_after_the_file_was_replaced() {
    let place = Place::new();
    let store = place.store();
    write(&store, "c", create("k", 0)).expect("a write");
    let hints = Hints::of(&store, "c");
    place.remove_files();
    let other = place.store();
    write(&other, "c", create("k", 1)).expect("a write");
    write(&other, "c", change("k", 1, 2)).expect("a write");
    eventually("a hint from the new file", || hints.count() > 0);
    let before = hints.count();
    write(&other, "c", change("k", 2, 3)).expect("a write");
    eventually("another", || hints.count() > before);
    assert_eq!(find(&other, "c", "k").expect("a record").version, version(3));
}

#[test]
#[ignore = "the other tests run it as another process"]
fn child_process() {
    let (role, path) = role().expect("to be run by another test");
    let store = SqliteStore::open(path).expect("the store opens");
    match role.as_str() {
        "beats" => {
            assert_eq!(write(&store, "c", create("k", 0)), Ok(applied(0)));
            for attempt in 1..20 {
                assert_eq!(
                    write(&store, "c", beat("k", attempt - 1, attempt)),
                    Ok(applied(attempt))
                );
            }
            assert_eq!(write(&store, "control", create("k", 100)), Ok(applied(100)));
            assert_eq!(write(&store, "control", change("k", 100, 101)), Ok(applied(101)));
        }
        "change" => {
            assert_eq!(write(&store, "c", create("lease", 0)), Ok(applied(0)));
            assert_eq!(write(&store, "c", change("lease", 0, 1)), Ok(applied(1)));
        }
        other => panic!("no role {other}"),
    }
}
