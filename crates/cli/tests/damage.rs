//! Records that can't be read: the rest is shown, and what can be repaired is.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "all of this is test code")]

mod common;

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;

use common::records::{held_lease, silent_member};
use common::{PATIENCE, TTL, Trial};
use incumbent::{clock, family};
use serde_json::Value;

/// A member that nobody is.
const NOBODY: &str = "00000000000000000000000000000dead";

/// Records of each kind that only a repair changes, while no node has anything to do with them.
const IDLE: [&str; 7] = [
    "lease/broken",
    "member/00000000000000000000000000000dead",
    "profile/00000000000000000000000000000dead",
    "roster/00000000000000000000000000000dead",
    "report/00000000000000000000000000000dead",
    "catalog/0123456789abcdef",
    "intent/feedfeedfeedfeed",
];

/// Corrupt, hostile, of a newer format.
fn nonsense(trial: &Trial) -> Vec<(&'static str, Vec<u8>)> {
    // PostgreSQL itself sees to it that values are text.
    let garbage =
        if trial.postgres.is_some() { &b"\x01{not json"[..] } else { b"\x00\xff{not json" };
    vec![
        ("garbage", garbage.to_vec()),
        ("nothing", Vec::new()),
        ("a newer format", br#"{"format":2,"name":["x"]}"#.to_vec()),
        (
            "wrong types",
            br#"{"format":1,"id":7,"name":[],"term":"x","member":{},"ask":3}"#.to_vec(),
        ),
        (
            "huge",
            format!(r#"{{"format":1,"state":"{}"}}"#, "\u{202e}ä".repeat(10_000)).into_bytes(),
        ),
        ("deep", "[".repeat(20_000).into_bytes()),
    ]
}

fn keys(value: &Value) -> Vec<&str> {
    let all = value.as_array().unwrap();
    all.iter().map(|it| it["key"].as_str().unwrap()).collect()
}

#[test]
fn o33_one_broken_record_hides_nothing_else() {
    for trial in Trial::on_each_store() {
        trial.run(&["store", "init"]).succeeds();
        let node = trial.node("billing-1");
        let _leadership = trial.elected(&mut node.campaign("scheduler").unwrap());
        trial.until_named(&node);
        for (what, value) in nonsense(&trial) {
            println!("{what}");
            IDLE.iter().for_each(|key| trial.forge(key, value.clone()));
            let shown = trial.run(&["status"]).succeeds().says(&[
                "billing-1",
                "scheduler",
                "7 records can't be read",
                "incumbent store repair",
            ]);
            assert!(IDLE.iter().all(|key| shown.stdout.contains(key)), "{shown:#?}");
            assert!(shown.stdout.len() < 6000, "what is wrong is told in short: {shown:#?}");
            assert!(!shown.stdout.contains('\u{202e}'), "{shown:#?}");
            let status = trial.run(&["status", "--json"]).succeeds().json();
            assert_eq!(status["members"][0]["node"], "billing-1");
            let mut named = keys(&status["unreadable"]);
            named.sort_unstable();
            let mut idle = IDLE;
            idle.sort_unstable();
            assert_eq!(named, idle);
            let leases = status["leases"].as_array().unwrap();
            let broken = leases.iter().find(|it| it["lease"] == "broken").unwrap();
            assert_eq!(broken["leader"], Value::Null);
            assert_eq!(broken["unreadable"]["key"], "lease/broken");
            let sound = leases.iter().find(|it| it["lease"] == "scheduler").unwrap();
            assert_eq!(
                (&sound["leader"]["node"], &sound["unreadable"]),
                (&"billing-1".into(), &Value::Null)
            );

            trial.run(&["duties"]).succeeds().says(&["records can't be read", "intent/feed"]);
            let duties = trial.run(&["duties", "--json"]).succeeds().json();
            assert!(keys(&duties["unreadable"]).contains(&IDLE[4]), "{duties:#}");
            trial.run(&["history"]).succeeds().says(&["billing-1", "lease/broken"]);
            let history = trial.run(&["history", "--json"]).succeeds().json();
            assert!(keys(&history["unreadable"]).contains(&"lease/broken"), "{history:#}");
            trial.run(&["history", "scheduler"]).succeeds().says(&["so far"]);
            trial.run(&["leader", "scheduler"]).succeeds().says(&["billing-1"]);
            let asked = trial.run(&["leader", "broken"]).ends_with(1);
            asked.complains(&["lease/broken", "can't be read", "incumbent store repair"]);
            trial.run(&["intents"]).succeeds();
            trial.run(&["plan"]).succeeds().says(&["can't be read"]);
            trial.run(&["freeze"]).succeeds();
            trial.run(&["thaw"]).succeeds();
            trial.run(&["explain", "projection/ghost"]).ends_with(1).complains(&["nobody knows"]);
        }
    }
}

#[test]
fn o33_duties_are_told_by_what_can_be_read() {
    let trial = Trial::with_store();
    let node = trial.node("billing-1");
    let serving = trial.serving(&node, family("projection").duties(["orders"]));
    let orders = || {
        let shown = trial.run(&["duties", "--json"]).succeeds().json();
        shown["duties"].get(0).cloned().unwrap_or_default()
    };
    let began = clock::now();
    while orders()["state"] != "active" {
        assert!(clock::now().since(began) < PATIENCE, "it runs: {:#}", orders());
    }
    let lease = "lease/incumbent/duty/projection/orders";
    let (whole, id) = (trial.record(lease).unwrap(), node.member().unwrap());
    trial.forge(lease, "?");
    assert_eq!((&orders()["state"], &orders()["node"]), (&"active".into(), &"billing-1".into()));
    trial.forge(lease, whole.replace(id.as_str(), NOBODY));
    trial.forge(&format!("member/{NOBODY}"), "?");
    trial.forge(&format!("roster/{id}"), "?");
    let broken = orders();
    assert_eq!(broken["state"], "unassigned");
    assert!(broken["reason"].as_str().unwrap().contains(NOBODY), "{broken:#}");
    trial.forge(lease, whole);
    assert_eq!((&orders()["state"], &orders()["node"]), (&"active".into(), &"billing-1".into()));
    trial.forge(&format!("profile/{id}"), "?");
    assert_eq!((&orders()["state"], &orders()["member"]), (&"active".into(), &id.as_str().into()));
    drop(serving);
}

#[test]
fn o33_watch_names_what_becomes_unreadable_and_goes_on() {
    let trial = Trial::with_store();
    trial.forge("lease/broken", "?");
    let mut watch = trial.command(&["watch", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut lines = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let state = lines.next().unwrap();
    assert_eq!(keys(&state["unreadable"]), ["lease/broken"]);
    let node = trial.node("billing-1");
    trial.until_named(&node);
    trial.forge("intent/feedfeed", "?");
    let broken = lines.find(|line| line["type"] == "unreadable").unwrap();
    assert_eq!(broken["key"], "intent/feedfeed");
    drop(lines);
    assert!(watch.wait().unwrap().success(), "nobody reads any more");
}

#[test]
fn o33_repair_changes_nothing_unless_it_is_told_to() {
    let trial = Trial::with_store();
    trial.run(&["store", "repair"]).succeeds().says(&["can be read"]);
    IDLE.iter().for_each(|key| trial.forge(key, "?"));
    let before = trial.records();
    let plan = trial.run(&["store", "repair"]).ends_with(1);
    let plan = plan.says(&["Nothing was changed", "--apply", "wrong:", "repair:", "--longest-ttl"]);
    assert!(IDLE.iter().all(|key| plan.stdout.contains(key)), "{plan:#?}");
    let json = trial.run(&["store", "repair", "--json"]).ends_with(1).json();
    assert_eq!((&json["applied"], json["records"].as_array().unwrap().len()), (&false.into(), 7));
    // Nobody is there to ask.
    trial.run(&["store", "repair", "--apply"]).ends_with(64).complains(&["--yes"]);
    trial.run(&["store", "repair", "--yes"]).ends_with(64);
    trial.run(&["store", "repair", "--longest-ttl", "2h"]).ends_with(64).complains(&["60 min"]);
    trial.run(&["store", "repair", "--term-above", "9223372036854775809"]).ends_with(64);
    assert_eq!(trial.records(), before);
}

#[test]
fn o33_what_nobody_depends_on_is_repaired_at_once() {
    for trial in Trial::on_each_store() {
        trial.run(&["store", "init"]).succeeds();
        for (what, value) in nonsense(&trial) {
            println!("{what}");
            let more = ["board", "moves", "rollout", "once/job"];
            for key in IDLE.iter().chain(&more) {
                trial.forge(key, value.clone());
            }
            let newer = &["store", "repair", "--apply", "--yes", "--json"][..];
            let is_newer = what == "a newer format";
            let repaired = trial.run(newer).ends_with(i32::from(is_newer)).json();
            let outcomes = repaired["records"].as_array().unwrap();
            let wanted = if is_newer { "left" } else { "repaired" };
            assert!(outcomes.iter().all(|it| it["outcome"] == wanted), "{repaired:#}");
            if is_newer {
                assert!(trial.record("board").unwrap().contains("\"format\":2"));
                trial.run(&["store", "repair"]).ends_with(1).says(&["newer version", "--newer"]);
                trial.run(&["store", "repair", "--apply", "--yes", "--newer"]).succeeds();
            }
            trial.run(&["store", "repair"]).succeeds();
            trial.run(&["status"]).succeeds();
            trial.run(&["cordon", "billing-1"]).succeeds();
            // A lease is never deleted, nor is its term ever low again; a member is closed.
            let lease = trial.record("lease/broken").unwrap();
            let lease: Value = serde_json::from_str(&lease).unwrap();
            assert!(lease["term"].as_u64().unwrap() > 1_700_000_000_000, "{lease:#}");
            let member = trial.record(&format!("member/{NOBODY}")).unwrap();
            let member: Value = serde_json::from_str(&member).unwrap();
            assert_eq!(
                (&member["state"], &member["ttl_ms"]),
                (&"evicted".into(), &3_600_000.into())
            );
            // The lease waits for the member that may hold it.
            let guard = lease["holder"]["member"].as_str().unwrap();
            let guard = trial.record(&format!("member/{guard}")).unwrap();
            let guard: Value = serde_json::from_str(&guard).unwrap();
            assert_eq!((&guard["state"], &guard["ttl_ms"]), (&"evicted".into(), &3_600_000.into()));
        }
    }
}

#[test]
fn o33_a_lease_that_can_not_be_read_waits_for_its_holder_and_goes_on_above_its_terms() {
    for trial in Trial::on_each_store() {
        trial.run(&["store", "init"]).succeeds();
        let one = trial.node("billing-1");
        let mut campaign = one.campaign("scheduler").unwrap();
        let leadership = trial.elected(&mut campaign);
        trial.until_named(&one);
        let two = trial.node("billing-2");
        trial.until_named(&two);
        trial.forge("lease/scheduler", r#"{"format":1,"name":"scheduler","term":8000000000000, "#);
        let plan = trial.run(&["store", "repair"]).ends_with(1);
        plan.says(&["--evict", "billing-1 (", "billing-2 (", "above term 8000001000000"]);
        // Whoever holds it goes on, and nobody else gets it.
        trial.run(&["store", "repair", "--apply", "--yes"]).ends_with(1).says(&["withheld"]);
        assert!(leadership.is_held());
        trial.run(&["store", "repair", "--apply", "--yes", "--evict"]).succeeds();
        let mut other = two.campaign("scheduler").unwrap();
        let next = trial.elected(&mut other);
        assert!(!leadership.is_held(), "nobody leads beside the new one");
        assert_eq!(next.number(), 8_000_001_000_001);
        trial.run(&["leader", "scheduler"]).succeeds().says(&["billing-2"]);
        trial.run(&["store", "repair"]).succeeds();
    }
}

#[test]
fn o33_a_lease_keeps_its_term_and_holder_if_they_can_be_read() {
    let trial = Trial::with_store();
    let [node] = trial.candidates("scheduler", ["billing-1"]);
    let record = trial.record("lease/scheduler").unwrap();
    trial.forge("lease/scheduler", record.replace("\"taken\"", "\"seized\""));
    trial.run(&["leader", "scheduler"]).ends_with(1);
    trial.run(&["store", "repair"]).ends_with(1).says(&["held by billing-1", "term 1"]);
    trial.run(&["store", "repair", "--apply", "--yes"]).succeeds().says(&["repaired"]);
    assert!(node.is_leader("scheduler"), "it was not disturbed");
    trial.run(&["leader", "scheduler"]).succeeds().says(&["billing-1", "term 1"]);
    trial.run(&["resign", "scheduler"]).succeeds().says(&["billing-1 resigned"]);
}

#[test]
fn o33_a_member_that_can_not_be_read_is_waited_for() {
    for trial in Trial::on_each_store() {
        trial.run(&["store", "init"]).succeeds();
        trial.forge("lease/scheduler", held_lease("scheduler", 41, NOBODY, "billing-0"));
        trial.forge(&format!("member/{NOBODY}"), "?");
        let status = trial.run(&["status", "--json"]).succeeds().json();
        assert_eq!(status["leases"][0]["unreadable"]["key"], format!("member/{NOBODY}"));
        trial.run(&["leader", "scheduler"]).ends_with(1).complains(&["can't be read"]);
        let node = trial.node("billing-1");
        let mut campaign = node.campaign("scheduler").unwrap();
        let began = clock::now();
        let repair = ["store", "repair", "--apply", "--yes", "--longest-ttl", "7s"];
        trial.run(&repair).succeeds().says(&["repaired"]);
        let leadership = trial.elected(&mut campaign);
        assert_eq!(leadership.number(), 42);
        assert!(clock::now().since(began) >= Duration::from_secs(7), "it may have led until then");
    }
}

#[test]
fn o33_a_live_node_whose_profile_is_broken_is_evicted_only_if_that_is_allowed() {
    let trial = Trial::with_store();
    let node = trial.node("billing-1");
    trial.until_named(&node);
    let id = node.member().unwrap();
    trial.forge(&format!("profile/{id}"), r#"{"format":1,"node":[]}"#);
    let status = trial.run(&["status", "--json"]).succeeds().json();
    assert_eq!(status["members"][0]["id"], id.as_str());
    trial.run(&["store", "repair", "--apply", "--yes"]).ends_with(1).says(&["withheld", "--evict"]);
    assert_eq!(node.member().as_ref(), Some(&id));
    trial.run(&["store", "repair", "--apply", "--yes", "--evict"]).succeeds().says(&["evicted"]);
    let began = clock::now();
    while node.member().is_none_or(|now| now == id) {
        assert!(clock::now().since(began) < PATIENCE, "it joins again");
        std::thread::yield_now();
    }
    trial.until_named(&node);
    // Its profile was deleted with it (O64).
    trial.run(&["store", "repair"]).succeeds();
}

#[test]
fn o33_the_next_leader_writes_what_the_leader_writes() {
    let trial = Trial::with_store();
    let nodes = [trial.node("billing-1"), trial.node("billing-2")];
    let began = clock::now();
    let view = || trial.record("view");
    while !view().is_some_and(|view| nodes.iter().all(|node| view.contains(node.name()))) {
        assert!(clock::now().since(began) < PATIENCE, "the view is written");
    }
    // The leader may have something to tell just then, and mends it by that.
    let left = || {
        trial.forge("view", "?");
        let planned = trial.run(&["store", "repair"]).stdout.contains("new leader");
        let applied = trial.run(&["store", "repair", "--apply", "--yes"]).succeeds();
        planned && applied.stdout.contains("next leader")
    };
    assert!((0..5).any(|_| left()), "it is left to the next leader");
    while view().as_deref() == Some("?") {
        assert!(clock::now().since(began) < PATIENCE + TTL, "the next leader writes it");
    }
    trial.run(&["store", "repair"]).succeeds();
}

#[test]
fn o33_a_lease_is_left_alone_while_a_member_that_may_hold_it_can_not_be_closed() {
    let trial = Trial::with_store();
    trial.forge("lease/scheduler", "?");
    trial.forge(&format!("member/{NOBODY}"), r#"{"format":2}"#);
    let plan = trial.run(&["store", "repair", "--apply", "--yes", "--evict"]).ends_with(1);
    plan.says(&["left", "has to be closed first", NOBODY]);
    assert_eq!(trial.record("lease/scheduler").as_deref(), Some("?"));
    trial.forge(&format!("member/{NOBODY}"), silent_member(NOBODY, 4000));
    let plan = trial.run(&["store", "repair", "--json"]).ends_with(1).json();
    assert_eq!(plan["records"][0]["evicting"][0], NOBODY);
    assert_eq!(plan["records"][0]["wait_ms"], 4000);
}
