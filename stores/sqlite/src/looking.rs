//! Looking at a database that this process may only read, or should not change.
//!
//! While anybody has the file open, the newest records are in the log, which SQLite can read
//! through its index even without the right to write either. Once the last connection is closed
//! both are gone and everything is in the file: then SQLite would have to make them again, so the
//! file is read as one that nobody changes, and what was read counts only if that was so.

use std::io;
use std::path::Path;
use std::time::Duration;

use incumbent_core::store::{Exchange, Reply, StoreError};
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::database::{Database, NO_FILE, refuse_place, replaced};
use crate::error::{During, translate};
use crate::exchange::Statements;
use crate::files::{Beside, Files, Paths, is_index_of_another};
use crate::options::SqliteOptions;
use crate::schema;

/// How often a log without its index is looked at once more before that is believed.
const SETTLING: usize = 50;

/// How often a look begins anew because the last one closed the file, or the first one opened it.
const TURNS: usize = 5;

/// Answers the reads of an exchange, and keeps the connection if that can be used again.
pub(crate) fn exchange(
    kept: &mut Option<Database>,
    options: &SqliteOptions,
    busy: Duration,
    (cluster, exchange): (&str, &Exchange),
) -> Result<Reply, StoreError> {
    let mut said = None;
    for _ in 0..TURNS {
        let Some(database) = reuse(kept, options, busy)? else {
            return Ok(Reply::of_nothing(exchange));
        };
        match database.exchange(cluster, exchange) {
            Ok((reply, _)) => {
                *kept = Some(database).filter(Database::is_live);
                return Ok(reply);
            }
            Err(failure) if failure.reconnect => said = Some(failure.error),
            Err(failure) => {
                *kept = Some(database);
                return Err(failure.error);
            }
        }
    }
    Err(said.unwrap_or_else(|| replaced(&options.path)))
}

fn reuse(
    kept: &mut Option<Database>,
    options: &SqliteOptions,
    busy: Duration,
) -> Result<Option<Database>, StoreError> {
    match kept.take() {
        Some(database) => Ok(Some(database)),
        None => Database::look(options, busy, During::Work),
    }
}

impl Database {
    /// Opens the file for reading alone. None if there is no file, or no table of ours in it.
    pub(crate) fn look(
        options: &SqliteOptions,
        busy: Duration,
        during: During,
    ) -> Result<Option<Self>, StoreError> {
        let path = &options.path;
        match path.metadata() {
            Ok(metadata) if metadata.is_dir() => {
                let why = "this is a directory. Name a file in it";
                return Err(reject(path, why));
            }
            Ok(metadata) if !metadata.is_file() => return Err(reject(path, NO_FILE)),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(reject(path, &format!("{error}. {RIGHTS}"))),
        }
        refuse_place(path)?;
        let look = || Paths::of(path).and_then(|paths| Ok((Files::look(&paths)?, paths)));
        let (mut files, mut paths) = look().map_err(|_| replaced(path))?;
        for _ in 0..SETTLING {
            if !matches!(files.beside(), Beside::Unindexed) {
                break;
            }
            // Whoever closes the file last removes the index before the log.
            std::thread::park_timeout(Duration::from_millis(20));
            (files, paths) = look().map_err(|_| replaced(path))?;
        }
        if is_index_of_another(&paths) {
            return Err(replaced(path));
        }
        let more = match files.beside() {
            Beside::Log(..) => "",
            Beside::Nothing(..) => "&immutable=1",
            Beside::Unindexed => {
                return Err(reject(
                    path,
                    "its -wal holds changes and its -shm is gone, so that only a process that may \
                     write there can read it: start a node, or run `incumbent store init` on it",
                ));
            }
        };
        let fail = |error: rusqlite::Error| unreadable(path, &error, during);
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_URI
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection =
            Connection::open_with_flags(uri(&paths.real, more), flags).map_err(fail)?;
        connection.busy_timeout(busy).map_err(fail)?;
        if !schema::is_complete(&connection, &options.prefix).map_err(fail)? {
            return Ok(None);
        }
        schema::check(&connection, path, &options.prefix, during)?;
        let statements = Statements::new(&options.prefix);
        // Its files were looked at before it was opened: what it has open isn't known for sure.
        Ok(Some(Self { connection, paths, statements, files, _claim: None }))
    }

    /// Whether others have the file open, so that it can be watched.
    pub(crate) fn is_live(&self) -> bool {
        matches!(self.files.beside(), Beside::Log(..))
    }
}

const RIGHTS: &str = "Looking needs the right to enter its directory and to read the file, its \
                      -wal and its -shm";

fn reject(path: &Path, why: &str) -> StoreError {
    StoreError::rejected(format!("SQLite database {}: {why}", path.display()))
}

fn unreadable(path: &Path, error: &rusqlite::Error, during: During) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::ReadOnly) => {
            reject(path, &format!("{error}. {RIGHTS}"))
        }
        _ => translate(path, error, during),
    }
}

/// The name by which SQLite takes options.
#[cfg(unix)]
fn uri(path: &Path, more: &str) -> std::ffi::OsString {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let mut uri = b"file:".to_vec();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'%' | b'?' | b'#' => uri.extend(format!("%{byte:02x}").into_bytes()),
            _ => uri.push(*byte),
        }
    }
    uri.extend(b"?mode=ro");
    uri.extend(more.as_bytes());
    std::ffi::OsString::from_vec(uri)
}

#[cfg(not(unix))]
fn uri(path: &Path, more: &str) -> std::ffi::OsString {
    let path = path.to_string_lossy().replace('\\', "/");
    let path = path.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    format!("file:///{path}?mode=ro{more}").into()
}
