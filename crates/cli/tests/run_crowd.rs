//! Many runs that start at once, and a server that is slow to take them in (O39).
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests")]

mod common;

use std::process::{Child, Output, Stdio};

use common::Trial;
use incumbent_proving::{Mood, Proxy};

/// So many start at once.
const RUNS: u64 = 8;

#[test]
fn o39_runs_that_get_no_connection_in_time_wait_as_they_were_told() {
    let trial = Trial::on_postgres();
    let proxy = Proxy::blocking_before(&trial.url());
    // Whoever asks for a connection gives that one up after three seconds.
    proxy.set(Mood::Silent);
    let url = format!("{}&connect_timeout=3", proxy.url());
    let start = |number: u64| -> Child {
        let lease = format!("job-{number}");
        // A ttl with which no pause of a busy machine is too long.
        let arguments = ["run", "--lease", &lease, "--ttl", "60s", "--wait", "120s", "--", "true"];
        let mut command = trial.command(&arguments);
        command.env("INCUMBENT_STORE", &url).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(Stdio::piped()).spawn().unwrap()
    };
    let runs: Vec<Child> = (0..RUNS).map(start).collect();
    // Most of them have given up before anybody is let in.
    common::eventually("they try again", || proxy.traffic().connections >= 8 * RUNS);
    proxy.set(Mood::Fine);
    let ended: Vec<Output> = runs.into_iter().map(|run| run.wait_with_output().unwrap()).collect();
    let said = |run: &Output| String::from_utf8_lossy(&run.stderr).into_owned();
    let failed = ended.iter().filter(|run| !run.status.success());
    let failed: Vec<_> = failed.map(|run| (run.status, said(run))).collect();
    assert!(failed.is_empty(), "{} of {RUNS} failed: {failed:#?}", failed.len());
    let waited = ended.iter().filter(|run| said(run).contains("waiting for the store"));
    assert_eq!(waited.count(), ended.len(), "and says so");
}
