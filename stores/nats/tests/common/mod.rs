//! What the tests of this store share.
#![allow(dead_code, unreachable_pub, unused_imports)] // Each test file uses a part of it.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, clippy::indexing_slicing)] // A test fails by panicking, its helpers too.

pub mod server;

use incumbent_core::store::Write;
use incumbent_nats::NatsStore;
use incumbent_proving::Proxy;

pub use incumbent_proving::store::versioned::{self, applied as apply, beat, put};
pub use incumbent_proving::store::{
    Hints, eventually, find, list, pause, read, send, until_readable, write,
};
pub use server::{Server, shared};

/// A bucket that no other test uses.
pub fn fresh() -> String {
    incumbent_proving::store::fresh("test-")
}

/// The URL of a bucket behind a path.
pub fn through(proxy: &Proxy, bucket: &str) -> String {
    format!("nats://127.0.0.1:{}?bucket={bucket}", proxy.port())
}

pub async fn open(url: &str) -> NatsStore {
    NatsStore::connect(url).await.unwrap_or_else(|error| panic!("the store opens: {error}"))
}

pub fn create(key: &str) -> Write {
    versioned::create(key, "{}")
}
