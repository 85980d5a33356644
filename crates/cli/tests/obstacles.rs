//! A take-over that waits for an application's transaction says for whose (O37).
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests")]

mod common;

use std::process::Stdio;

use common::Trial;
use tokio_postgres::{Client, NoTls};

/// An application's transaction that holds on to a row, and how the server names it.
fn locked(trial: &Trial, key: &str) -> (Client, String) {
    let schema = &trial.postgres.as_ref().unwrap().schema;
    let server = std::env::var("INCUMBENT_TEST_POSTGRES").unwrap();
    trial.runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(&server, NoTls).await.unwrap();
        trial.runtime.spawn(connection);
        let lock = format!(
            "SET application_name = 'ledger'; BEGIN; SELECT 'hunter2' FROM \
             {schema}.incumbent_records WHERE key LIKE '{key}' FOR SHARE"
        );
        client.batch_execute(&lock).await.unwrap();
        let pid: i32 = client.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
        (client, format!("pid {pid} "))
    })
}

#[test]
fn o37_a_take_over_that_waits_says_for_whom() {
    let trial = Trial::on_postgres();
    let node = trial.node("billing-1");
    let leadership = trial.elected(&mut node.campaign("scheduler").unwrap());
    trial.runtime.block_on(leadership.release()).unwrap();
    trial.runtime.block_on(node.leave()).unwrap();

    let (client, holder) = locked(&trial, "lease/scheduler");
    let log = std::fs::File::create(trial.path().join("log")).unwrap();
    let mut run = trial.command(&["-vv", "run", "--lease", "scheduler", "--", "true"]);
    let mut run = run.stdout(Stdio::null()).stderr(log).spawn().unwrap();
    let said = || std::fs::read_to_string(trial.path().join("log")).unwrap();
    let told = |text: &str| {
        ["lease/scheduler", &holder, "ledger", "idle in transaction"]
            .iter()
            .all(|word| text.contains(word))
    };
    common::eventually("the log says who is in the way", || {
        said().lines().any(|line| line.contains("waits for somebody else's lock") && told(line))
    });
    common::eventually("status says who is in the way", || {
        told(&trial.run(&["status"]).succeeds().stdout)
    });
    common::eventually("JSON says who is in the way", || {
        let status = trial.run(&["status", "--json"]).succeeds().json();
        let first = &status["obstacles"][0];
        first["key"] == "lease/scheduler" && first["holder"].to_string().contains(&holder)
    });
    trial.runtime.block_on(client.batch_execute("COMMIT")).unwrap();
    assert!(run.wait().unwrap().success(), "{}", said());
    assert!(!said().contains("hunter2"));
    let status = trial.run(&["status", "--json"]).succeeds().json();
    assert_eq!(status["obstacles"], serde_json::json!([]));
}

#[test]
fn o37_an_operator_whose_request_waits_is_told_for_whom() {
    let trial = Trial::on_postgres();
    let node = trial.node("billing-1");
    let _leadership = trial.elected(&mut node.campaign("scheduler").unwrap());
    trial.run(&["freeze"]).succeeds();
    let (_client, holder) = locked(&trial, "board");
    let refused = trial.run(&["resign", "scheduler", "--timeout", "60s"]).ends_with(69);
    let refused = refused.complains(&["board", "locked by", &holder, "ledger"]);
    assert!(!refused.stderr.contains("hunter2"), "{refused:#?}");
}
