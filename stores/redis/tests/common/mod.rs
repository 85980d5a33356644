//! What the tests of this store share.
#![allow(dead_code, unreachable_pub, unused_imports)] // Each test file uses a part of it.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, clippy::indexing_slicing)] // A test fails by panicking, its helpers too.

pub mod server;

use incumbent_proving::Proxy;
use incumbent_redis::RedisStore;

pub use incumbent_proving::store::numbered::{applied, beat, change, create, put, stamp, version};
pub use incumbent_proving::store::{
    CLUSTER, Hints, eventually, find, list, pause, read, send, write,
};
pub use server::{Server, operator, shared};

/// A name that no other test uses, in this run or another.
pub fn fresh() -> String {
    incumbent_proving::store::fresh(&format!("test-{:x}-", incumbent_testkit::Rng::fresh_seed()))
}

/// The URL of a server behind a path.
pub fn through(proxy: &Proxy) -> String {
    format!("redis://127.0.0.1:{}", proxy.port())
}

pub async fn open(url: &str) -> RedisStore {
    RedisStore::connect(url).await.expect("the store opens")
}
