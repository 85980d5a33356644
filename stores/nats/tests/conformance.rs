//! The conformance kit, tried on a real server: plain, over a path that fails, and with
//! connections that break.

mod common;

use common::{Server, fresh, shared, through};
use incumbent_nats::NatsStore;
use incumbent_proving::{Proxy, Wire, at, conforms, conforms_while_broken};
use incumbent_testkit::{Conformance, Opener};

#[tokio::test(flavor = "multi_thread")]
async fn the_store_conforms() {
    conforms(|| Conformance::new(opener(shared()))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_store_conforms_while_its_connections_are_cut() {
    // F3, F20: a network ends connections whenever it likes.
    let server = Server::start();
    let proxy = Proxy::over(Wire::NATS, server.port()).await;
    let opener = opener(through(&proxy, &fresh()));
    conforms_while_broken(opener, 60, move || {
        proxy.cut();
        std::future::ready(true)
    })
    .await;
}

fn opener(url: String) -> impl Opener {
    at(url, |url| async move { NatsStore::connect(&url).await })
}
