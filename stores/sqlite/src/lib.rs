//! The SQLite store of incumbent: several processes on one machine, no server.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("app.db");
//! use incumbent_sqlite::{SqliteOptions, SqliteStore};
//!
//! // The application's own file, or one beside it.
//! let store = SqliteStore::open(&path)?;
//!
//! // The same with options, here as an environment variable would give them: `sqlite:app.db?…`
//! let url = format!("sqlite:{}?prefix=election_&busy=500", path.display());
//! let other = SqliteStore::open_url(&url)?;
//! # drop((store, other));
//! # Ok(())
//! # }
//! ```
//!
//! # What it needs
//!
//! - A file on a local disk that all processes of the cluster can read and write. Network file
//!   systems are refused: SQLite's write-ahead log needs memory that all its users share.
//! - One name for that file. SQLite keeps the log beside the name, so that processes with
//!   different names for one file would never see each other. A file with several hard links is
//!   refused, also when it gets the second while in use, and so is one that is itself a mount
//!   point: mount its directory. Symbolic links are fine.
//! - The right to make three tables, three views and a trigger whose names start with `incumbent_`
//!   (another prefix with `?prefix=`), and to switch the file to the write-ahead log, which stays on.
//!   Nothing else in the file is touched.
//! - Write transactions of the application that are short compared with a third of the ttl:
//!   SQLite has one writer at a time, and a beat has to wait for it. Otherwise give incumbent a
//!   file of its own.
//!
//! # What it promises
//!
//! - Every write is a compare-and-swap on the record's stamp; all writes of an exchange share one
//!   transaction and one commit. Reads see the latest commit and never wait for a writer.
//! - An acknowledged write survives a crash and the loss of power (`synchronous=full`, the
//!   default; with `synchronous=normal` the last writes may be gone after a loss of power, and
//!   terms with them). Beats alone don't wait for the disk: those that trust in them run on the
//!   machine that loses its power.
//! - The beat, the changes and the reads each have a connection and a thread of their own. A
//!   write waits for another writer no longer than `busy` (2 s for a beat, half of that for all
//!   else); then it is unavailable and nothing was written.
//! - If the file is deleted or replaced while it is in use, exchanges fail until it has been
//!   opened anew; nothing is ever acknowledged that went into a file that others can't see.
//! - Others are told of a change within milliseconds on Linux (inotify), elsewhere within a
//!   tenth of a second. Beats wake nobody.
//!
//! # What it can't promise
//!
//! - Deleting or restoring the file takes the terms back with it, as it would with any database:
//!   stop the nodes first.
//! - A copy of the file is another store. So is what each container sees of a file in its image;
//!   the store warns where the file is on an overlay file system.
//! - If a process holds the same file open through a second copy of the SQLite library, or opens
//!   and closes it as a plain file, the operating system drops the locks of the first copy. That
//!   is SQLite's rule, not incumbent's; a file of its own avoids it.
//!
//! # Looking inside
//!
//! `SELECT * FROM incumbent_leases` and `SELECT * FROM incumbent_members` show who holds what and
//! who is there; values in `incumbent_records` are JSON text.

mod bell;
mod closing;
mod database;
mod error;
mod exchange;
mod fence;
mod file_system;
mod files;
mod hints;
mod lane;
mod looking;
mod mount;
mod obstacles;
mod options;
mod schema;
mod store;
mod url;

pub use closing::until_closed;
pub use options::{HintSource, SqliteOptions, Synchronous};
pub use store::SqliteStore;
