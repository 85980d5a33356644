//! What the tests of this store share.
#![allow(dead_code, unreachable_pub, unused_imports)] // Each test file uses a part of it.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, clippy::indexing_slicing)] // A test fails by panicking, its helpers too.

pub mod canned;
pub mod hashed;

use incumbent_core::store::{Expect, Write};
use incumbent_object::BucketStore;

pub use incumbent_proving::store::versioned::{self, applied, stamp};
pub use incumbent_proving::store::{CLUSTER, block_on, find, read, send, write};

pub async fn connect(url: &str) -> BucketStore {
    BucketStore::connect(url).await.expect("the store is reached")
}

pub fn put(key: &str, expect: Expect, value: &str) -> Write {
    versioned::put(key, expect, value, false)
}

pub fn create(key: &str) -> Write {
    versioned::create(key, "{}")
}
