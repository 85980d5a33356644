//! The conformance kit, tried on this store: plain, and over a path that fails.

use std::sync::Arc;

use incumbent_sqlite::{HintSource, SqliteOptions, SqliteStore};
use incumbent_testkit::{Conformance, Faults, Opener};

#[test]
fn the_store_conforms() {
    let place = tempfile::tempdir().expect("a temporary directory");
    run(Conformance::new(opener(SqliteOptions::new(place.path().join("app.db")))));
}

#[test]
fn the_store_conforms_where_hints_are_polled_for() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let options = SqliteOptions::new(place.path().join("app.db")).hints(HintSource::Poll);
    run(Conformance::new(opener(options)));
}

#[test]
fn the_store_conforms_over_a_path_that_fails() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let options = SqliteOptions::new(place.path().join("app.db"));
    run(Conformance::new(opener(options)).faults(Faults::mixed(7)));
}

fn opener(options: SqliteOptions) -> impl Opener {
    move || {
        let store = SqliteStore::open(options.clone());
        async move { store.map(Arc::new) }
    }
}

#[allow(clippy::expect_used)] // A test fails by panicking, its helpers too.
fn run(conformance: Conformance) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_time().build();
    let report = runtime.expect("a runtime").block_on(conformance.run());
    println!("{report}");
    report.assert_passed();
}
