//! One connection to the database, opened with all the care that sharing it needs.

use std::fs;
use std::io;
use std::path::Path;
use std::thread;
use std::time::Duration;

use incumbent_core::store::StoreError;
use rusqlite::{Connection, ErrorCode, MAIN_DB, OpenFlags};

use crate::error::{During, translate};
use crate::exchange::Statements;
use crate::file_system;
use crate::files::{Claim, FileId, Files, Paths, Standing, is_index_of_another, names};
use crate::mount::is_mount_point;
use crate::options::{SqliteOptions, Synchronous};
use crate::schema;

/// A connection, and the files that it has open.
#[derive(Debug)]
pub(crate) struct Database {
    pub(crate) connection: Connection,
    pub(crate) paths: Paths,
    pub(crate) statements: Statements,
    pub(crate) files: Files,
    /// After the connection, so that it lasts until that is closed.
    pub(crate) _claim: Option<Claim>,
}

impl Database {
    /// Opens the file, makes it and its tables if need be, and switches it to the log.
    pub(crate) fn open(
        options: &SqliteOptions,
        busy: Duration,
        during: During,
    ) -> Result<Self, StoreError> {
        let path = &options.path;
        let fail = |error| translate(path, &error, during);
        ensure_file(options, during)?;
        refuse_place(path)?;
        let before = FileId::look(path).map_err(|_| replaced(path))?;
        if Paths::of(path).is_ok_and(|paths| is_index_of_another(&paths)) {
            return Err(replaced(path));
        }
        let mut connection = connect(path, OpenFlags::empty()).map_err(fail)?;
        if connection.is_readonly(MAIN_DB).map_err(fail)? {
            return Err(read_only(path));
        }
        use_log(&connection, path, busy, during)?;
        connection.busy_timeout(busy).map_err(fail)?;
        set_synchronous(&connection, options.synchronous).map_err(fail)?;
        // This reads and thereby opens the log, so its identity can be taken below.
        schema::prepare(&mut connection, path, &options.prefix, during)?;
        let opened = Paths::of(path).and_then(|paths| Ok((Files::look(&paths)?, paths)));
        let (files, paths) = match opened {
            Ok((files, paths)) if files.belong_to(before, &paths) => (files, paths),
            Ok(_) | Err(_) => return Err(replaced(path)),
        };
        let statements = Statements::new(&options.prefix);
        let _claim = Some(Claim::of(files));
        let database = Self { connection, paths, statements, files, _claim };
        // A name that it got only now is seen here.
        database.check().map(|()| database)
    }

    /// Whether other processes that open the database get the same files as this connection.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        let path = &self.paths.database;
        match self.files.standing(&self.paths) {
            Standing::Current => Ok(()),
            Standing::Linked(names) => Err(linked(path, names)),
            Standing::Replaced => Err(replaced(path)),
        }
    }
}

/// Refuses a file that others may have open without sharing its log: they would be in a cluster of
/// their own, and nobody would notice.
pub(crate) fn refuse_place(path: &Path) -> Result<(), StoreError> {
    let reject = |why: String| {
        Err(StoreError::rejected(format!("SQLite database {}: {why}", path.display())))
    };
    if let Some(name) = file_system::network(path) {
        return reject(format!(
            "it is on {name}, a file system of several machines, where SQLite's write-ahead log \
             doesn't work. Use a local disk, or another kind of store"
        ));
    }
    let paths = Paths::of(path).map_err(|_| replaced(path))?;
    if !paths.lead_to_one_file().map_err(|_| replaced(path))? {
        return reject(format!(
            "this path leads to another file than {}, which SQLite would open. Give the file by \
             its own name",
            paths.real.display()
        ));
    }
    if is_mount_point(&paths.real) {
        return reject(format!(
            "{} is itself a mount point. A file that is mounted alone gets a write-ahead log of \
             its own there, and whoever uses it by another name isn't seen. Mount its directory \
             instead of the file",
            paths.real.display()
        ));
    }
    match names(path).map_err(|_| replaced(path))? {
        0 | 1 => Ok(()),
        names => Err(linked(path, names)),
    }
}

/// What to say about a file with several names.
fn linked(path: &Path, names: u64) -> StoreError {
    StoreError::rejected(format!(
        "SQLite database {}: the file has {names} names (hard links), and each has a write-ahead \
         log of its own: whoever uses another name isn't seen. Remove the other names (find -samefile \
         lists them), or use a copy or a symbolic link in their place",
        path.display()
    ))
}

/// What to say when the path no longer leads to the open files.
pub(crate) fn replaced(path: &Path) -> StoreError {
    StoreError::unavailable(format!(
        "SQLite database {}: the file, its -wal or its -shm was deleted or replaced while in \
         use; it will be opened anew. Stop all nodes before touching these files",
        path.display()
    ))
}

/// What is said about devices, pipes and sockets.
pub(crate) const NO_FILE: &str = "this is a device, a pipe or a socket. Name a regular file";

/// Sees that there is a file.
///
/// A missing file is made by SQLite itself: opening and closing it here would drop the locks that
/// another connection of this process may hold on it.
fn ensure_file(options: &SqliteOptions, during: During) -> Result<(), StoreError> {
    let path = &options.path;
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Err(StoreError::rejected(format!(
            "SQLite database {}: this is a directory. Name a file in it",
            path.display()
        ))),
        Ok(metadata) if !metadata.is_file() => {
            Err(StoreError::rejected(format!("SQLite database {}: {NO_FILE}", path.display())))
        }
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => make_file(options, during),
        Err(error) => Err(StoreError::rejected(format!(
            "SQLite database {}: {error}. Check that this process may enter its directory",
            path.display()
        ))),
    }
}

fn make_file(options: &SqliteOptions, during: During) -> Result<(), StoreError> {
    let path = &options.path;
    if !options.create {
        return Err(StoreError::rejected(format!(
            "SQLite database {}: there is no such file, and create=no forbids making it. Start \
             the application that makes it first, or drop create=no",
            path.display()
        )));
    }
    if let Some(directory) = path.parent().filter(|directory| !directory.is_dir()) {
        return Err(StoreError::rejected(format!(
            "SQLite database {}: there is no directory {}. Make it, or name another file",
            path.display(),
            directory.display()
        )));
    }
    match connect(path, OpenFlags::SQLITE_OPEN_CREATE) {
        Ok(_) => Ok(()),
        Err(error) => Err(translate(path, &error, during)),
    }
}

fn connect(path: &Path, more: OpenFlags) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | more;
    Connection::open_with_flags(path, flags)
}

/// SQLite falls back to reading alone by itself, without a word.
fn read_only(path: &Path) -> StoreError {
    StoreError::rejected(format!(
        "SQLite database {}: it can only be read. Give this process the right to write the file, \
         its -wal and -shm files and its directory, and see that the file system is mounted for \
         writing",
        path.display()
    ))
}

/// Switches to the write-ahead log: without it a reader would block the beat.
fn use_log(
    connection: &Connection,
    path: &Path,
    busy: Duration,
    during: During,
) -> Result<(), StoreError> {
    // SQLite waits by itself in some of the cases where the switch meets another connection's
    // lock, but not when several processes start on a new file at once. So all waiting is here.
    const PAUSE: Duration = Duration::from_millis(10);
    connection.busy_timeout(Duration::ZERO).map_err(|error| translate(path, &error, during))?;
    let mut left = busy.max(Duration::from_millis(500));
    let mode = loop {
        match journal_mode(connection) {
            Ok(mode) => break mode,
            Err(error) => {
                let locked = error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy);
                if !locked || left.is_zero() {
                    return Err(translate(path, &error, during));
                }
            }
        }
        left = left.saturating_sub(PAUSE);
        thread::park_timeout(PAUSE);
    };
    if mode.eq_ignore_ascii_case("wal") {
        return Ok(());
    }
    Err(StoreError::rejected(format!(
        "SQLite database {}: it can't use the write-ahead log but stays in mode {mode:?}. Use a \
         local disk instead of a network file system",
        path.display()
    )))
}

/// The journal mode after the attempt to make it the write-ahead log.
fn journal_mode(connection: &Connection) -> rusqlite::Result<String> {
    let mode: String = connection.query_row("PRAGMA journal_mode", [], |row| row.get(0))?;
    if mode.eq_ignore_ascii_case("wal") {
        return Ok(mode);
    }
    connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))
}

fn set_synchronous(connection: &Connection, synchronous: Synchronous) -> rusqlite::Result<()> {
    match synchronous {
        // On macOS a plain sync leaves the data in the disk's own cache; elsewhere the second
        // pragma changes nothing.
        Synchronous::Full => {
            connection.execute_batch("PRAGMA synchronous = FULL; PRAGMA fullfsync = ON")
        }
        Synchronous::Normal => connection.execute_batch("PRAGMA synchronous = NORMAL"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beats_alone_do_not_wait_for_the_disk() {
        let place = tempfile::tempdir().unwrap();
        let options = SqliteOptions::new(place.path().join("app.db")).checked().unwrap();
        let waits = |options: &SqliteOptions| {
            let database = Database::open(options, Duration::ZERO, During::Open).unwrap();
            let asked = database.connection.query_row("PRAGMA synchronous", [], |row| row.get(0));
            asked.unwrap()
        };
        // SQLite counts: 2 is full, and waits with each commit; 1 is normal, and doesn't.
        assert_eq!((waits(&options), waits(&options.of_beats())), (2, 1));
    }
}
