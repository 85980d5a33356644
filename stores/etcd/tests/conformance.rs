//! The conformance kit, tried on a real server: plain, over a path that fails, and with
//! connections that break.

mod common;

use std::sync::Arc;

use common::{block_on, fresh, pause, shared, through};
use incumbent_etcd::EtcdStore;
use incumbent_proving::{Proxy, Wire, at, conforms, conforms_while_broken};
use incumbent_testkit::{Conformance, Opener};

#[test]
fn the_store_conforms() {
    block_on(conforms(|| Conformance::new(opener(shared()))));
}

#[test]
fn the_store_conforms_while_its_connections_are_cut() {
    block_on(async {
        let proxy = Arc::new(Proxy::over(Wire::ETCD, common::server::shared_port()).await);
        let opener = opener(through(&proxy, &fresh()));
        let cut = move || {
            let proxy = Arc::clone(&proxy);
            async move {
                // In the middle of something, or between.
                pause(1).await;
                proxy.cut();
                true
            }
        };
        conforms_while_broken(opener, 100, cut).await;
    });
}

fn opener(url: String) -> impl Opener {
    at(url, |url| async move { EtcdStore::connect(&url).await })
}
