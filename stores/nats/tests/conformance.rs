//! The conformance kit, tried on a real server: plain, over a path that fails, and with
//! connections that break.
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // A test fails by panicking, its helpers too.

mod common;

use std::sync::Arc;

use common::{Server, fresh, shared, through};
use incumbent_nats::NatsStore;
use incumbent_proving::{Proxy, Wire, breaking, passed};
use incumbent_testkit::{Conformance, Faults, Opener};

#[tokio::test(flavor = "multi_thread")]
async fn the_store_conforms() {
    passed(Conformance::new(opener(shared()))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_store_conforms_over_a_path_that_fails() {
    passed(Conformance::new(opener(shared())).faults(Faults::mixed(7))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_store_conforms_while_its_connections_are_cut() {
    // F3, F20: a network ends connections whenever it likes.
    let server = Server::start();
    let proxy = Proxy::over(Wire::NATS, server.port()).await;
    let opener = opener(through(&proxy, &fresh()));
    let cut = breaking(opener, move || {
        proxy.cut();
        std::future::ready(true)
    });
    let report = passed(Conformance::new(cut).only(["errors-tell-the-truth"]).rounds(60)).await;
    assert!(report.rows.iter().all(|row| row.errors > 5), "{report}");
}

fn opener(url: String) -> impl Opener {
    move || {
        let url = url.clone();
        async move { NatsStore::connect(&url).await.map(Arc::new) }
    }
}
