//! The conformance kit, tried on this store: plain, and over a path that fails.

use std::sync::Arc;

use incumbent_proving::store::block_on;
use incumbent_proving::{conforms, passed};
use incumbent_sqlite::{HintSource, SqliteOptions, SqliteStore};
use incumbent_testkit::{Conformance, Opener};

#[test]
fn the_store_conforms() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let options = SqliteOptions::new(place.path().join("app.db"));
    block_on(conforms(|| Conformance::new(opener(options.clone()))));
}

#[test]
fn the_store_conforms_where_hints_are_polled_for() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let options = SqliteOptions::new(place.path().join("app.db")).hints(HintSource::Poll);
    block_on(passed(Conformance::new(opener(options))));
}

fn opener(options: SqliteOptions) -> impl Opener {
    move || {
        let store = SqliteStore::open(options.clone());
        async move { store.map(Arc::new) }
    }
}
