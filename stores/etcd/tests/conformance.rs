//! The conformance kit, tried on a real server: plain, over a path that fails, and with
//! connections that break.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // A test fails by panicking, its helpers too.

mod common;

use std::pin::Pin;
use std::sync::Arc;

use common::{block_on, fresh, shared, through};
use incumbent_etcd::EtcdStore;
use incumbent_proving::{Proxy, Wire};
use incumbent_testkit::{Conformance, Faults, Opener, Opening, Report};

#[test]
fn the_store_conforms() {
    judged(block_on(Conformance::new(opener(shared())).run()));
}

#[test]
fn the_store_conforms_over_a_path_that_fails() {
    judged(block_on(Conformance::new(opener(shared())).faults(Faults::mixed(7)).run()));
}

#[test]
fn the_store_conforms_while_its_connections_are_cut() {
    let report = block_on(async {
        let proxy = Proxy::over(Wire::ETCD, common::server::shared_port()).await;
        let opener = Cut { url: through(&proxy, &fresh()), proxy };
        Conformance::new(opener).only(["errors-tell-the-truth"]).rounds(100).run().await
    });
    assert!(report.rows.iter().all(|row| row.errors > 5), "{report}");
    judged(report);
}

fn opener(url: String) -> impl Opener {
    move || {
        let url = url.clone();
        async move { EtcdStore::connect(&url).await.map(Arc::new) }
    }
}

/// Opens stores behind a path that breaks when asked to.
struct Cut {
    url: String,
    proxy: Proxy,
}

impl Opener for Cut {
    fn open(&self) -> Opening<'_> {
        Box::pin(async { Ok(Arc::new(EtcdStore::connect(&self.url).await?) as _) })
    }

    fn disturb(&self) -> Pin<Box<dyn Future<Output = bool> + Send + '_>> {
        Box::pin(async {
            // In the middle of something, or between.
            tokio::time::sleep(std::time::Duration::from_micros(700)).await;
            self.proxy.cut();
            true
        })
    }
}

fn judged(report: Report) {
    println!("{report}");
    report.assert_passed();
}
