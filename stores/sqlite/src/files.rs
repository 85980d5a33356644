//! Which files a connection has open, and whether the paths still lead to them.
//!
//! A process that goes on with a deleted or replaced database would no longer see the others: two
//! leaders. The same is true of the write-ahead log and of its index, which belong to the
//! database.

use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use incumbent_store_common::locked;

/// Where the database and its companions are.
#[derive(Clone, Debug)]
pub(crate) struct Paths {
    /// As given, so that a symbolic link that is turned elsewhere counts as a replaced file.
    pub(crate) database: PathBuf,
    /// Where all symbolic links lead to, which is what SQLite opens.
    pub(crate) real: PathBuf,
    /// Beside the real file.
    pub(crate) log: PathBuf,
    pub(crate) index: PathBuf,
}

impl Paths {
    /// The paths of an existing database.
    pub(crate) fn of(database: &Path) -> io::Result<Self> {
        let real = fs::canonicalize(database)?;
        let beside = |suffix: &str| {
            let mut name = real.as_os_str().to_owned();
            name.push(OsStr::new(suffix));
            PathBuf::from(name)
        };
        let (log, index) = (beside("-wal"), beside("-shm"));
        Ok(Self { database: database.to_owned(), real, log, index })
    }

    /// Whether the path leads to the very file that SQLite opens. The links in /proc don't: they
    /// cross over into other namespaces, which their text can't.
    pub(crate) fn lead_to_one_file(&self) -> io::Result<bool> {
        Ok(FileId::look(&self.database)? == FileId::look(&self.real)?)
    }
}

/// What has become of the files that a connection has open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Others who open the path get the same files.
    Current,
    /// The database has so many names. Whoever opens another has another log.
    Linked(u64),
    /// Others who open the path get other files, or none.
    Replaced,
}

/// The identities of the files behind [`Paths`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Files {
    database: FileId,
    /// How many names the database has.
    names: u64,
    beside: Beside,
    /// Whether the index, if there is one, has its first part. Whoever is alone with it cuts it off and makes
    /// it anew: while others have it open, nobody may, and if it was done nevertheless, nobody may touch it.
    whole: bool,
}

/// How long the first part of the log's index is.
const INDEX_PART: u64 = 32 * 1024;

/// What is beside the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beside {
    /// The log and its index.
    Log(FileId, FileId),
    /// A log with changes, and no index.
    Unindexed,
    /// No log: all that was ever written is in the file, of this size and time.
    Nothing(u64, Option<SystemTime>),
}

impl Files {
    /// What is there now. An error means that the database is not, or is by now under another name: whoever
    /// opens the path then has another log beside it, even if a link still leads to the same file.
    pub(crate) fn look(paths: &Paths) -> io::Result<Self> {
        if fs::canonicalize(&paths.database)? != paths.real {
            return Err(io::ErrorKind::NotFound.into());
        }
        let database = fs::metadata(&paths.database)?;
        let (log, index) = (present(&paths.log)?, present(&paths.index)?);
        let whole = index.as_ref().is_none_or(|index| index.len() >= INDEX_PART);
        let beside = match (log, index) {
            (Some(log), Some(index)) => Beside::Log(FileId::of(&log), FileId::of(&index)),
            (Some(log), None) if log.len() > 0 => Beside::Unindexed,
            (Some(_) | None, _) => Beside::Nothing(database.len(), database.modified().ok()),
        };
        Ok(Self { database: FileId::of(&database), names: count_names(&database), beside, whole })
    }

    /// What is beside the database.
    pub(crate) fn beside(&self) -> Beside {
        self.beside
    }

    /// Whether the paths still lead to the same files, and to nothing but these.
    pub(crate) fn standing(&self, paths: &Paths) -> Standing {
        match Self::look(paths) {
            Ok(now) if now.names > 1 => Standing::Linked(now.names),
            Ok(now) if now == *self => Standing::Current,
            Ok(now) => {
                if !now.whole && (Self { whole: true, ..now }) == *self {
                    lengthen(paths);
                }
                Standing::Replaced
            }
            Err(_) => Standing::Replaced,
        }
    }

    /// Whether this is the file that was there before it was opened, with its log, and these are the
    /// very files that this process has open.
    pub(crate) fn belong_to(&self, database: FileId, paths: &Paths) -> bool {
        match self.beside {
            Beside::Log(log, index) if self.database == database => {
                are_open(database, log, index, paths)
            }
            Beside::Log(..) | Beside::Unindexed | Beside::Nothing(..) => false,
        }
    }
}

/// Gives an index that was cut off a length again at which nothing that is mapped is missing. What is missing
/// can't be touched, not even to close a connection, without the end of the process (SIGBUS). What comes back
/// is empty, and SQLite makes such an index anew from the log.
///
/// By its name, for to open and close it would drop all locks that this process has on it.
#[cfg(target_os = "linux")]
fn lengthen(paths: &Paths) {
    /// A frame of the log at the smallest size of a page.
    const FRAME: u64 = 512 + 24;
    /// So many frames are in one part of the index.
    const FRAMES: u64 = 4096;
    let frames = fs::metadata(&paths.log).map_or(0, |log| log.len() / FRAME);
    // No shorter than anybody else has made it meanwhile.
    let length = (frames / FRAMES + 2) * INDEX_PART;
    if let Ok(length) = i64::try_from(length) {
        // If it fails, all is as it was before.
        let _ = nix::unistd::truncate(&paths.index, length);
    }
}

#[cfg(not(target_os = "linux"))]
fn lengthen(_: &Paths) {}

/// Whether this process has open the index that is beside the database, for another database than this: then
/// one was moved into the place of the other, and its log and index were left there. SQLite would open the
/// index a second time, take it for one that nobody uses, and cut it off under those who do; and with the
/// first of the two that is closed the locks of both are gone. Touching it then ends the process (SIGBUS).
#[cfg(target_os = "linux")]
pub(crate) fn is_index_of_another(paths: &Paths) -> bool {
    let (Ok(database), Ok(index)) = (FileId::look(&paths.real), FileId::look(&paths.index)) else {
        return false;
    };
    let Ok(descriptors) = fs::read_dir("/proc/self/fd") else { return false };
    let open = descriptors.flatten().filter_map(|entry| FileId::look(&entry.path()).ok());
    let (mut has_database, mut has_index) = (false, false);
    for file in open {
        has_database |= file == database;
        has_index |= file == index;
    }
    has_index && !has_database
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn is_index_of_another(_: &Paths) -> bool {
    false
}

/// Which files this process's own connections have open, for those that are opened meanwhile.
static CLAIMS: Mutex<Vec<Arc<Files>>> = Mutex::new(Vec::new());

/// Says, for as long as it lives, that a connection has these files open.
#[derive(Debug)]
pub(crate) struct Claim(Arc<Files>);

impl Claim {
    pub(crate) fn of(files: Files) -> Self {
        let files = Arc::new(files);
        locked(&CLAIMS).push(Arc::clone(&files));
        Self(files)
    }

    /// Whether a file is known to be open for another database than this one, and not for it.
    #[cfg(target_os = "linux")]
    fn is_of_another(file: FileId, database: FileId) -> bool {
        let claims = locked(&CLAIMS);
        let of = claims.iter().filter(|files| match files.beside {
            Beside::Log(log, index) => [files.database, log, index].contains(&file),
            Beside::Unindexed | Beside::Nothing(..) => false,
        });
        let mut databases = of.map(|files| files.database).peekable();
        databases.peek().is_some() && databases.all(|of| of != database)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        locked(&CLAIMS).retain(|files| !Arc::ptr_eq(files, &self.0));
    }
}

/// Tells one file from another, whatever their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    pub(crate) fn look(path: &Path) -> io::Result<Self> {
        fs::metadata(path).map(|metadata| Self::of(&metadata))
    }

    #[cfg(unix)]
    fn of(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self { device: metadata.dev(), inode: metadata.ino() }
    }

    /// Other systems don't let go of a file that is open, so being there is enough.
    #[cfg(not(unix))]
    fn of(_: &Metadata) -> Self {
        Self { device: 0, inode: 0 }
    }
}

/// Whether this process has these files open, and none that once had one of the names, was deleted, and may
/// be what a connection to this database has open. SQLite shares the log's index between the connections of a process to one database:
/// one that is opened while another still has the old index gets that, whatever the path leads to by then
/// (O47). What our own connections to another database have open, one that was replaced as a whole, is in
/// nobody's way.
#[cfg(target_os = "linux")]
fn are_open(database: FileId, log: FileId, index: FileId, paths: &Paths) -> bool {
    let Ok(descriptors) = fs::read_dir("/proc/self/fd") else {
        // Without it nothing can be said, as on other systems.
        return true;
    };
    let gone = |path: &Path| {
        let mut name = path.as_os_str().to_owned();
        name.push(" (deleted)");
        PathBuf::from(name)
    };
    let gone = [gone(&paths.real), gone(&paths.log), gone(&paths.index)];
    let mut missing = vec![database, log, index];
    for descriptor in descriptors.flatten().map(|entry| entry.path()) {
        // One that was closed meanwhile was another's.
        let Ok(target) = fs::read_link(&descriptor) else { continue };
        let Ok(open) = FileId::look(&descriptor) else { continue };
        if gone.contains(&target) && !Claim::is_of_another(open, database) {
            return false;
        }
        missing.retain(|file| *file != open);
    }
    missing.is_empty()
}

#[cfg(not(target_os = "linux"))]
fn are_open(_: FileId, _: FileId, _: FileId, _: &Paths) -> bool {
    true
}

/// What is known of a file, if it is there.
fn present(path: &Path) -> io::Result<Option<Metadata>> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// How many names a file has.
pub(crate) fn names(path: &Path) -> io::Result<u64> {
    fs::metadata(path).map(|metadata| count_names(&metadata))
}

#[cfg(unix)]
fn count_names(metadata: &Metadata) -> u64 {
    use std::os::unix::fs::MetadataExt;
    metadata.nlink()
}

/// The standard library doesn't tell elsewhere.
#[cfg(not(unix))]
fn count_names(_: &Metadata) -> u64 {
    1
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs::File;

    use super::*;

    /// O47: who has the old index open is not in the same database as those who find the new one.
    #[test]
    fn a_file_that_is_open_though_its_name_leads_elsewhere_is_noticed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.db");
        let make = |suffix: &str| {
            let name = format!("{}{suffix}", path.display());
            fs::write(&name, "something").unwrap();
            File::open(name).unwrap()
        };
        let (_database, _log, index) = (make(""), make("-wal"), make("-shm"));
        let paths = Paths::of(&path).unwrap();
        let belong = || {
            let files = Files::look(&paths).unwrap();
            files.belong_to(files.database, &paths)
        };
        assert!(belong());
        fs::remove_file(&paths.index).unwrap();
        fs::write(&paths.index, "another process made it anew").unwrap();
        assert!(!belong(), "the old one is open, and the new one isn't");
        let _new = File::open(&paths.index).unwrap();
        assert!(!belong(), "the old one is still open, and whoever connects shares it");
        drop(index);
        assert!(belong());
    }

    /// A file that was replaced together with its log is in nobody's way, even if it is still open; but only
    /// where it is known of whom the old log and index are.
    #[test]
    fn what_is_open_of_a_database_that_was_replaced_as_a_whole_is_in_nobody_s_way() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.db");
        let make = || {
            ["", "-wal", "-shm"].map(|suffix| {
                let name = format!("{}{suffix}", path.display());
                let _ = fs::remove_file(&name);
                fs::write(&name, "something").unwrap();
                File::open(name).unwrap()
            })
        };
        let _old = make();
        let paths = Paths::of(&path).unwrap();
        let former = Files::look(&paths).unwrap();
        let _new = make();
        let now = Files::look(&paths).unwrap();
        assert!(!now.belong_to(now.database, &paths), "nobody says whose the old ones are");
        let claim = Claim::of(former);
        assert!(now.belong_to(now.database, &paths));
        let same = Claim::of(Files { database: now.database, ..former });
        assert!(
            !now.belong_to(now.database, &paths),
            "one of its own connections has the old index"
        );
        drop(same);
        assert!(now.belong_to(now.database, &paths));
        drop(claim);
        assert!(!now.belong_to(now.database, &paths));
    }
}
