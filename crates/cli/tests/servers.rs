//! Commands about stores with servers, on the servers that `cargo xtask test` starts.

mod common;

use common::{Ran, calmly, program};
use incumbent_proving::server::{azurite, etcd, mariadb, nats, postgres, redis};
use serde_json::Value;

/// A store, its server, and what its schema must say.
type Served = (&'static str, fn() -> String, &'static [&'static str]);

const STORES: &[Served] = &[
    ("postgres", postgres::shared, &["CREATE TABLE", "incumbent_records", "-- GRANT"]),
    ("redis", redis::shared, &["nothing to create", "ACL SETUSER", "+evalsha"]),
    ("mysql", mariadb::shared, &["CREATE TABLE", "incumbent_records", "-- GRANT"]),
    ("etcd", etcd::shared, &["nothing to create", "grant-permission", "'/incumbent/'"]),
    ("nats", nats::shared, &["nats kv add incumbent", "$KV.incumbent.>"]),
    ("az", azurite::shared, &["az storage container create --name incumbent"]),
];

/// The stores of this build, with the URLs of their servers.
fn served() -> Vec<(&'static str, String, &'static [&'static str])> {
    let stores = STORES.iter().filter(|(kind, ..)| is_built(kind));
    let served: Vec<_> = stores.map(|(kind, shared, schema)| (*kind, shared(), *schema)).collect();
    assert!(!served.is_empty(), "this build knows no store with a server");
    served
}

fn is_built(kind: &str) -> bool {
    let scheme = format!("{kind}:");
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
