//! The conformance kit, tried on a real server: plain, over a path that fails, and with
//! connections that break.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // A test fails by panicking, its helpers too.

mod common;

use std::pin::Pin;
use std::sync::Arc;

use common::{Server, fresh, shared, through};
use incumbent_nats::NatsStore;
use incumbent_proving::{Proxy, Wire};
use incumbent_testkit::{Conformance, Faults, Opener, Opening};

#[tokio::test(flavor = "multi_thread")]
async fn the_store_conforms() {
    let report = Conformance::new(opener(shared())).run().await;
    println!("{report}");
    report.assert_passed();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_store_conforms_over_a_path_that_fails() {
    let report = Conformance::new(opener(shared())).faults(Faults::mixed(7)).run().await;
    println!("{report}");
    report.assert_passed();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_store_conforms_while_its_connections_are_cut() {
    // F3, F20: a network ends connections whenever it likes.
    let server = Server::start();
    let proxy = Proxy::over(Wire::NATS, server.port()).await;
    let url = through(&proxy, &fresh());
    let cut = Cut { url, proxy };
    let kit = Conformance::new(cut).only(["errors-tell-the-truth"]).rounds(60);
    let report = kit.run().await;
    println!("{report}");
    report.assert_passed();
    assert!(report.rows.iter().all(|row| row.errors > 5), "{report}");
}

fn opener(url: String) -> impl Opener {
    move || {
        let url = url.clone();
        async move { NatsStore::connect(&url).await.map(Arc::new) }
    }
}

/// Opens stores whose connections are cut when asked to.
struct Cut {
    url: String,
    proxy: Proxy,
}

impl Opener for Cut {
    fn open(&self) -> Opening<'_> {
        Box::pin(async { Ok(Arc::new(NatsStore::connect(&self.url).await?) as _) })
    }

    fn disturb(&self) -> Pin<Box<dyn Future<Output = bool> + Send + '_>> {
        Box::pin(async {
            self.proxy.cut();
            true
        })
    }
}
