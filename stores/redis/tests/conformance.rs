//! The conformance kit, tried on a real server: plain, over a path that fails, and with
//! connections that break.

mod common;

use common::{Server, operator, shared};
use incumbent_proving::{at, conforms, conforms_while_broken, passed};
use incumbent_redis::RedisStore;
use incumbent_testkit::{Conformance, Opener};

#[tokio::test(flavor = "multi_thread")]
async fn the_store_conforms() {
    conforms(|| Conformance::new(opener(shared()))).await;
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
    conforms_while_broken(opener(url.clone()), 100, move || {
        let url = url.clone();
        let kill = ["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"];
        let killing = move || (0..20).all(|_| operator(&url, &kill).is_ok());
        async { tokio::task::spawn_blocking(killing).await.unwrap_or(false) }
    })
    .await;
}

fn opener(url: String) -> impl Opener {
    at(url, |url| async move { RedisStore::connect(&url).await })
}
