//! What the tests of this store share.
#![allow(dead_code, unreachable_pub, unused_imports)] // Each test file uses a part of it.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, clippy::indexing_slicing)] // A test fails by panicking, its helpers too.

pub mod http;
pub mod server;

use incumbent_etcd::EtcdStore;
use incumbent_proving::Proxy;

pub use incumbent_proving::store::versioned::{applied, beat, change, create, put};
pub use incumbent_proving::store::{
    Hints, assert_says, block_on, eventually, find, find_in, pause, read, send, until_readable,
    write,
};
pub use server::{Server, shared};

/// A prefix that no other test uses.
pub fn fresh() -> String {
    incumbent_proving::store::fresh("/test-")
}

/// The URL of a prefix behind a path.
pub fn through(proxy: &Proxy, prefix: &str) -> String {
    format!("etcd://127.0.0.1:{}{prefix}", proxy.port())
}

pub async fn connect(url: &str) -> EtcdStore {
    EtcdStore::connect(url).await.unwrap_or_else(|error| panic!("the store opens: {error}"))
}
