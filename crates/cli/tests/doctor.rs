//! What `incumbent doctor` finds on good, slow and broken stores.
#![allow(clippy::unwrap_used, clippy::panic, reason = "this is test code, helpers too")]

mod common;

use std::time::Duration;

use common::servers::Postgres;
use common::{Ran, Trial, calmly, program};
use incumbent_proving::Proxy;
use serde_json::Value;

/// The finding about something.
#[track_caller]
fn check<'a>(report: &'a Value, check: &str) -> &'a Value {
    let checks = report["checks"].as_array().unwrap();
    checks.iter().find(|it| it["check"] == check).unwrap_or_else(|| panic!("{check}: {report:#}"))
}

/// A ttl with which no pause of a busy machine is too long.
const PATIENT: &str = "300s";

/// All is well, at the third time at the latest.
#[track_caller]
fn well(trial: &Trial, arguments: &[&str]) -> Ran {
    calmly(|| trial.command(arguments), |ran| ran.code == 0).succeeds()
}

#[test]
fn all_is_well_on_a_healthy_file_and_nothing_is_left_there() {
    let trial = Trial::with_store();
    let report = well(&trial, &["doctor", "--json", "--ttl", PATIENT]).json();
    assert_eq!(report["verdict"], "ok", "{report:#}");
    assert_eq!(report["cluster"], "trial");
    for name in ["store", "rights", "latency", "push", "clocks", "durability", "ttl"] {
        assert_eq!(check(&report, name)["mark"], "ok", "{report:#}");
    }
    for measured in ["read", "swap", "beat", "push"] {
        assert!(report["measured"][measured]["p99_ms"].is_f64(), "{report:#}");
    }
    assert_eq!(report["ttl"]["fits"], true);
    assert!(report["ttl"]["recommended_ms"].as_u64().unwrap() >= 15_000, "{report:#}");
    if cfg!(target_os = "linux") {
        assert_eq!(check(&report, "race")["mark"], "ok", "{report:#}");
        let hand_overs = report["race"]["hand_overs"].as_array().unwrap();
        assert!(hand_overs.len() >= 3, "{report:#}");
        for how in ["killed", "resigned", "ended"] {
            assert!(hand_overs.iter().any(|it| it["how"] == how), "{report:#}");
        }
    }
    assert_eq!(records(&trial), 0);
}

fn records(trial: &Trial) -> i64 {
    let file = rusqlite::Connection::open(trial.path().join("trial.db")).unwrap();
    file.query_row("SELECT count(*) FROM incumbent_records", [], |row| row.get(0)).unwrap()
}

#[test]
fn the_report_is_readable_at_80_columns() {
    let trial = Trial::with_store();
    let ran = well(&trial, &["doctor", "--quick", "--ttl", PATIENT]);
    let ran = ran.says(&["ok    store        sqlite", "Recommended: ttl", "All is well."]);
    let long: Vec<&str> = ran.stdout.lines().filter(|line| line.chars().count() > 80).collect();
    assert!(long.iter().all(|line| line.starts_with("sqlite:")), "{long:#?}");
    assert!(!ran.stdout.contains("race  "), "--quick leaves it out: {}", ran.stdout);
    let quick = well(&trial, &["doctor", "--quick", "--json", "--ttl", PATIENT]).json();
    assert!(quick["race"].is_null(), "{quick:#}");
}

#[test]
fn a_slow_store_needs_a_longer_ttl() {
    let postgres = Postgres::new();
    let slow = Proxy::blocking_before(&postgres.url);
    slow.set_round_trip(Duration::from_millis(300));
    let command = || {
        let mut command = program(&["doctor", "--json", "--quick"]);
        command.env("INCUMBENT_STORE", slow.url());
        command
    };
    let fits_some = |ran: &Ran| ran.json()["ttl"]["recommended_ms"].is_u64();
    let report = calmly(command, fits_some).ends_with(78).json();
    assert_eq!(report["verdict"], "warn", "{report:#}");
    let ttl = check(&report, "ttl");
    assert_eq!(ttl["mark"], "warn");
    assert!(ttl["said"].as_str().unwrap().contains("--ttl"), "{report:#}");
    assert!(report["measured"]["beat"]["p50_ms"].as_f64().unwrap() >= 300.0, "{report:#}");
    let recommended = report["ttl"]["recommended_ms"].as_u64().unwrap();
    assert!(recommended > 15_000, "{report:#}");
}

#[test]
fn candidates_race_on_postgres_and_leave_nothing_behind() {
    let postgres = Postgres::new();
    let command = || {
        let mut command = program(&["doctor", "--json", "--ttl", PATIENT]);
        command.env("INCUMBENT_STORE", &postgres.url);
        command
    };
    let report = calmly(command, |ran| ran.code == 0).succeeds().json();
    for name in ["rights", "push", "durability", "ttl"] {
        assert_eq!(check(&report, name)["mark"], "ok", "{report:#}");
    }
    if cfg!(target_os = "linux") {
        assert_eq!(check(&report, "race")["mark"], "ok", "{report:#}");
    }
    assert_eq!(postgres.keys(), Vec::<String>::new());
}

#[test]
fn what_loses_writes_is_told() {
    let trial = Trial::with_store();
    let url = format!("{}?synchronous=normal", trial.url());
    let arguments = ["--store", &url, "doctor", "--quick", "--ttl", PATIENT];
    let alone = |ran: &Ran| ran.stdout.contains("One thing should be changed");
    let ran = calmly(|| trial.command(&arguments), alone).ends_with(78);
    ran.says(&["warn  durability", "synchronous is normal", "One thing should be changed"]);
}

#[test]
fn a_store_that_is_not_there_or_refuses_fails_with_the_next_step() {
    let trial = Trial::new();
    trial.run(&["doctor"]).ends_with(69).says(&["fail  store", "store init", "One thing is wrong"]);
    let report = trial.run(&["doctor", "--json"]).ends_with(69).json();
    assert_eq!(report["verdict"], "fail");
    assert!(report["measured"].is_null() && report["ttl"].is_null(), "{report:#}");
    assert!(!trial.path().join("trial.db").exists(), "looking makes nothing");

    std::fs::write(trial.path().join("trial.db"), "not a database at all, ".repeat(100)).unwrap();
    trial.run(&["doctor"]).ends_with(69).says(&["fail  store", "trial.db"]);
    let nobody = "postgres://nobody@127.0.0.1:1/nothing";
    if Ran::of(program(&["store", "schema", nobody])).code == 0 {
        trial.run(&["--store", nobody, "doctor"]).ends_with(69).says(&["fail  store"]);
    }
}

#[test]
fn a_user_without_rights_is_told_what_to_grant() {
    let postgres = Postgres::new();
    let role = format!("{}_reader", postgres.schema);
    let reader = postgres.url.replacen("postgres@", &format!("{role}@"), 1);
    assert_ne!(reader, postgres.url, "the server of the tests has the user postgres");
    Ran::of(program(&["store", "init", &postgres.url])).succeeds();
    let schema = &postgres.schema;
    postgres.sql(&format!(
        "CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA {schema} TO {role}; \
         GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}"
    ));
    let ran = Ran::of(program(&["--store", &reader, "doctor", "--quick"]));
    postgres.sql(&format!("DROP OWNED BY {role}; DROP ROLE {role}"));
    ran.ends_with(69).says(&["fail", "GRANT"]);
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupted_race_leaves_nothing_behind() {
    use common::runs::{Run, until};
    use rustix::process::Signal;
    let trial = Trial::with_store();
    let said = trial.path().join("said");
    let mut command = trial.command(&["doctor", "--ttl", PATIENT]);
    command.stdout(std::process::Stdio::null()).stderr(std::fs::File::create(&said).unwrap());
    let mut doctor = Run::start(command);
    until("a race", || std::fs::read_to_string(&said).unwrap().contains("racing").then_some(()));
    doctor.signal(Signal::INT);
    assert_eq!(doctor.code(), 130);
    assert_eq!(records(&trial), 0);
    // What was killed takes its own moment to end.
    let lock = trial.path().join("trial.db");
    until("nobody left", || (users(&lock) == 0).then_some(()));
    assert_eq!(records(&trial), 0);
}

/// How many processes other than this one have a file open.
#[cfg(target_os = "linux")]
fn users(file: &std::path::Path) -> usize {
    let own = std::process::id().to_string();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let others = processes.filter(|it| it.file_name().to_str() != Some(&own));
    others
        .filter(|process| {
            let open = std::fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten();
            open.filter_map(|it| std::fs::read_link(it.path()).ok()).any(|path| path == file)
        })
        .count()
}

#[test]
fn what_is_not_understood_ends_with_64() {
    for arguments in [
        &["doctor", "--ttl", "soon"][..],
        &["doctor", "--ttl", "1s"],
        &["doctor", "--ttl", "2h"],
        &["doctor", "--slow"],
        &["--store", "memory:", "doctor"],
        &["--store", "solo:", "doctor"],
        &["--store", "mongo://db", "doctor"],
        &["doctor-part", "race", "/dev/null"],
    ] {
        let ran = Ran::of(program(arguments));
        assert_eq!(ran.code, 64, "{arguments:?}: {ran:#?}");
        assert!(!ran.stderr.is_empty(), "{arguments:?}");
    }
}
