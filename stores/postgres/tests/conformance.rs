//! The conformance kit, tried on a real server: plain, over a path that fails, and with
//! connections that break.

#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // A test fails by panicking, its helpers too.

mod common;

use std::pin::Pin;
use std::sync::Arc;

use common::{application, block_on, shared};
use incumbent_postgres::PostgresStore;
use incumbent_testkit::{Conformance, Faults, Opener, Opening};

#[test]
fn the_store_conforms() {
    run(|url| Conformance::new(opener(url)));
}

#[test]
fn the_store_conforms_over_a_path_that_fails() {
    run(|url| Conformance::new(opener(url)).faults(Faults::mixed(7)));
}

#[test]
fn the_store_conforms_while_its_connections_are_killed() {
    // F3, F20: the server ends sessions whenever it likes.
    let report =
        run(|url| Conformance::new(Killed::new(url)).only(["errors-tell-the-truth"]).rounds(60));
    assert!(report.rows.iter().all(|row| row.errors > 5), "{report}");
}

fn opener(url: String) -> impl Opener {
    move || {
        let url = url.clone();
        async move { PostgresStore::connect(&url).await.map(Arc::new) }
    }
}

/// Opens stores whose sessions, and no other test's, the server kills when asked to.
struct Killed {
    url: String,
}

impl Killed {
    /// Named, so that the other tests on this server keep theirs.
    fn new(url: String) -> Self {
        Self { url: format!("{url}&application_name=killed") }
    }
}

impl Opener for Killed {
    fn open(&self) -> Opening<'_> {
        Box::pin(async { Ok(Arc::new(PostgresStore::connect(&self.url).await?) as _) })
    }

    fn disturb(&self) -> Pin<Box<dyn Future<Output = bool> + Send + '_>> {
        Box::pin(async {
            let application = application(&self.url).await;
            let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                        WHERE application_name LIKE 'killed %'";
            application.execute(kill, &[]).await.is_ok()
        })
    }
}

#[allow(clippy::expect_used)] // A test fails by panicking, its helpers too.
fn run(conformance: impl FnOnce(String) -> Conformance) -> incumbent_testkit::Report {
    let report = block_on(conformance(shared()).run());
    println!("{report}");
    report.assert_passed();
    report
}
