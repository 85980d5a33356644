//! Work that can't be ended, and a program that would rather end as a whole.
#![allow(clippy::unwrap_used, reason = "this is test code, also where it is no test")]

mod common;

use std::process::Command;
use std::time::Duration;

use common::{join, memory, pause, soon, until};
use incumbent::{Candidacy, Overrun};

/// Set in the process that is to be aborted.
const DOOMED: &str = "INCUMBENT_TEST_DOOMED";

#[test]
fn a_program_may_choose_to_be_aborted() {
    if std::env::var_os(DOOMED).is_some() {
        return be_doomed();
    }
    let myself = std::env::current_exe().unwrap();
    let output = Command::new(myself)
        .args(["--exact", "a_program_may_choose_to_be_aborted", "--nocapture"])
        .env(DOOMED, "yes")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success() && said.contains("stopping"), "{said}");
    assert!(!said.contains("survived"), "{said}");
}

fn be_doomed() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let node = join(&memory(), "a").await;
        let candidacy = Candidacy::new("scheduler")
            .grace(Duration::from_millis(100))
            .on_overrun(Overrun::AbortProcess);
        let lead = node
            .lead_blocking(candidacy, |_| {
                std::thread::park_timeout(Duration::from_secs(20));
                Ok(())
            })
            .unwrap();
        until("it leads", || lead.is_leader()).await;
        println!("stopping");
        soon(lead.stop()).await;
        println!("survived");
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_lease_of_work_that_overruns_is_not_freed_under_it() {
    let store = memory();
    let node = join(&store, "a").await;
    let candidacy = Candidacy::new("scheduler").grace(Duration::from_millis(50));
    let lead = node
        .lead(candidacy, |_| async {
            // A task that never yields can't be aborted.
            std::thread::park_timeout(Duration::from_millis(1500));
            Ok(())
        })
        .unwrap();
    until("it leads", || lead.is_leader()).await;
    let other = join(&store, "b").await;
    let mut campaign = other.campaign("scheduler").unwrap();
    let stopping = common::spawn(async move { lead.stop().await });
    pause(700).await;
    assert!(!other.is_leader("scheduler") && !node.is_leader("scheduler"), "F10");
    soon(stopping).await.unwrap();
    assert!(soon(campaign.elected()).await.is_ok());
}
