//! What can be chosen about the store.

use std::path::{Path, PathBuf};
use std::time::Duration;

use incumbent_core::store::{Access, Lane, StoreError};
use incumbent_store_common::{check_name, choices};

/// Which file, and how it is used.
///
/// Anything that names a path turns into options with the defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqliteOptions {
    pub(crate) path: PathBuf,
    pub(crate) prefix: String,
    pub(crate) busy: Duration,
    pub(crate) synchronous: Synchronous,
    pub(crate) create: bool,
    pub(crate) hints: HintSource,
    pub(crate) access: Access,
}

/// When a write counts as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Synchronous {
    /// When it is on the disk: terms survive the loss of power.
    Full,
    /// When the operating system has it: faster, but the loss of power may undo the last writes.
    Normal,
}

/// How the store learns that another connection changed something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HintSource {
    /// The operating system says so (inotify), or a look every tenth of a second where it can't.
    Watch,
    /// A look twenty times a second, for file systems on which inotify is blind, such as
    /// folders shared with a virtual machine.
    Poll,
}

const LONGEST_PREFIX: usize = 41;
const LONGEST_BUSY: Duration = Duration::from_secs(60);

impl SqliteOptions {
    /// This file, with the defaults for all else.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            prefix: "incumbent_".to_owned(),
            busy: Duration::from_secs(2),
            synchronous: Synchronous::Full,
            create: true,
            hints: HintSource::Watch,
            access: Access::Full,
        }
    }

    /// The options in a URL such as `sqlite:app.db?prefix=election_&busy=500`.
    ///
    /// After `sqlite:` comes a path, relative or absolute, with `%3f` for a `?` in it. The options
    /// are `prefix`, `busy` (milliseconds), `synchronous` (`full`, `normal`), `create` (`yes`,
    /// `no`) and `hints` (`watch`, `poll`).
    ///
    /// # Errors
    ///
    /// Rejected if something in the URL isn't understood; the message names it.
    pub fn parse(url: &str) -> Result<Self, StoreError> {
        crate::url::parse(url)
    }

    choices! {
        /// What the names of all tables and views start with: `incumbent_` by default.
        prefix: Text;

        /// How long a beat waits for another writer, 2 s by default. All other writes wait half as
        /// long.
        busy: Duration;

        /// When a write counts as written: [`Synchronous::Full`] by default.
        synchronous: Synchronous;

        /// Whether a missing file is made, as it is by default. The tables are made in any case.
        create: bool;

        /// How changes by others are noticed: [`HintSource::Watch`] by default.
        hints: HintSource;

        /// What the store is opened for: [`Access::Full`] by default. To look, it is enough to be able
        /// to read the file, its `-wal` and its `-shm`, and neither a file nor a table is made.
        access: Access;
    }

    /// The tables and views that the store makes in the file, as SQL that can be run any number of
    /// times.
    #[must_use]
    pub fn schema(&self) -> String {
        crate::schema::sql(&self.prefix)
    }

    /// How long a write of this lane waits for another writer.
    pub(crate) fn busy_of(&self, lane: Lane) -> Duration {
        match lane {
            Lane::Beat => self.busy,
            Lane::Change | Lane::Watch => self.busy / 2,
        }
    }

    /// The same options for beats, which don't wait for the disk. Whoever trusts in a beat runs on the machine
    /// that loses its power, and the next write that waits brings what came before it to the disk as well.
    /// Otherwise many beats would queue up behind each other's flushes (O61).
    pub(crate) fn of_beats(&self) -> Self {
        Self { synchronous: Synchronous::Normal, ..self.clone() }
    }

    /// The same options with an absolute path, or why they can't be used.
    ///
    /// The path is made absolute so that a process which changes its directory later still finds
    /// the same file.
    pub(crate) fn checked(mut self) -> Result<Self, StoreError> {
        check_prefix(&self.prefix)?;
        if self.busy > LONGEST_BUSY {
            let busy = self.busy.as_millis();
            return Err(StoreError::rejected(format!(
                "busy={busy} is more than {} ms: choose less than a third of the ttl",
                LONGEST_BUSY.as_millis()
            )));
        }
        check_path(&self.path)?;
        self.path = std::path::absolute(&self.path).map_err(|error| {
            let path = self.path.display();
            StoreError::rejected(format!("{path}: {error}. Give an absolute path"))
        })?;
        Ok(self)
    }
}

impl From<&Path> for SqliteOptions {
    fn from(path: &Path) -> Self {
        Self::new(path)
    }
}

impl From<PathBuf> for SqliteOptions {
    fn from(path: PathBuf) -> Self {
        Self::new(path)
    }
}

impl From<&PathBuf> for SqliteOptions {
    fn from(path: &PathBuf) -> Self {
        Self::new(path)
    }
}

impl From<&str> for SqliteOptions {
    fn from(path: &str) -> Self {
        Self::new(path)
    }
}

impl From<String> for SqliteOptions {
    fn from(path: String) -> Self {
        Self::new(path)
    }
}

/// The prefix becomes part of SQL text, so nothing but a plain identifier may pass.
fn check_prefix(prefix: &str) -> Result<(), StoreError> {
    check_name("prefix", prefix, LONGEST_PREFIX, "election_")?;
    // SQLite keeps such names to itself.
    if prefix.to_ascii_lowercase().starts_with("sqlite_") {
        return Err(StoreError::rejected(format!(
            "prefix={prefix:?}: SQLite reserves names that start with sqlite_; choose another"
        )));
    }
    Ok(())
}

fn check_path(path: &Path) -> Result<(), StoreError> {
    let bytes = path.as_os_str().as_encoded_bytes();
    if bytes.is_empty() {
        return Err(StoreError::rejected(
            "no database file was named: write sqlite:app.db or sqlite:/var/lib/app/app.db",
        ));
    }
    if bytes.starts_with(b":memory:") {
        return Err(StoreError::rejected(
            "sqlite::memory: can't be shared, not even between two connections of one process: \
             use memory: or solo: instead, or name a file",
        ));
    }
    if bytes.starts_with(b"file:") {
        return Err(StoreError::rejected(format!(
            "{}: give a plain path instead of a file: URI, as in sqlite:app.db",
            path.display()
        )));
    }
    if bytes.contains(&0) {
        return Err(StoreError::rejected(format!("{path:?}: a path can't contain a NUL byte")));
    }
    Ok(())
}
