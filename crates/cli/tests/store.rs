//! Commands about the store itself.

mod common;

use std::process::Stdio;

use common::{Ran, Trial, program};

#[test]
fn check_tries_the_store_and_measures_it() {
    let trial = Trial::with_store();
    let url = trial.url();
    let report = trial.run(&["store", "check", &url, "--json"]).succeeds().json();
    assert_eq!(report["kind"], "sqlite");
    assert_eq!(report["failed"], 0);
    assert_eq!(report["offers"]["push"], true);
    assert!(report["measured"]["round_trip"]["p50_ms"].is_f64(), "{report:#}");
    assert!(report["measured"]["push"]["p99_ms"].is_f64(), "{report:#}");
    assert_eq!(report["measured"]["batch"]["records"], 100);
    assert!(report["can_lose"][0].as_str().unwrap().contains("deleted"), "{report:#}");
    let properties = report["properties"].as_array().unwrap();
    assert!(properties.iter().any(|it| it["property"] == "swap-once" && it["verdict"] == "passed"));
    trial.run(&["status"]).succeeds().says(&["empty"]);
}

#[test]
fn check_of_a_store_that_is_not_there_fails() {
    Ran::of(program(&["store", "check", "sqlite:/no/such/place.db"])).ends_with(69);
}

#[test]
fn schema_is_printed_and_can_be_run() {
    let schema = Ran::of(program(&["store", "schema", "sqlite:app.db?prefix=election_"]));
    schema.succeeds().says(&["CREATE TABLE IF NOT EXISTS election_records", "election_leases"]);
    Ran::of(program(&["store", "schema", "memory:"])).succeeds().complains(&["nothing"]);
    Ran::of(program(&["store", "schema", "mongo:"])).ends_with(64).complains(&["sqlite:"]);
}

#[test]
fn init_makes_the_store_any_number_of_times() {
    let trial = Trial::new();
    trial.run(&["status"]).ends_with(69);
    for _ in 0..2 {
        trial.run(&["store", "init"]).succeeds().says(&["ready"]);
    }
    let ready = trial.run(&["store", "init", "--json"]).succeeds().json();
    assert_eq!(ready["kind"], "sqlite");
    trial.run(&["status"]).succeeds();
}

#[test]
fn reset_asks_first_and_spares_other_clusters() {
    let trial = Trial::with_store();
    trial.run(&["store", "reset"]).succeeds().says(&["no records"]);
    let [node] = trial.candidates("scheduler", ["billing-1"]);
    trial.until_named(&node);
    trial.run(&["store", "reset", "--yes"]).ends_with(1).complains(&["billing-1", "--force"]);
    trial.runtime.block_on(node.leave()).unwrap();

    let mut asked = trial.command(&["store", "reset"]);
    asked.stdin(Stdio::null());
    Ran::of(asked).ends_with(64).complains(&["--yes"]);
    trial.run(&["store", "reset", "--yes", "--cluster", "other"]).succeeds();
    trial.run(&["status"]).succeeds().says(&["scheduler"]);

    let reset = trial.run(&["store", "reset", "--yes", "--json"]).succeeds().json();
    assert_eq!(reset["cluster"], "trial");
    assert!(reset["removed"].as_u64().unwrap() >= 3, "{reset}");
    trial.run(&["status"]).succeeds().says(&["empty"]);
}
