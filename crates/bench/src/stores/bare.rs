//! What a store's own client needs for one compare-and-swap, as small as it can be, on the same
//! server and with the same durability.

mod etcd;
mod mysql;
mod nats;
mod object;
mod postgres;
mod redis;
mod sqlite;

use std::pin::Pin;

use anyhow::Result;

pub(crate) use self::etcd::Etcd;
pub(crate) use self::mysql::Mysql;
pub(crate) use self::nats::Nats;
pub(crate) use self::object::Bucket;
pub(crate) use self::postgres::Postgres;
pub(crate) use self::redis::Redis;
pub(crate) use self::sqlite::Sqlite;

/// A swap under way.
pub(crate) type Swapping<'a> = Pin<Box<dyn Future<Output = Result<()>> + 'a>>;

/// A client that is being connected.
pub(crate) type Connecting<'a> = Pin<Box<dyn Future<Output = Result<Box<dyn Bare>>> + 'a>>;

/// One record, and a client that swaps it.
pub(crate) trait Bare {
    /// Swaps the record once. That it was swapped is checked.
    fn swap(&mut self) -> Swapping<'_>;
}

/// A value as long as a member's record.
fn value(round: u64) -> String {
    let id = "9ffa3b0c5d2e4817a6b1c0d9e8f70615";
    format!(
        r#"{{"format":1,"id":"{id}","state":"alive","beat":{round},"ttl_ms":15000,"due_ms":5000}}"#
    )
}

/// A name that no earlier run has used.
fn fresh() -> String {
    format!("bare_{}_{}", std::process::id(), incumbent::clock::now().as_nanos())
}
