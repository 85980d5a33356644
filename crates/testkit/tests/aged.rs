//! The properties that need a clock and shared records pass on a store that has them.

#![allow(clippy::unwrap_used, reason = "a poisoned lock means that the test has failed already")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use incumbent_core::store::{
    Answer, Capabilities, Exchange, Found, HintGuard, Lane, Outcome, Record, Store, Version, Wake,
};
use incumbent_testkit::{Conformance, ModelStore};
use tokio::time::Instant;

/// Adds ages to a model store.
#[derive(Clone)]
struct AgedStore {
    inner: ModelStore,
    written: Arc<Mutex<BTreeMap<Version, Instant>>>,
}

#[allow(clippy::disallowed_methods, reason = "this clock belongs to the store, and is for display")]
fn now() -> Instant {
    Instant::now()
}

impl AgedStore {
    fn aged(&self, record: &mut Record) {
        let written = self.written.lock().unwrap();
        record.age = written.get(&record.version).map(|written| now() - *written);
    }
}

impl Store for AgedStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities { clock: true, shared: true, ..self.inner.capabilities() }
    }

    fn exchange<'a>(&'a self, cluster: &'a str, lane: Lane, exchange: Exchange) -> Answer<'a> {
        Box::pin(async move {
            let mut reply = self.inner.exchange(cluster, lane, exchange).await?;
            for outcome in &reply.writes {
                if let Outcome::Applied(version) = outcome {
                    self.written.lock().unwrap().insert(version.clone(), now());
                }
            }
            for found in &mut reply.reads {
                match found {
                    Found::Record(record) => self.aged(record),
                    Found::Records(records) => records.iter_mut().for_each(|it| self.aged(it)),
                    Found::Absent | Found::Unchanged => {}
                }
            }
            Ok(reply)
        })
    }

    fn hints(&self, cluster: &str, wake: Wake) -> Option<HintGuard> {
        self.inner.hints(cluster, wake)
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_skipped() {
    let store = AgedStore { inner: ModelStore::sound(), written: Arc::default() };
    let opener = move || {
        let handle = store.clone();
        async move { Ok(Arc::new(handle)) }
    };
    let report = Conformance::new(opener).run().await;
    report.assert_passed();
    assert_eq!(report.skipped().count(), 0, "{report}");
}
