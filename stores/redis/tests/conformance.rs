//! The conformance kit, tried on a real server: plain, over a path that fails, and with
//! connections that break.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // A test fails by panicking, its helpers too.

mod common;

use std::sync::Arc;

use common::{Server, operator, shared};
use incumbent_proving::{breaking, passed};
use incumbent_redis::RedisStore;
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
async fn the_store_conforms_in_another_database_and_with_every_write_on_disk() {
    let server = Server::durable();
    passed(Conformance::new(opener(format!("{}/3?prefix=a:b/c.d-e_f", server.url())))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_store_conforms_while_its_connections_are_killed() {
    // F3, F20: the server ends connections whenever it likes.
    let server = Server::start(&[]);
    let url = server.url();
    let killed = breaking(opener(url.clone()), move || {
        let url = url.clone();
        let kill = ["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"];
        let killing = move || (0..20).all(|_| operator(&url, &kill).is_ok());
        async { tokio::task::spawn_blocking(killing).await.unwrap_or(false) }
    });
    let report = passed(Conformance::new(killed).only(["errors-tell-the-truth"]).rounds(100)).await;
    assert!(report.rows.iter().all(|row| row.errors > 5), "{report}");
}

fn opener(url: String) -> impl Opener {
    move || {
        let url = url.clone();
        async move { RedisStore::connect(&url).await.map(Arc::new) }
    }
}
