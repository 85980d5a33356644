//! Commands about stores with servers, on the servers that `cargo xtask test` starts.

mod common;

use common::{Ran, calmly, program};
use serde_json::Value;

/// A store, the variable that names its server, and what its schema must say.
const STORES: &[(&str, &str, &[&str])] = &[
    ("postgres", "INCUMBENT_TEST_POSTGRES", &["CREATE TABLE", "incumbent_records", "-- GRANT"]),
    ("redis", "INCUMBENT_TEST_REDIS", &["nothing to create", "ACL SETUSER", "+evalsha"]),
    ("mysql", "INCUMBENT_TEST_MYSQL", &["CREATE TABLE", "incumbent_records", "-- GRANT"]),
    ("etcd", "INCUMBENT_TEST_ETCD", &["nothing to create", "grant-permission", "'/incumbent/'"]),
    ("nats", "INCUMBENT_TEST_NATS", &["nats kv add incumbent", "$KV.incumbent.>"]),
    ("az", "INCUMBENT_TEST_AZURE", &["az storage container create --name incumbent"]),
];

/// The stores of this build whose servers are there, with their URLs.
fn served() -> Vec<(&'static str, String, &'static [&'static str])> {
    let mut served = Vec::new();
    for (kind, variable, schema) in STORES {
        match std::env::var(variable) {
            Ok(url) if is_built(&url) => served.push((*kind, url, *schema)),
            Ok(url) => println!("{url}: this build doesn't know it"),
            Err(_) => println!("{kind}: {variable} names no server"),
        }
    }
    let required = std::env::var_os("INCUMBENT_REQUIRE_SERVERS").is_some();
    assert!(!required || !served.is_empty(), "no server at all is named");
    served
}

fn is_built(url: &str) -> bool {
    let scheme = format!("{}:", url.split(':').next().unwrap_or_default());
    let unknown = Ran::of(program(&["store", "schema", "no-such-store:"])).ends_with(64);
    unknown.stderr.contains(&scheme)
}

#[test]
fn schema_says_what_is_needed_and_opens_nothing() {
    for (kind, url, expected) in served() {
        println!("{kind}");
        Ran::of(program(&["store", "schema", &url])).succeeds().says(expected);
    }
}

#[test]
fn init_makes_what_is_missing_any_number_of_times() {
    for (kind, url, _) in served() {
        for _ in 0..2 {
            let ready = Ran::of(program(&["store", "init", &url, "--json"])).succeeds().json();
            assert_eq!(ready["kind"], kind);
        }
    }
}

#[test]
fn check_tells_what_a_store_offers_and_can_lose() {
    // One that pushes and one that doesn't; each store's own tests run the kit.
    for (kind, url, _) in served().into_iter().filter(|it| ["postgres", "mysql"].contains(&it.0)) {
        let report = Ran::of(program(&["store", "check", &url, "--json"])).succeeds().json();
        assert_eq!(report["kind"], kind);
        assert_eq!(report["failed"], 0, "{report:#}");
        assert!(!report["can_lose"].as_array().unwrap().is_empty(), "{report:#}");
        let measured = &report["measured"];
        assert!(measured["round_trip"]["p99_ms"].is_f64(), "{report:#}");
        assert!(measured["batch"]["ms"].is_f64(), "{report:#}");
        let pushes = report["offers"]["push"] == Value::Bool(true);
        assert_eq!(pushes, measured["push"].is_object(), "{report:#}");
    }
}

#[test]
fn doctor_finds_its_way_on_every_store() {
    for (kind, url, _) in served() {
        // A ttl with which no pause of a busy machine is too long.
        let command = || {
            let mut command = program(&["doctor", "--quick", "--json", "--ttl", "300s"]);
            command.env("INCUMBENT_STORE", &url);
            command
        };
        let ran = calmly(command, |ran| ran.json()["ttl"]["fits"] == true);
        let report = ran.json();
        // How a server is set up may deserve a warning; a failure is one of ours.
        assert!([0, 78].contains(&ran.code), "{kind}: {report:#}");
        let checks = report["checks"].as_array().unwrap();
        for name in ["store", "rights", "latency", "push", "durability", "ttl"] {
            assert!(checks.iter().any(|it| it["check"] == name), "{kind} lacks {name}: {report:#}");
        }
        let warned: Vec<&Value> = checks.iter().filter(|it| it["mark"] != "ok").collect();
        assert!(warned.iter().all(|it| it["check"] == "durability"), "{kind}: {warned:#?}");
    }
}
