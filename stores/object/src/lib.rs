//! The object storage store of incumbent: S3, Google Cloud Storage and Azure Blob Storage, by
//! conditional writes.

mod client;
mod container;
mod content;
mod error;
mod exchange;
mod http;
mod lane;
mod names;
mod options;
mod store;
mod url;

pub use options::{BucketOptions, Cloud};
pub use store::BucketStore;
