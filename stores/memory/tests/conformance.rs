//! The conformance kit, tried on this store: plain, and over a path that fails.

use std::sync::Arc;

use incumbent_memory::MemoryStore;
use incumbent_testkit::{Conformance, Faults, Opener};

#[test]
fn the_store_conforms() {
    run(Conformance::new(opener()));
}

#[test]
fn the_store_conforms_over_a_path_that_fails() {
    run(Conformance::new(opener()).faults(Faults::mixed(7)));
}

fn opener() -> impl Opener {
    let store = MemoryStore::new();
    move || {
        let store = Arc::new(store.clone());
        async move { Ok(store) }
    }
}

#[allow(clippy::expect_used)] // A test fails by panicking, its helpers too.
fn run(conformance: Conformance) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_time().build();
    let report = runtime.expect("a runtime").block_on(conformance.run());
    println!("{report}");
    report.assert_passed();
}
