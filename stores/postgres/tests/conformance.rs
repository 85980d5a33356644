//! The conformance kit, tried on a real server: plain, over a path that fails, and with
//! connections that break.
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // A test fails by panicking, its helpers too.

mod common;

use std::sync::Arc;

use common::{application, block_on, shared};
use incumbent_postgres::PostgresStore;
use incumbent_proving::{breaking, passed};
use incumbent_testkit::{Conformance, Faults, Opener};

#[test]
fn the_store_conforms() {
    block_on(passed(Conformance::new(opener(shared()))));
}

#[test]
fn the_store_conforms_over_a_path_that_fails() {
    block_on(passed(Conformance::new(opener(shared())).faults(Faults::mixed(7))));
}

#[test]
fn the_store_conforms_while_its_connections_are_killed() {
    // F3, F20: the server ends sessions whenever it likes. They are named, so that the other tests on
    // this server keep theirs.
    let url = format!("{}&application_name=killed", shared());
    let killed = breaking(opener(url.clone()), move || {
        let url = url.clone();
        async move {
            let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                        WHERE application_name LIKE 'killed %'";
            application(&url).await.execute(kill, &[]).await.is_ok()
        }
    });
    let kit = Conformance::new(killed).only(["errors-tell-the-truth"]).rounds(60);
    let report = block_on(passed(kit));
    assert!(report.rows.iter().all(|row| row.errors > 5), "{report}");
}

fn opener(url: String) -> impl Opener {
    move || {
        let url = url.clone();
        async move { PostgresStore::connect(&url).await.map(Arc::new) }
    }
}
