//! The object storage store of incumbent: S3, Google Cloud Storage and Azure Blob Storage, by
//! conditional writes.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use incumbent_object::{BucketOptions, BucketStore, Cloud};
//!
//! // Credentials come from the environment, or from the role of the machine.
//! let store = BucketStore::connect("s3://bucket/election?region=eu-central-1").await?;
//!
//! // The same by hand.
//! let options = BucketOptions::new(Cloud::S3, "bucket")
//!     .prefix("election")
//!     .setting("region", "eu-central-1");
//! let other = BucketStore::connect_with(options).await?;
//! # drop((store, other));
//! # Ok(())
//! # }
//! ```
//!
//! # What it needs
//!
//! - A bucket or container with *conditional writes*: Amazon S3, Google Cloud Storage, Azure Blob
//!   Storage, and those lookalikes of S3 that honour `If-None-Match: *` and `If-Match` on a PUT,
//!   atomically. One that ignores them lets two nodes lead; the conformance kit finds out.
//! - The rights to list, read, write and delete objects below the prefix. On S3 the right to list
//!   is needed even for a read: without it a missing object is answered with 403.
//! - No rule that deletes or moves objects below the prefix: a lease's object must stay, for its
//!   term would start again.
//!
//! # What it promises
//!
//! - Each record is an object. Its first line holds the stamp of the write, its rest the record's
//!   value as JSON. The stamp makes every content unique, and so every ETag, even where that is a
//!   hash of the content.
//! - A write is one conditional PUT and is never sent twice, neither by this crate nor by the
//!   libraries below it. A conflict is a refusal; a time-out, a broken connection or a server's
//!   failure is *unknown*; only what surely wasn't sent, or was turned away beforehand, is
//!   *unavailable*.
//! - An exchange sends all its requests at once, up to `requests` of them on each lane. Each lane
//!   has a client, connections and credentials of its own.
//! - A record that the reader has already is asked for by its ETag, and costs no body.
//!
//! # What it can't promise
//!
//! - Object storage can't push. What others do is seen when a read is due, within a second.
//! - A prefix is read by a listing and a read for each object. On a store whose listings lag
//!   behind its writes, records may be missing there; no decision about a lease hangs on one.
//!
//! # URLs
//!
//! `s3://bucket/prefix`, `gs://bucket/prefix`, `az://container/prefix` (also `azure:`).
//!
//! | option | meaning |
//! | --- | --- |
//! | `endpoint=http://…` | another server: an emulator, MinIO, Ceph, R2 |
//! | `allow_http=true` | allows an endpoint without encryption |
//! | `region=…` | S3: where the bucket is |
//! | `account_name=…` | Azure: the storage account |
//! | `use_emulator=true` | Azure: the emulator's account and key, at `endpoint` |
//! | `create=yes` | Azure: make the container if it is missing |
//! | `timeout=5000` | milliseconds for a request |
//! | `requests=32` | requests under way at once, on each lane |
//! | `ca=/etc/ca.pem` | authorities to trust beside the system's |
//! | `etag=bare` | sends ETags back without quotes, as some releases of Ceph want them |
//!
//! All other [settings of object_store](object_store) for that cloud work as well, by their name
//! without the cloud's prefix, and so do their environment variables (`AWS_…`, `GOOGLE_…`,
//! `AZURE_…`). A secret is refused in a URL: it comes from the environment, or from a file named
//! by the same option with `_file` behind it, as in `secret_access_key_file=/run/secrets/s3`.

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
