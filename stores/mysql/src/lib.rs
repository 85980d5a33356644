//! The MySQL and MariaDB store of incumbent: on the database that the application already runs.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use incumbent_mysql::{MysqlOptions, MysqlStore};
//!
//! // The application's own database.
//! let store = MysqlStore::connect("mysql://app@db.example/app?ssl-mode=VERIFY_IDENTITY").await?;
//!
//! // The same with other names for the tables.
//! let options = MysqlOptions::parse("mariadb://app@db.example/app")?.prefix("election_")?;
//! println!("{}", options.schema_sql());
//! let other = MysqlStore::open(options).await?;
//! # drop((store, other));
//! # Ok(())
//! # }
//! ```
//!
//! # What it needs
//!
//! - MySQL 8 or MariaDB 10.6 or later, and its primary: a server with `read_only` set is refused,
//!   even for users who could write to it.
//! - InnoDB, and a `binlog_format` of ROW or MIXED if there is a binary log. Both are the default.
//! - The right to make two tables, two views and two procedures whose names start with
//!   `incumbent_` (another prefix with `prefix=`). Where an application may not do that,
//!   [`MysqlOptions::schema_sql`] and [`MysqlOptions::grants_sql`] say what to run.
//! - Up to four connections a process: two for beats, one for changes, one for reads.
//! - Statements separated by semicolons in one packet, which all servers take but some proxies
//!   don't.
//!
//! # What it promises
//!
//! - Every write is a compare-and-swap on the record's stamp. One exchange is one packet and one
//!   round trip. One write commits by itself; several share a transaction that begins and ends in
//!   their packet, and lock their rows in the order of their keys.
//! - The beat, the changes and the reads have connections of their own, which are made in the
//!   background; the beat has another in reserve. A write waits for a
//!   locked row no longer than about a second: a change is then refused, a beat unavailable, and
//!   neither was applied.
//! - Nothing is ever sent twice. A connection that broke, or an answer that didn't come, leaves
//!   writes unknown; a connection whose exchange was given up half-way isn't used until that is
//!   answered.
//! - All that comes from outside stands in SQL as hexadecimal digits, so no name can mean
//!   anything else.
//! - An acknowledged write survives a crash of the server. It survives the loss of power if
//!   `innodb_flush_log_at_trx_commit` is 1, and `sync_binlog` too where there is a binary log;
//!   what the server says of this stands in the store's capabilities.
//!
//! # What it can't promise
//!
//! - A replica that is promoted may lack the last writes, and terms with them, unless replication
//!   is synchronous.
//! - Nothing is pushed: others see a change when they next look, within a second.
//!
//! # Looking inside
//!
//! `SELECT * FROM incumbent_leases` and `SELECT * FROM incumbent_members` show who holds what and
//! who is there; values in `incumbent_records` are JSON text.

mod answer;
mod connection;
mod error;
mod exchange;
mod fence;
mod names;
mod obstacles;
mod options;
mod packet;
mod schema;
mod session;
mod settings;
mod statement;
mod store;
mod tls;
mod url;

pub use options::{MysqlOptions, SslMode};
pub use store::MysqlStore;
