//! The example of a store of one's own passes the kit.

#![allow(missing_docs, unreachable_pub, reason = "the example is compiled as part of this test")]

#[path = "../examples/own_store.rs"]
mod own_store;

use std::sync::Arc;

use incumbent_testkit::{Conformance, Faults};
use own_store::FileStore;

fn conformance(place: &tempfile::TempDir) -> Conformance {
    let path = place.path().join("records.json");
    Conformance::new(move || {
        let store = FileStore::new(path.clone());
        async move { Ok(Arc::new(store)) }
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_passes() {
    let place = tempfile::tempdir().unwrap();
    let report = conformance(&place).run().await;
    println!("{report}");
    report.assert_passed();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_passes_behind_faults() {
    let place = tempfile::tempdir().unwrap();
    conformance(&place).faults(Faults::mixed(5)).run().await.assert_passed();
}
