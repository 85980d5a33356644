//! The PostgreSQL store of incumbent: on the database that the application already runs.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use incumbent_postgres::{PostgresOptions, PostgresStore};
//!
//! // To be called on the runtime on which the store shall live.
//! let store = PostgresStore::connect("postgres://app@db.example/app").await?;
//!
//! // The same with a schema of its own, and the SQL for those who make their tables by hand.
//! let options = PostgresOptions::parse("postgres://app@db.example/app?schema=election")?;
//! println!("{}{}", PostgresStore::schema_sql(&options), options.grants_sql());
//! let other = PostgresStore::connect_with(options).await?;
//! # drop((store, other));
//! # Ok(())
//! # }
//! ```
//!
//! # What it needs
//!
//! - PostgreSQL 13 or later, a database in UTF-8, and the primary: a standby is refused.
//! - Two tables, two views, seven functions and a trigger whose names start with `incumbent_` in the schema
//!   `public`; `prefix=` and `schema=` choose others. They are made where the role may do that;
//!   otherwise the error holds the SQL to run. Nothing else in the database is touched.
//! - Three connections a process: one each for beats, for changes, and for reads and push.
//!
//! # What it promises
//!
//! - An exchange is one statement: one round trip, one transaction, no `BEGIN`. Every write
//!   compares the record's stamp, and a refused one undoes no other. A batch locks its rows in
//!   the order of their keys.
//! - Takes and releases never share a connection with a beat, and wait no longer than
//!   `lock_timeout` (1 s) for a row that an application's fenced transaction holds: then they
//!   are refused, and what else was in the batch is done.
//! - An acknowledged write survives a crash of the server. Where `synchronous_commit` is off, it
//!   is turned on for incumbent's own writes; an unlogged table is refused. Only what the core says
//!   needn't survive is acknowledged sooner.
//! - Others are told of a change by NOTIFY in the same transaction. Beats tell nobody. After a
//!   lost connection everybody is woken once.
//! - Connections are made in the background, and a beat whose own is lost goes over that for reads. One on which an
//!   exchange was given up isn't used until that is answered; another is made meanwhile.
//! - Errors are unavailable only where the server said `ERROR` or nothing had been sent. A broken
//!   connection, or a session that the server ended, leaves a write unknown.
//!
//! # Poolers
//!
//! PgBouncer in transaction mode is noticed (or declared with `pooler=yes`). Then nothing is
//! prepared, no setting outlives a statement, and changes are found by polling.
//!
//! # What it can't promise
//!
//! With asynchronous replication a promoted standby may lack the last acknowledged writes, terms
//! included; [`Facts::warnings`] says so, and also where `fsync` is off.
//!
//! # Fencing
//!
//! `SELECT incumbent_assert(cluster, lease, term)` asserts a term inside the application's own
//! transaction, and fails by itself. [`PostgresStore::fence_sql`] does so where nobody may make a
//! function.
//!
//! # Looking inside
//!
//! `SELECT * FROM incumbent_leases` and `SELECT * FROM incumbent_members` show who holds what and
//! who is there; values in `incumbent_records` are JSON text.

mod answer;
mod connect;
mod error;
mod exchange;
mod facts;
mod fence;
mod hints;
mod names;
mod obstacles;
mod options;
mod passfile;
mod rehearsal;
mod schema;
mod session;
mod statement;
mod store;
mod tls;
mod url;

pub use facts::Facts;
pub use options::{Pooler, PostgresOptions};
pub use store::PostgresStore;
