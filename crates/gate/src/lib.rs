//! Gates: where the work's data is in another system than the lease, that system itself remembers the
//! highest term it has seen, and lets no lower one through.
//!
//! Where the lease is in the *same* database as the work, `incumbent-fence` promises more.
//!
//! | feature | the gate | one step with the write because |
//! | --- | --- | --- |
//! | `tokio-postgres`, `mysql_async`, `rusqlite` | a row of a table | it is the same transaction |
//! | `redis` | a key | it is the same script, in the same slot |
//! | `etcd` | a key | it is the same transaction |
//! | `nats` | a header of the very message that is a key's value | it is the same message |
//! | `object_store` | metadata of the very object that is written | it is the same conditional write |
//! | `http` | whatever you choose of the above | it isn't: see its own documentation |
//!
//! A gate knows what it has seen, and not who leads. So **a new leader goes through each of its
//! gates before it reads what it goes on from**, with a write that changes nothing if need be. From
//! then on nothing of a former term gets through.
//!
//! All that write to a resource have to go through its gate, all under the same lease. And a gate
//! forgets what its system forgets: a backup that is restored brings back an older term.

#[cfg(feature = "http")]
mod advisory;
mod error;
#[cfg(feature = "etcd")]
pub mod etcd;
#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "mysql_async")]
pub mod mysql;
#[cfg(feature = "nats")]
pub mod nats;
#[cfg(feature = "object_store")]
pub mod object;
#[cfg(feature = "tokio-postgres")]
pub mod postgres;
#[cfg(feature = "redis")]
pub mod redis;
#[cfg(feature = "rusqlite")]
pub mod sqlite;
mod token;

#[cfg(feature = "http")]
pub use advisory::Advisory;
pub use error::GateError;
pub use token::{Token, TokenError};
