//! What killed runs leave in the store, where there are short runs and nothing else (O42).
#![cfg(target_os = "linux")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "this is test code, helpers too")]

mod common;

use std::collections::BTreeSet;

use common::Trial;
use common::runs::{Run, send, until};
use rustix::process::Signal;

/// How many runs are killed, and how many at a time.
const KILLS: usize = 24;
const AT_ONCE: usize = 6;

/// So many short runs must be enough: one in four of them looks.
const SHORT_RUNS: usize = 80;

fn keys(trial: &Trial, kinds: &[&str]) -> BTreeSet<String> {
    let of_kind = |key: &String| kinds.iter().any(|kind| key.starts_with(kind));
    trial.records().into_iter().map(|(key, _)| key).filter(of_kind).collect()
}

/// Starts some runs and kills them while their commands run. Of every other one the guardian goes
/// first, so that nobody is left to close its member.
fn kill_some(trial: &Trial, from: usize) {
    let start = |number: usize| {
        let lease = format!("job-{number}");
        let flags = ["run", "--lease", &lease, "--ttl", "10s", "--", "sleep", "600"];
        Run::start(trial.command(&flags))
    };
    let mut runs: Vec<(usize, Run)> =
        (from..from + AT_ONCE).map(|number| (number, start(number))).collect();
    for (number, run) in &mut runs {
        until("the lease is taken", || trial.record(&format!("lease/job-{number}")));
        let guardian = run.guardian();
        if *number % 2 == 0 {
            run.signal(Signal::STOP);
            send(guardian, Signal::KILL);
        }
        run.signal(Signal::KILL);
        run.end();
    }
}

/// Lets more time pass for all records than closed members stay visible, by the store's clock.
fn let_time_pass(trial: &Trial) {
    match &trial.postgres {
        Some(postgres) => {
            let records = format!("{}.incumbent_records", postgres.schema);
            let older = "written = written - interval '100 seconds'";
            postgres.sql(&format!("UPDATE {records} SET {older}"));
        }
        None => {
            let connection = rusqlite::Connection::open(trial.path().join("trial.db")).unwrap();
            connection.busy_timeout(common::PATIENCE).unwrap();
            let older = "UPDATE incumbent_records SET written_ms = written_ms - 100000";
            connection.execute_batch(older).unwrap();
        }
    }
}

/// Runs short commands until this is so.
fn run_until(trial: &Trial, what: &str, is_so: impl Fn() -> bool) -> usize {
    for number in 0..SHORT_RUNS {
        if is_so() {
            return number;
        }
        trial.run(&["run", "--lease", "short", "--", "true"]).succeeds();
    }
    panic!("{what}: not after {SHORT_RUNS} short runs: {:#?}", keys(trial, &[""]));
}

#[test]
fn o42_short_runs_alone_collect_what_killed_ones_left() {
    for trial in Trial::on_each_store() {
        for from in (0..KILLS).step_by(AT_ONCE) {
            kill_some(&trial, from);
        }
        let left = keys(&trial, &["member/", "profile/"]);
        assert!(left.len() >= 2 * KILLS, "{left:#?}");

        let_time_pass(&trial);
        let alive = || {
            let records = trial.records().into_iter().filter(|(key, _)| left.contains(key));
            let alive = records
                .filter(|(_, value)| String::from_utf8_lossy(value).contains(r#""state":"alive""#));
            alive.count()
        };
        println!(
            "{} records are left, {} of them of members that nobody closed",
            left.len(),
            alive()
        );
        let closing = run_until(&trial, "all are closed", || alive() == 0);

        let_time_pass(&trial);
        let there = || keys(&trial, &["member/", "profile/"]).intersection(&left).count();
        let deleting = run_until(&trial, "all are deleted", || there() == 0);

        // What the short runs themselves left goes the same way.
        let_time_pass(&trial);
        let few = || keys(&trial, &["member/", "profile/"]).len() <= 24;
        let last = run_until(&trial, "few are left", few);
        println!("closed by {closing} short runs, deleted by {deleting} more, few after {last}");
        let leases = keys(&trial, &["lease/job-"]);
        assert_eq!(leases.len(), KILLS, "leases stay: {leases:#?}");
    }
}
