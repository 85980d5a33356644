//! Commands that show duties and steer them.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "all of this is test code")]

mod common;

use std::time::Duration;

use common::{PATIENCE, Trial};
use incumbent::{Node, Serving, family};
use serde_json::Value;

/// A node that serves two duties, which run until they are told to stop.
fn worker(trial: &Trial, name: &str) -> (Node, Serving) {
    let node = trial.node(name);
    let work = family("projection").duties(["orders", "invoices, late"]).run(|duty| async move {
        duty.progress("at 42");
        duty.token().cancelled().await;
        Ok(())
    });
    let _runtime = trial.runtime.enter();
    let serving = node.serve(work).unwrap();
    (node, serving)
}

fn pause(trial: &Trial, span: Duration) {
    trial.runtime.block_on(async { tokio::time::sleep(span).await });
}

/// Asks for all duties until they are as wanted.
#[track_caller]
fn until(trial: &Trial, what: &str, wanted: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    let began = incumbent::clock::now();
    loop {
        let shown = trial.run(&["duties", "--json"]).succeeds().json();
        let duties = shown["duties"].as_array().cloned().unwrap_or_default();
        if wanted(&duties) {
            return duties;
        }
        let waited = incumbent::clock::now().since(began);
        assert!(waited < PATIENCE, "{what}: {duties:#?}");
        pause(trial, Duration::from_millis(100));
    }
}

fn state<'a>(duties: &'a [Value], name: &str) -> &'a str {
    let duty = duties.iter().find(|duty| duty["name"] == name);
    duty.and_then(|duty| duty["state"].as_str()).unwrap_or("unknown")
}

#[test]
fn duties_are_shown_explained_paused_and_resumed() {
    let trial = Trial::with_store();
    trial.run(&["duties"]).succeeds().says(&["no duties"]);
    let (_node, serving) = worker(&trial, "billing-1");
    let active =
        |duties: &[Value]| duties.len() == 2 && duties.iter().all(|duty| duty["state"] == "active");
    let duties = until(&trial, "both run", active);
    let orders = duties.iter().find(|duty| duty["name"] == "orders").unwrap();
    assert_eq!(orders["duty"], "projection/orders");
    assert_eq!(orders["family"], "projection");
    assert_eq!(orders["node"], "billing-1");
    assert_eq!(orders["address"], "billing-1:80");
    assert_eq!(orders["term"], 1);
    trial.run(&["duties"]).succeeds().says(&["projection/invoices, late", "active", "billing-1"]);
    trial.run(&["duties", "--not-active"]).succeeds().says(&["All 2 duties"]);
    trial.run(&["status"]).succeeds().says(&["projection/orders"]);
    let status = trial.run(&["status", "--json"]).succeeds().json();
    assert_eq!(status["duties"].as_array().map(Vec::len), Some(2));
    trial.run(&["explain", "projection/orders"]).succeeds().says(&["active", "billing-1"]);
    trial.run(&["plan", "--dry-run"]).succeeds().says(&["Nothing would move"]);

    trial.run(&["pause", "projection/orders"]).succeeds().says(&["paused until"]);
    until(&trial, "orders is paused", |duties| state(duties, "orders") == "paused");
    trial.run(&["explain", "projection/orders"]).succeeds().says(&["paused"]);
    trial.run(&["resume", "projection/orders"]).succeeds().says(&["no longer paused"]);
    until(&trial, "orders runs again", active);
    trial.run(&["resume", "projection/orders"]).succeeds().says(&["nothing to withdraw"]);
    drop(serving);
}

#[test]
fn duties_move_where_operators_want_them() {
    let trial = Trial::with_store();
    let _one = worker(&trial, "billing-1");
    until(&trial, "both run", |duties| {
        duties.len() == 2 && duties.iter().all(|duty| duty["state"] == "active")
    });
    let _two = worker(&trial, "billing-2");
    pause(&trial, Duration::from_millis(500));
    let pin = ["pin", "projection/orders", "--to", "billing-2", "--required"];
    trial.run(&pin).succeeds().says(&["there or nowhere"]);
    let on = |name: &'static str, node: &'static str| {
        move |duties: &[Value]| {
            state(duties, name) == "active"
                && duties.iter().any(|duty| duty["name"] == name && duty["node"] == node)
        }
    };
    until(&trial, "orders is pinned", on("orders", "billing-2"));
    trial.run(&["unpin", "projection/orders"]).succeeds().says(&["no longer pinned"]);
    trial.run(&["cordon", "billing-1"]).succeeds().says(&["gets no more duties"]);
    trial.run(&["drain", "billing-1"]).succeeds().says(&["is emptied"]);
    until(&trial, "billing-1 is empty", on("invoices, late", "billing-2"));
    trial.run(&["undrain", "billing-1"]).succeeds();
    trial.run(&["uncordon", "billing-1"]).succeeds();
    let step = ["move", "projection/orders", "--to", "billing-1"];
    trial.run(&step).succeeds().says(&["will move to billing-1"]);
    until(&trial, "orders has moved", on("orders", "billing-1"));
    history_tells_of_the_moves(&trial);
    trial.run(&["freeze"]).succeeds().says(&["until `incumbent thaw`"]);
    trial.run(&["thaw"]).succeeds().says(&["again"]);
}

#[track_caller]
fn history_tells_of_the_moves(trial: &Trial) {
    let steps = [(Value::Null, "billing-1"), ("billing-1".into(), "billing-2")];
    let back = ("billing-2".into(), "billing-1");
    let told = |moves: &[Value]| {
        let told = |(from, to): &(Value, &str)| {
            let is = |it: &Value| (&it["from"], &it["to"]) == (from, &Value::from(*to));
            moves.iter().any(|it| it["duty"] == "projection/orders" && is(it))
        };
        steps.iter().chain([&back]).all(told)
    };
    // The leader writes down what it has moved a moment after it has.
    let began = incumbent::clock::now();
    let moves = loop {
        let history = trial.run(&["history", "--json"]).succeeds().json();
        assert!(!history["leases"].as_array().unwrap().is_empty());
        let moves = history["moves"].as_array().cloned().unwrap();
        if told(&moves) {
            break moves;
        }
        assert!(incumbent::clock::now().since(began) < PATIENCE, "{moves:#?}");
        pause(trial, Duration::from_millis(100));
    };
    let well = |it: &Value| it["at_ms"].is_u64() && !it["why"].as_str().unwrap().is_empty();
    assert!(moves.iter().all(well), "{moves:#?}");

    let of = |duty: &str| -> Vec<Value> {
        let history = trial.run(&["history", "--duty", duty, "--json"]).succeeds().json();
        assert_eq!(history["leases"], Value::Array(Vec::new()));
        history["moves"].as_array().cloned().unwrap()
    };
    let orders = of("projection/orders");
    assert!(orders.len() >= 3 && orders.iter().all(|it| it["duty"] == "projection/orders"));
    assert!(of("projection").len() >= moves.len(), "all are of one family");
    trial.run(&["history"]).succeeds().says(&["incumbent/leader", "WHY", "projection/orders"]);
    let ran = trial.run(&["history", "--duty", "projection/orders"]).succeeds();
    assert!(!ran.stdout.contains("invoices") && !ran.stdout.contains("leader"), "{ran:#?}");
}

#[test]
fn what_is_unknown_or_senseless_is_said() {
    let trial = Trial::with_store();
    trial.run(&["explain", "projection/ghost"]).ends_with(1).complains(&["nobody knows", "ghost"]);
    for command in ["explain", "pause", "resume", "unpin"] {
        for duty in ["lonely", "", "/orders", "projection/"] {
            let ran = trial.run(&[command, duty]).ends_with(64);
            ran.complains(&[&format!("'{duty}'"), "family/name", "projection/orders"]);
        }
    }
    trial.run(&["pause", "a/b/c"]).succeeds().complains(&["no live member"]);
    let unknown = trial.run(&["cordon", "ghost", "--json"]).succeeds().json();
    assert_eq!(unknown["unknown"][0], "ghost");
    assert_eq!(unknown["done"], true);
    trial.run(&["history", "--duty", "ghost"]).ends_with(1).complains(&["ghost", "duties"]);
    trial.run(&["history", "scheduler", "--duty", "a/b"]).ends_with(64).complains(&["--duty"]);
    trial.run(&["move", "projection/orders"]).ends_with(64).complains(&["--to"]);
    trial.run(&["pin", "projection/orders", "--to", ""]).ends_with(64).complains(&["empty"]);
}
