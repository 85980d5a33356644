//! Clients that promised to report progress: while they do they are left alone, and when they don't, others take over
//! from them (F50).

use std::time::Duration;

use incumbent_proving::{Fleet, check};

use crate::stage::{Sidecar, languages, rounds};

/// Longer than the silence that they promised to break, which is two seconds.
const LONG: Duration = Duration::from_secs(4);

#[test]
fn clients_of_each_language_report_progress_or_are_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let languages = languages(directory.path(), "candidate");
    assert!(!languages.is_empty(), "not one of python3, node with npm, and go is here");
    let store = format!("sqlite:{}", directory.path().join("cluster.db").display());
    let unix = directory.path().join("socket");
    let _sidecar = Sidecar::start(&store, "near", vec!["--unix".into(), unix.clone().into()]);
    let mut fleet = Fleet::empty(directory.path());
    for program in &languages {
        let mut program = program.clone();
        program.push("--watchdog".into());
        fleet.join(&program, &format!("unix:{}", unix.display()));
    }
    if languages.len() == 1 {
        fleet.join(&languages[0], &format!("unix:{}", unix.display()));
    }
    for _ in 0..languages.len() * rounds() {
        let leader = fleet.next_leader();
        // Whoever loses the lease without being told to stick writes a line that can't be read.
        fleet.pause(LONG);
        fleet.tell(leader, "stick");
        fleet.await_election();
    }
    let account = check(&fleet.stop()).unwrap_or_else(|violation| panic!("{violation}"));
    assert!(account.terms > languages.len() * rounds(), "{account:?}");
}
