//! What operators ask for reaches `run` where the store tells nobody.
#![cfg(target_os = "linux")]

mod common;

use std::process::Command;
use std::time::Duration;

use common::runs::{Run, Stage, pause};
use common::{Ran, program};
use incumbent::clock;
use incumbent_proving::server::mariadb;
use incumbent_proving::store::fresh;
use rustix::process::Signal;

/// So long that nothing but a hint tells the holder in time: it beats three times in it.
const TTL: &str = "900s";
/// A fifth of the time from beat to beat, and a hundred times what a hint takes on a busy machine.
const SOON: Duration = Duration::from_secs(60);

#[test]
fn resign_and_sigterm_are_followed_at_once_on_a_store_that_pushes_nothing() {
    let (stage, url, cluster) = (Stage::new(), mariadb::shared(), fresh("hints"));
    let place = |mut command: Command| {
        command.env("INCUMBENT_STORE", &url).env("INCUMBENT_CLUSTER", &cluster);
        command
    };
    let start = |name: &str| {
        let script = format!("echo {name} >> $LOG; exec sleep 600");
        Run::start(place(stage.shell(&["--ttl", TTL, "--restart"], &script)))
    };
    let _one = start("one");
    stage.log.until("one");
    let two = start("two");
    waits(&stage, &place, 2);
    let asked = clock::now();
    Ran::of(place(program(&["resign", "job"]))).succeeds();
    stage.log.until("two");
    assert!(clock::now().since(asked) < SOON, "{:?}", clock::now().since(asked));
    let _three = start("three");
    waits(&stage, &place, 3);
    two.signal(Signal::TERM);
    pause(Duration::from_millis(100));
    common::eventually("another runs", || stage.log.lines().len() > 2);
}

/// Waits until so many are members, and what they wait for had time to be said.
fn waits(stage: &Stage, place: &impl Fn(Command) -> Command, members: usize) {
    common::eventually("it joins", || {
        let status = Ran::of(place(stage.trial.command(&["status", "--json"]))).succeeds().json();
        status.get("members").and_then(|it| it.as_array()).is_some_and(|all| all.len() >= members)
    });
    pause(Duration::from_secs(2));
}
