//! The conformance kit, tried on this store: in memory, on Azurite and, where there is one, on an
//! S3 server; plain, and over a path that fails.
#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // Helpers fail by panicking too.

mod common;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use common::azurite::{self, Azurite};
use common::block_on;
use common::proxy::Proxy;
use incumbent_object::BucketStore;
use incumbent_testkit::{Conformance, Faults, Opener, Opening};
use object_store::memory::InMemory;

#[test]
fn the_store_conforms_in_memory() {
    block_on(run(Conformance::new(in_memory())));
}

#[test]
fn the_store_conforms_in_memory_over_a_path_that_fails() {
    block_on(run(Conformance::new(in_memory()).faults(Faults::mixed(7))));
}

#[test]
fn the_store_conforms_on_azurite() {
    let Some(url) = Url::find("the conformance kit") else { return };
    block_on(run(Conformance::new(opener(url.text.clone())).rounds(15)));
}

#[test]
fn the_store_conforms_on_azurite_over_a_path_that_fails() {
    let Some(url) = Url::find("the conformance kit behind faults") else { return };
    block_on(run(Conformance::new(opener(url.text.clone())).faults(Faults::mixed(7)).rounds(8)));
}

/// Its own errors: connections break in the middle of writes.
#[test]
fn errors_tell_the_truth_while_connections_break() {
    let Some(server) = Azurite::start("the conformance kit on connections that break") else {
        return;
    };
    block_on(async {
        let proxy = Proxy::start(server.port).await;
        let opener = Breakable { proxy };
        let only = ["errors-tell-the-truth", "create-once", "swap-once", "linearizable-history"];
        let report = Conformance::new(opener).only(only).rounds(30).run().await;
        println!("{report}");
        report.assert_passed();
        let errors: u64 = report.rows.iter().map(|row| row.errors).sum();
        assert!(errors > 0, "no error was seen, so nothing was tried: {report}");
    });
}

/// Set by whoever has an S3 server: `s3://bucket/prefix?endpoint=…&allow_http=true`, with the
/// credentials in the environment.
#[test]
fn the_store_conforms_on_s3() {
    let Ok(url) = std::env::var("INCUMBENT_TEST_S3") else {
        println!("NOT RUN: the conformance kit on S3: INCUMBENT_TEST_S3 isn't set");
        return;
    };
    block_on(run(Conformance::new(opener(url)).rounds(10)));
}

/// The server that the environment names, or a private one that ends with this.
struct Url {
    text: String,
    _server: Option<Azurite>,
}

impl Url {
    fn find(test: &str) -> Option<Self> {
        if let Ok(text) = std::env::var("INCUMBENT_TEST_AZURE") {
            return Some(Self { text, _server: None });
        }
        let server = Azurite::start(test)?;
        Some(Self { text: server.url("kit"), _server: Some(server) })
    }
}

struct Breakable {
    proxy: Proxy,
}

impl Opener for Breakable {
    fn open(&self) -> Opening<'_> {
        Box::pin(async {
            let url = azurite::url(self.proxy.port, "broken");
            loop {
                match BucketStore::connect(&url).await {
                    Ok(store) => return Ok(Arc::new(store) as _),
                    Err(error) if error.kind == incumbent_core::store::ErrorKind::Rejected => {
                        return Err(error);
                    }
                    Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
                }
            }
        })
    }

    fn disturb(&self) -> Pin<Box<dyn Future<Output = bool> + Send + '_>> {
        Box::pin(async {
            for _ in 0..4 {
                self.proxy.cut();
                tokio::time::sleep(Duration::from_millis(3)).await;
            }
            true
        })
    }
}

fn in_memory() -> impl Opener {
    let client = Arc::new(InMemory::new());
    move || {
        let store = BucketStore::over(client.clone(), "prefix");
        async move { store.map(Arc::new) }
    }
}

fn opener(url: String) -> impl Opener {
    move || {
        let url = url.clone();
        async move { BucketStore::connect(&url).await.map(Arc::new) }
    }
}

async fn run(conformance: Conformance) {
    let report = conformance.run().await;
    println!("{report}");
    report.assert_passed();
}
