//! The conformance kit, tried on a real server: plain, over a path that fails, and with
//! connections that break.
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // A test fails by panicking, its helpers too.

mod common;

use std::sync::Arc;

use common::{block_on, fresh, pause, shared, through};
use incumbent_etcd::EtcdStore;
use incumbent_proving::{Proxy, Wire, breaking, passed};
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
fn the_store_conforms_while_its_connections_are_cut() {
    let report = block_on(async {
        let proxy = Arc::new(Proxy::over(Wire::ETCD, common::server::shared_port()).await);
        let opener = opener(through(&proxy, &fresh()));
        let cut = breaking(opener, move || {
            let proxy = Arc::clone(&proxy);
            async move {
                // In the middle of something, or between.
                pause(1).await;
                proxy.cut();
                true
            }
        });
        passed(Conformance::new(cut).only(["errors-tell-the-truth"]).rounds(100)).await
    });
    assert!(report.rows.iter().all(|row| row.errors > 5), "{report}");
}

fn opener(url: String) -> impl Opener {
    move || {
        let url = url.clone();
        async move { EtcdStore::connect(&url).await.map(Arc::new) }
    }
}
