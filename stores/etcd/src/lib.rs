//! The etcd store of incumbent: on the etcd that runs already, without its leases.
//!
//! ```no_run
//! # async fn example() -> Result<(), incumbent_core::store::StoreError> {
//! use incumbent_etcd::EtcdStore;
//!
//! // All keys start with /incumbent, unless another prefix follows the endpoints.
//! let store = EtcdStore::connect("etcd://10.0.0.1,10.0.0.2,10.0.0.3:2379/incumbent").await?;
//!
//! // With TLS and a user; the password is in a file.
//! let url = "etcds://app@etcd.example/incumbent?cafile=/etc/app/ca.pem&passwordfile=/run/secret";
//! let other = EtcdStore::connect(url).await?;
//! # drop((store, other));
//! # Ok(())
//! # }
//! ```
//!
//! # What it needs
//!
//! - etcd 3.4 or later, reached by its own protocol, gRPC, at one or more endpoints. With several
//!   the next one is tried when one fails or hangs.
//! - Where etcd asks who comes: a user whose role may read and write what starts with the prefix
//!   and a slash, and nothing else.
//! - Automatic compaction (`--auto-compaction-retention`), which etcd leaves off: every beat makes
//!   a revision, and revisions stay until they are compacted.
//!
//! # What it promises
//!
//! - Every write is a compare-and-swap on the revision that changed the record last. etcd counts
//!   revisions for all keys together and never gives one twice, so versions never repeat, not even
//!   after a delete. Reads are linearizable.
//! - An exchange is one request, whatever it holds: each write is a transaction of its own inside
//!   one that compares nothing, and the reads stand beside them.
//! - A write leaves this process once at most. What broke or timed out after that is unknown;
//!   what never left, or what etcd refused before it proposed it, is unavailable.
//! - The beat, the changes, the reads and the watches each have a connection of their own, which is
//!   made in the background; a beat whose own is lost goes over that for reads, to another endpoint
//!   if there are several.
//! - Others are told of a change by a watch on keys that only such changes touch; beats wake
//!   nobody. A watch that broke is taken up again, and then everyone is woken once.
//! - etcd's leases are not used: expiry is the core's, judged by each watcher's own clock, so a
//!   lease that etcd ended early or kept too long (F13, F14) can't make two leaders or none.
//!
//! # What it can't promise
//!
//! - Restoring an etcd from a backup takes revisions and terms back with it: stop the nodes first.
//! - etcd has no clock that a client could ask, so records carry no age.
//!
//! # Looking inside
//!
//! `etcdctl get --prefix /incumbent/` shows everything; values are JSON text.

mod auth;
mod error;
mod exchange;
mod hints;
mod keys;
mod link;
mod options;
mod session;
mod store;
mod url;
mod wire;

pub use options::EtcdOptions;
pub use store::EtcdStore;
