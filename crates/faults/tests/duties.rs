//! Duties on real processes that are killed, paused and stopped, on SQLite and on PostgreSQL.
//! Every worker writes down when it trusted that a duty was its own, and afterwards all that was
//! written is laid side by side.
#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "this is test code")]
#![allow(clippy::panic, clippy::unwrap_used, dead_code, reason = "this is test code")]
#![allow(unreachable_pub, reason = "this is test code")]

mod crew;
#[path = "../../../stores/postgres/tests/common/server.rs"]
mod server;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crew::Crew;

/// A schema that no other test uses.
fn fresh() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("duties_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::SeqCst))
}

/// Plays on each store.
macro_rules! on_both_stores {
    ($($behaviour:ident),* $(,)?) => {
        mod sqlite {
            $(#[test]
            fn $behaviour() {
                super::$behaviour(&mut super::Crew::new("sqlite"));
            })*
        }
        mod postgres {
            $(#[test]
            fn $behaviour() {
                super::$behaviour(&mut super::Crew::new(&super::server::shared()));
            })*
        }
    };
}

on_both_stores!(
    work_is_spread_evenly_whoever_is_lost,
    leaders_come_and_go_and_a_paused_duty_stays_off,
    one_node_takes_over_everything_from_another,
    versions_run_where_they_are_known,
    what_never_starts_or_never_stops_is_moved,
);

fn twelve() -> Vec<String> {
    (1..=12).map(|number| format!("duty {number}")).collect()
}

/// Lets all leave, and looks at what they wrote down: in at least so many terms a duty was run.
fn judge(crew: &mut Crew, least: usize) {
    let account = crew.judge();
    println!("{account:?}");
    assert!(account.terms >= least, "too little was run: {account:?}");
}

fn work_is_spread_evenly_whoever_is_lost(crew: &mut Crew) {
    let duties = twelve();
    let mut fleet = vec![crew.start(&duties, &[])];
    crew.spread(&duties, &[12]);
    fleet.push(crew.start(&duties, &[]));
    crew.spread(&duties, &[6, 6]);
    for _ in 0..2 {
        fleet.push(crew.start(&duties, &[]));
    }
    crew.spread(&duties, &[3, 3, 3, 3]);
    let full = std::env::var("INCUMBENT_TEST_FULL").is_ok();
    let ways = if full { 3 } else { 1 };
    for round in 0..4 * ways {
        // Each in turn; in the full test, each in every way.
        let turn = round % 4;
        let lost = fleet[turn];
        match (turn + round / 4) % 3 {
            0 => crew.kill(lost),
            1 => crew.pause(lost),
            _ => crew.stop(lost),
        }
        crew.spread(&duties, &[4, 4, 4]);
        match (turn + round / 4) % 3 {
            1 => crew.resume(lost),
            _ => fleet[turn] = crew.start(&duties, &[]),
        }
        crew.spread(&duties, &[3, 3, 3, 3]);
    }
    judge(crew, 12 + 6 + 12);
}

fn leaders_come_and_go_and_a_paused_duty_stays_off(crew: &mut Crew) {
    let (duties, paused) = (twelve(), "work/duty 7");
    let rest: Vec<String> = duties.iter().filter(|duty| *duty != "duty 7").cloned().collect();
    for _ in 0..4 {
        crew.start(&duties, &[]);
    }
    crew.spread(&duties, &[3, 3, 3, 3]);
    let asked = pollster::block_on(crew.cluster.pause(paused)).unwrap();
    assert!(asked.unknown.is_empty(), "{asked:?}");
    crew.spread(&rest, &[2, 3, 3, 3]);

    // Two leaders are lost, one after the other.
    let leader = crew.leader();
    crew.kill(leader);
    crew.spread(&rest, &[3, 4, 4]);
    let leader = crew.leader();
    crew.kill(leader);
    crew.spread(&rest, &[5, 6]);
    crew.start(&duties, &[]);
    crew.spread(&rest, &[3, 4, 4]);

    // A leader is paused until another leads, and finds the world changed when it goes on.
    let stale = crew.leader();
    crew.pause(stale);
    crew.spread(&rest, &[5, 6]);
    let term = crew.leader_term();
    crew.resume(stale);
    crew.spread(&rest, &[3, 4, 4]);
    assert!(crew.leader_term() >= term, "the stale leader led no more");

    pollster::block_on(crew.cluster.resume(paused)).unwrap();
    crew.spread(&duties, &[4, 4, 4]);
    judge(crew, 12 + 12);
}

fn one_node_takes_over_everything_from_another(crew: &mut Crew) {
    // F42: names are whatever can be printed.
    let mut duties: Vec<String> =
        ["a,b", "a/b", "a b", "☃ ünïcode", "100%", "=", "'; --"].map(str::to_owned).into();
    duties.push("x".repeat(1000));
    let first = crew.start(&duties, &[]);
    crew.spread(&duties, &[8]);
    crew.stop(first);
    let second = crew.start(&duties, &[]);
    crew.spread(&duties, &[8]);
    let third = crew.start(&duties, &[]);
    crew.spread(&duties, &[4, 4]);
    crew.stop(second);
    crew.spread(&duties, &[8]);

    // A single duty runs on exactly one of four.
    let single = vec!["=".to_owned()];
    let fleet: Vec<usize> = (0..4).map(|_| crew.start(&single, &[])).collect();
    crew.stop(third);
    crew.spread(&single, &[0, 0, 0, 1]);
    let held = fleet.iter().copied().find(|number| !crew.running(*number).is_empty());
    crew.stop(held.unwrap());
    crew.spread(&single, &[0, 0, 1]);
    judge(crew, 8 * 3);
}

fn versions_run_where_they_are_known(crew: &mut Crew) {
    // F40: nothing is given to a node that can't run it.
    let named = |version: &str| -> Vec<String> {
        (1..=4).map(|number| format!("version {version}, {number}")).collect()
    };
    let (blue, green) = (named("2"), named("3"));
    let old: Vec<usize> = (0..2).map(|_| crew.start(&blue, &["needs=2", "version=2"])).collect();
    crew.spread(&blue, &[2, 2]);
    let new: Vec<usize> = (0..2).map(|_| crew.start(&green, &["needs=3", "version=3"])).collect();
    let all: Vec<String> = blue.iter().chain(&green).cloned().collect();
    crew.spread(&all, &[2, 2, 2, 2]);
    let only = |crew: &Crew, numbers: &[usize], version: &str| {
        let running = numbers.iter().flat_map(|number| crew.running(*number));
        running.into_iter().all(|duty| duty.starts_with(version))
    };
    assert!(only(crew, &old, "version 2") && only(crew, &new, "version 3"));
    // A new node is lost: the other new one runs all of version 3, the old ones none of it.
    crew.kill(new[0]);
    crew.spread(&all, &[2, 2, 4]);
    for number in &old {
        let histories = crew.histories(&format!("worker-{number}"));
        assert!(histories.keys().all(|duty| duty.starts_with("version 2")));
    }
    // The last old node is stopped: version 2 runs nowhere, and version 3 goes on.
    for number in old {
        crew.stop(number);
    }
    crew.spread(&green, &[4]);
    judge(crew, 8 + 2);
}

fn what_never_starts_or_never_stops_is_moved(crew: &mut Crew) {
    let duty = vec!["stuck".to_owned()];
    // F46: it takes the lease, and never says that it has started.
    let silent = crew.start(&duty, &["mode=never-ready"]);
    crew.until("it has begun", |crew| !crew.running(silent).is_empty());
    let quick = crew.start(&duty, &[]);
    crew.until("it has moved", |crew| !crew.running(quick).is_empty());
    crew.kill(silent);
    crew.stop(quick);
    // It never stops, and the policy says what follows.
    for drain in ["drain=evict", "drain=overlap"] {
        let stubborn = crew.start(&duty, &["mode=never-drains", drain]);
        crew.until("it has begun", |crew| !crew.running(stubborn).is_empty());
        let other = crew.start(&duty, &[]);
        let node = format!("worker-{other}");
        pollster::block_on(crew.cluster.pin("work/stuck", &node, incumbent::Strictness::Required))
            .unwrap();
        crew.until("it has moved", |crew| !crew.running(other).is_empty());
        crew.kill(stubborn);
        crew.stop(other);
        pollster::block_on(crew.cluster.unpin("work/stuck")).unwrap();
    }
    judge(crew, 3);
}

#[test]
fn nothing_runs_twice_when_a_sqlite_file_is_emptied() {
    nothing_runs_twice_when_the_store_is_emptied(&mut Crew::new("sqlite"));
}

#[test]
fn nothing_runs_twice_when_postgres_tables_are_emptied() {
    nothing_runs_twice_when_the_store_is_emptied(&mut Crew::new(&server::shared()));
}

/// O6: who gets a duty learns from its roster who had it, and waits for that one.
#[test]
fn nothing_runs_twice_when_the_leases_of_duties_are_deleted() {
    let crew = &mut Crew::new("sqlite");
    let duties = twelve();
    crew.start(&duties, &[]);
    crew.start(&duties, &[]);
    crew.spread(&duties, &[6, 6]);
    // Their reports have said so.
    std::thread::park_timeout(Duration::from_secs(2));
    crew.delete_duty_leases();
    crew.start(&duties, &[]);
    crew.spread(&duties, &[4, 4, 4]);
    // Only the leader knows who had what. Its successor can't, and would begin the terms again.
    let leader = crew.leader();
    for number in (0..3).filter(|number| *number != leader) {
        crew.stop(number);
    }
    judge(crew, 12 + 4);
}

/// O6: the leader still knows who lived a moment ago, and they still trust in what they have.
fn nothing_runs_twice_when_the_store_is_emptied(crew: &mut Crew) {
    let duties = twelve();
    for _ in 0..4 {
        crew.start(&duties, &[]);
    }
    crew.spread(&duties, &[3, 3, 3, 3]);
    std::thread::park_timeout(Duration::from_secs(1));
    let starts = crew.starts();
    crew.empty_the_store();
    // Everybody loses what it has, and it runs again in later terms.
    crew.until("all start again", |crew| crew.starts() >= starts + duties.len());
    crew.spread(&duties, &[3, 3, 3, 3]);
    judge(crew, 12 * 2);
}
