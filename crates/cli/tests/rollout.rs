//! `incumbent rollout …`: what operators see of a deploy, and say about it.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "all of this is test code")]

mod common;

use std::time::Duration;

use common::{PATIENCE, Trial};
use incumbent::{DutyDescription, Node, Serving, family};
use serde_json::Value;

/// A node of one version of a family with two duties; a broken one fails at once.
fn worker(trial: &Trial, name: &str, version: &str, broken: bool) -> (Node, Serving) {
    let node = trial.node(name);
    let duties = ["orders", "invoices"].map(|name| DutyDescription::named(name).version(version));
    let hasty = Duration::from_millis(5);
    let family = family("projection").version(version).duties(duties);
    let family = family.give_up_after(1).restart_pause(hasty, hasty);
    let work = family.run(move |duty| async move {
        if broken {
            return Err("no such table: orders_v2".into());
        }
        duty.token().cancelled().await;
        Ok(())
    });
    let _runtime = trial.runtime.enter();
    let serving = node.serve(work).unwrap();
    (node, serving)
}

/// Asks for the only rollout until it is as wanted.
#[track_caller]
fn until(trial: &Trial, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let began = incumbent::clock::now();
    loop {
        let shown = trial.run(&["rollout", "status", "--json"]).succeeds().json();
        if wanted(&shown["rollouts"][0]) {
            return shown["rollouts"][0].clone();
        }
        let waited = incumbent::clock::now().since(began);
        assert!(waited < PATIENCE, "{what}: {shown:#}");
        trial.runtime.block_on(async { tokio::time::sleep(Duration::from_millis(100)).await });
    }
}

#[test]
fn a_rollout_is_shown_held_promoted_and_aborted() {
    let trial = Trial::with_store();
    trial.run(&["rollout", "status"]).succeeds().says(&["No family", "names a version"]);
    trial
        .run(&["rollout", "promote"])
        .ends_with(1)
        .complains(&["no family has a rollout under way"]);
    let (_old, _serving) = worker(&trial, "old", "1.0.0-rc.1", false);
    let settled = until(&trial, "it runs", |it| it["versions"][0]["duties"] == 2);
    assert_eq!(settled["state"], "settled");
    trial.run(&["rollout", "hold", "projection"]).succeeds().says(&["no more duties move"]);
    let (_new, _serving) = worker(&trial, "new", "1.0.0", false);
    let held = until(&trial, "it is held", |it| it["state"] == "held");
    assert_eq!((&held["newest"], &held["order"]), (&"1.0.0".into(), &"by semantic version".into()));
    let asked = trial.run(&["rollout", "promote", "--json"]).succeeds().json();
    assert_eq!(asked["asked"][0]["family"], "projection");
    until(&trial, "all moved", |it| it["state"] == "settled" && it["versions"][0]["duties"] == 2);
    // A rollout is settled by what the leader wants, a duty runs a moment later.
    let began = incumbent::clock::now();
    while trial.run(&["duties", "--json"]).succeeds().json()["duties"][0]["version"] != "1.0.0" {
        assert!(incumbent::clock::now().since(began) < PATIENCE, "it runs as the newest version");
    }
    trial.run(&["rollout", "abort"]).succeeds().says(&["all duties will come back"]);
    until(&trial, "all came back", |it| {
        it["state"] == "aborted" && it["versions"][1]["duties"] == 2
    });
    trial
        .run(&["rollout", "status", "projection"])
        .succeeds()
        .says(&["the newest version was given up: an operator asked for it", "1.0.0-rc.1"]);
    trial.run(&["explain", "projection/orders"]).succeeds().says(&[
        "it runs as version 1.0.0-rc.1",
        "the newest version is 1.0.0, by semantic version",
        "it isn't to run version 1.0.0",
    ]);
    trial.run(&["rollout", "abort", "unknown"]).ends_with(1).complains(&["names no version"]);
}

#[test]
fn what_came_back_is_shown_with_the_reason_and_canaries_are_the_operators_word() {
    let trial = Trial::with_store();
    let (_old, _serving) = worker(&trial, "old", "1", false);
    until(&trial, "it runs", |it| it["versions"][0]["duties"] == 2);
    trial
        .run(&["rollout", "canary", "projection", "1", "--well-for", "1h"])
        .succeeds()
        .says(&["new versions are tried this way"]);
    let (_new, _serving) = worker(&trial, "new", "2", true);
    let back = until(&trial, "one came back", |it| it["state"] == "returned");
    assert_eq!(back["trial"]["limit"], 1);
    let returned = back["versions"][0]["returned"].as_object().unwrap();
    assert_eq!(returned.len(), 1, "no other was tried");
    let why = returned.values().next().unwrap().as_str().unwrap();
    assert!(why.contains("no such table: orders_v2"), "{why}");
    trial
        .run(&["rollout", "canary", "projection", "--off"])
        .succeeds()
        .says(&["as their nodes say"]);
    trial
        .run(&["rollout", "canary", "projection", "none"])
        .ends_with(64)
        .complains(&["1% to 100%"]);
}
