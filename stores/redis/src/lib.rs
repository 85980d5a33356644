//! The Redis and Valkey store of incumbent, on the server that the application already runs.
//!
//! ```no_run
//! # async fn example() -> Result<(), incumbent_core::store::StoreError> {
//! use incumbent_redis::{RedisOptions, RedisStore};
//!
//! let store = RedisStore::connect("redis://127.0.0.1:6379").await?;
//!
//! // The same with options.
//! let url = "rediss://app@redis.example:6380/2?passwordfile=/run/secrets/redis&prefix=app";
//! let options = RedisOptions::parse(url)?;
//! println!("the least rights that this needs: {}", options.acl());
//! let other = RedisStore::connect_with(options).await?;
//! # drop((store, other));
//! # Ok(())
//! # }
//! ```
//!
//! # What it needs
//!
//! - Redis 6 or newer, or Valkey: one primary, with or without replicas. Redis Cluster and
//!   Sentinel aren't supported yet.
//! - A server that keeps what it is told: `maxmemory-policy` must not evict keys without a time
//!   to live, so anything but `allkeys-…`, and `appendonly yes` with `appendfsync always` if terms
//!   are to survive the loss of power.
//! - Four connections a process: one each for beats, changes, reads and hints. [`RedisOptions::acl`] gives the least rights.
//!
//! # What it promises
//!
//! - An exchange is one script call, one round trip: every write of it compares the record's stamp
//!   and swaps, and then come the reads. All that could fail is tried before the first write.
//! - A write is never sent twice. One whose answer didn't come is reported as unknown.
//! - Replicas are never read: a server that can't be written to refuses reads too.
//! - Others are told of a change by pub/sub, within a round trip. Beats tell nobody.
//! - It never scans the key space; a cluster is two keys, and a prefix is read through an index.
//!
//! # What it can't promise
//!
//! - Redis replicates asynchronously. A replica that is promoted may lack the last acknowledged
//!   writes, and terms with them: then two members may trust in one lease for up to a ttl. The
//!   option `wait=N` narrows this and doesn't close it.
//! - With `appendfsync everysec` a loss of power undoes up to two seconds, without `appendonly`
//!   everything since the last snapshot. [`Capabilities::durable`] says whether that can happen.
//!
//! [`Capabilities::durable`]: incumbent_core::store::Capabilities::durable
//!
//! # Looking inside
//!
//! `HGET '{incumbent:billing}:records' lease/scheduler` shows a record of the cluster `billing` as
//! JSON, `HGET '{incumbent:billing}:records' lease/scheduler@` who wrote it and when, and
//! `HGETALL '{incumbent:billing}:records'` everything.

mod answer;
mod connection;
mod error;
mod hints;
mod keys;
mod options;
mod script;
mod server;
mod session;
mod store;
mod url;

pub use options::{Eviction, RedisOptions};
pub use store::RedisStore;
