//! Commands that only look.

mod common;

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use common::Trial;
use serde_json::Value;

#[test]
fn an_empty_cluster_is_no_error() {
    let trial = Trial::with_store();
    trial.run(&["status"]).succeeds().says(&["trial", "empty"]);
    let status = trial.run(&["status", "--json"]).succeeds().json();
    assert_eq!(status["cluster"], "trial");
    for list in ["members", "leases", "duties"] {
        assert_eq!(status[list], Value::Array(Vec::new()), "{list}");
    }
    trial.run(&["history"]).succeeds().says(&["Nobody has ever led"]);
    trial.run(&["history", "scheduler"]).ends_with(1).complains(&["scheduler", "status"]);
}

#[test]
fn status_shows_members_and_leases() {
    let trial = Trial::with_store();
    let node = trial.node("billing-1");
    let leadership = trial.elected(&mut node.campaign("scheduler").unwrap());
    trial.until_named(&node);
    let ran = trial.run(&["status"]).succeeds().says(&["billing-1", "scheduler", "billing-1:80"]);
    assert!(ran.stdout.lines().all(|line| line.chars().count() <= 80), "{ran:#?}");
    assert!(!ran.stdout.contains('\u{1b}'), "no colours without a terminal: {ran:#?}");

    let status = trial.run(&["status", "--json"]).succeeds().json();
    let member = &status["members"][0];
    assert_eq!(member["node"], "billing-1");
    assert_eq!(member["state"], "alive");
    assert_eq!(member["address"], "billing-1:80");
    assert_eq!(member["ttl_ms"], 5000);
    assert_eq!(member["host"]["pid"], std::process::id());
    let leases = status["leases"].as_array().unwrap();
    let lease = leases.iter().find(|lease| lease["lease"] == "scheduler").unwrap();
    assert_eq!(lease["term"], leadership.number());
    assert_eq!(lease["leader"]["node"], "billing-1");
    assert_eq!(lease["leader"]["member"], member["id"]);
    assert_eq!(lease["changes"][0]["kind"], "taken");
    assert_eq!(status["duties"], Value::Array(Vec::new()));
}

#[test]
fn leader_says_who_and_where_and_ends_with_1_if_nobody_leads() {
    let trial = Trial::with_store();
    trial.run(&["leader", "scheduler"]).ends_with(1).complains(&["nobody has ever led", "none"]);
    let node = trial.node("billing-1");
    let leadership = trial.elected(&mut node.campaign("scheduler").unwrap());
    trial.run(&["leader", "scheduler"]).succeeds().says(&["billing-1 at billing-1:80", "term 1"]);
    let quiet = trial.run(&["leader", "scheduler", "-q"]).succeeds();
    assert_eq!(quiet.stdout, "billing-1\n");
    let leader = trial.run(&["leader", "scheduler", "--json"]).succeeds().json();
    assert_eq!(leader["lease"], "scheduler");
    assert_eq!(leader["leader"]["node"], "billing-1");
    assert_eq!(leader["leader"]["term"], 1);

    trial.runtime.block_on(leadership.release()).unwrap();
    trial.runtime.block_on(node.leave()).unwrap();
    trial
        .run(&["leader", "scheduler"])
        .ends_with(1)
        .complains(&["nobody leads", "last term was 1"]);
    let leader = trial.run(&["leader", "scheduler", "--json"]).ends_with(1).json();
    assert_eq!(leader["leader"], Value::Null);
}

#[test]
fn history_tells_who_led_and_why_it_changed() {
    let trial = Trial::with_store();
    let one = trial.node("billing-1");
    let leadership = trial.elected(&mut one.campaign("scheduler").unwrap());
    trial.runtime.block_on(leadership.release()).unwrap();
    let two = trial.node("billing-2");
    let _leadership = trial.elected(&mut two.campaign("scheduler").unwrap());
    trial.run(&["history", "scheduler"]).succeeds().says(&[
        "billing-1",
        "billing-2",
        "freed it",
        "so far",
    ]);
    let history = trial.run(&["history", "scheduler", "--json"]).succeeds().json();
    let changes = history["leases"][0]["changes"].as_array().unwrap();
    let told: Vec<_> = changes
        .iter()
        .map(|it| (it["term"].as_u64().unwrap(), it["kind"].as_str().unwrap()))
        .collect();
    assert_eq!(told, [(1, "taken"), (1, "freed"), (2, "taken")]);
    trial.run(&["history"]).succeeds().says(&["scheduler", "incumbent/leader"]);
}

#[test]
fn watch_tells_the_state_first_and_then_each_change() {
    let trial = Trial::with_store();
    let mut watch =
        trial.command(&["watch", "scheduler", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    let first = next();
    assert_eq!((&first["type"], &first["cluster"]), (&"state".into(), &"trial".into()));

    let node = trial.node("billing-1");
    let leadership = trial.elected(&mut node.campaign("scheduler").unwrap());
    let taken = next();
    assert_eq!((&taken["type"], &taken["change"]), (&"lease".into(), &"taken".into()));
    assert_eq!((&taken["node"], &taken["term"]), (&"billing-1".into(), &1.into()));
    trial.runtime.block_on(leadership.release()).unwrap();
    assert_eq!(next()["change"], "freed");
    watch.kill().unwrap();
    watch.wait().unwrap();
}

#[test]
fn watch_follows_members_and_ends_when_nobody_reads() {
    let trial = Trial::with_store();
    let mut watch = trial.command(&["watch", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    lines.next();
    let node = trial.node("billing-1");
    let joined = lines.by_ref().map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let mut members = joined.filter(|line| line["type"] == "member");
    let joined = members.next().unwrap();
    assert_eq!(
        (&joined["change"], &joined["member"]["node"]),
        (&"joined".into(), &"billing-1".into())
    );
    drop(members);
    drop(lines);
    trial.runtime.block_on(node.leave()).unwrap();
    assert!(watch.wait().unwrap().success(), "nobody reads any more");
}
