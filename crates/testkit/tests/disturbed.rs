//! An opener that can break connections lets the kit see the store's own errors.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use incumbent_testkit::{
    Conformance, Fault, Faults, FaultyStore, Mistake, ModelStore, Opener, Opening,
};

/// Opens a store whose connections break for a moment when asked to.
struct Breakable {
    store: ModelStore,
    path: FaultyStore,
}

impl Breakable {
    fn new(store: ModelStore) -> Self {
        let faults = Faults::none(1).with(Fault::Delayed, 1.0).delay(Duration::from_millis(3));
        let path = FaultyStore::new(Arc::new(store.clone()), faults);
        Self { store, path }
    }
}

impl Opener for Breakable {
    fn open(&self) -> Opening<'_> {
        Box::pin(async { Ok(Arc::new(self.path.beside(Arc::new(self.store.clone()))) as _) })
    }

    fn disturb(&self) -> Pin<Box<dyn Future<Output = bool> + Send + '_>> {
        Box::pin(async {
            self.path.cut(true);
            tokio::time::sleep(Duration::from_millis(4)).await;
            self.path.cut(false);
            true
        })
    }
}

#[tokio::test(start_paused = true)]
async fn truthful_errors_pass() {
    let opener = Breakable::new(ModelStore::sound());
    let report = Conformance::new(opener).only(["errors-tell-the-truth"]).run().await;
    report.assert_passed();
    assert!(report.rows.iter().all(|row| row.errors > 10), "{report}");
    assert!(report.to_string().contains("were tried again"), "errors are shown: {report}");
}

#[tokio::test(start_paused = true)]
async fn lies_are_found() {
    let opener = Breakable::new(ModelStore::mistaken(Mistake::UnavailableThoughApplied));
    let report = Conformance::new(opener).only(["errors-tell-the-truth"]).run().await;
    assert_eq!(report.failed().count(), 1, "{report}");
}
