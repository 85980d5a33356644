//! What SQLite's errors mean to a caller, and what to do about them.

use std::path::Path;

use incumbent_core::store::{ErrorKind, StoreError};
use rusqlite::{Error, ErrorCode};

/// When an error happened, which decides what may have been applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum During {
    /// The store is being opened by the program.
    Open,
    /// Before the commit, or without one: surely nothing was applied.
    Work,
    /// The commit itself.
    Commit,
}

/// The error for a caller: the file, what happened, the next step.
pub(crate) fn translate(path: &Path, error: &Error, during: During) -> StoreError {
    let code = error.sqlite_error_code();
    let kind = match during {
        During::Open | During::Work => kind_of(code, during),
        During::Commit => kind_of_commit(code),
    };
    let path = path.display();
    // The number tells apart what SQLite calls by one name, such as the many I/O errors.
    let number = error
        .sqlite_error()
        .map_or(String::new(), |error| format!(" (SQLite error {})", error.extended_code));
    let step = next_step(code).map_or(String::new(), |step| format!(". {step}"));
    StoreError { kind, message: format!("SQLite database {path}: {error}{number}{step}") }
}

/// Whether a connection is as good as before in spite of this error.
pub(crate) fn keeps_connection(error: &Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DiskFull))
}

fn kind_of(code: Option<ErrorCode>, during: During) -> ErrorKind {
    match code {
        Some(
            ErrorCode::DatabaseCorrupt
            | ErrorCode::NotADatabase
            | ErrorCode::ReadOnly
            | ErrorCode::PermissionDenied
            | ErrorCode::TooBig
            // SQLite's plain error: no such table or column, so these are not our tables.
            | ErrorCode::Unknown,
        ) => ErrorKind::Rejected,
        // In a running process this is mostly a lack of file descriptors, which passes.
        Some(ErrorCode::CannotOpen) if during == During::Open => ErrorKind::Rejected,
        _ => ErrorKind::Unavailable,
    }
}

/// A commit that found no room or no lock wrote no commit frame. After any other failure, of a
/// sync above all, the frame may be in the log, where a recovery would find it.
fn kind_of_commit(code: Option<ErrorCode>) -> ErrorKind {
    match code {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DiskFull) => ErrorKind::Unavailable,
        _ => ErrorKind::Unknown,
    }
}

fn next_step(code: Option<ErrorCode>) -> Option<&'static str> {
    Some(match code? {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => {
            "Another connection held the file's write lock for too long: keep write transactions \
             short, give incumbent a file of its own, or raise busy="
        }
        ErrorCode::DatabaseCorrupt => {
            "The file is damaged: stop all that use it, then restore it or move it away together \
             with its -wal and -shm files"
        }
        ErrorCode::NotADatabase => {
            "The file holds something else or is encrypted: name another file, or move it away"
        }
        ErrorCode::ReadOnly | ErrorCode::PermissionDenied => {
            "Give this process the right to write the file, its -wal and -shm files and its \
             directory, and see that the file system is mounted for writing"
        }
        ErrorCode::DiskFull => "Free some space on its disk",
        ErrorCode::CannotOpen => {
            "Check that its directory exists, that this process may write there, and that its \
             limit of open files isn't reached"
        }
        ErrorCode::SystemIoFailure => {
            "See the system's log for errors of the disk, and whether somebody touched the \
             -wal and -shm files"
        }
        ErrorCode::FileLockingProtocolFailed => {
            "Locks don't work there: use a local disk instead of a network file system"
        }
        ErrorCode::Unknown => {
            "The tables aren't as incumbent made them: choose another prefix= or another file"
        }
        _ => return None,
    })
}
