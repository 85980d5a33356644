//! The kit passes on the store in memory.

use std::sync::Arc;

use incumbent_memory::MemoryStore;
use incumbent_testkit::{Conformance, Faults};

fn conformance() -> Conformance {
    let store = MemoryStore::new();
    Conformance::new(move || {
        let handle = store.clone();
        async move { Ok(Arc::new(handle)) }
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_store_passes() {
    let report = conformance().run().await;
    println!("{report}");
    report.assert_passed();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_store_passes_behind_faults() {
    let report = conformance().faults(Faults::mixed(11)).run().await;
    println!("{report}");
    report.assert_passed();
}
