//! The conformance kit, tried on this store: in memory and on Azurite; plain, and over a path that
//! fails. `cargo xtask test --full` tries it on S3 too.
#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // Helpers fail by panicking too.

mod common;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use common::block_on;
use incumbent_object::BucketStore;
use incumbent_proving::server::azurite;
use incumbent_proving::{Proxy, Wire, at, conforms, passed};
use incumbent_testkit::{Conformance, Faults, Opener, Opening};
use object_store::memory::InMemory;

#[test]
fn the_store_conforms_in_memory() {
    block_on(conforms(|| Conformance::new(in_memory())));
}

#[test]
fn the_store_conforms_on_azurite() {
    block_on(passed(Conformance::new(opener(azurite::shared())).rounds(15)));
}

#[test]
fn the_store_conforms_on_azurite_over_a_path_that_fails() {
    block_on(passed(
        Conformance::new(opener(azurite::shared())).faults(Faults::mixed(7)).rounds(8),
    ));
}

/// Its own errors: connections break in the middle of writes.
#[test]
fn errors_tell_the_truth_while_connections_break() {
    let server = azurite::start();
    block_on(async {
        let proxy = Proxy::over(Wire::HTTP, server.port()).await;
        let opener = Breakable { proxy };
        let only = ["errors-tell-the-truth", "create-once", "swap-once", "linearizable-history"];
        let report = passed(Conformance::new(opener).only(only).rounds(30)).await;
        let errors: u64 = report.rows.iter().map(|row| row.errors).sum();
        assert!(errors > 0, "no error was seen, so nothing was tried: {report}");
    });
}

struct Breakable {
    proxy: Proxy,
}

impl Opener for Breakable {
    fn open(&self) -> Opening<'_> {
        Box::pin(async {
            let url = azurite::url(self.proxy.port(), "broken");
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
    at(url, |url| async move { BucketStore::connect(&url).await })
}
