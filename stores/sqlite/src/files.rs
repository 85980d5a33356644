//! Which files a connection has open, and whether the paths still lead to them.
//!
//! A process that goes on with a deleted or replaced database would no longer see the others: two
//! leaders. The same is true of the write-ahead log and of its index, which belong to the
//! database.

use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};

/// Where the database and its companions are.
#[derive(Clone, Debug)]
pub(crate) struct Paths {
    /// As given, so that a symbolic link that is turned elsewhere counts as a replaced file.
    pub(crate) database: PathBuf,
    /// Beside the real file, whatever links lead to it.
    pub(crate) log: PathBuf,
    index: PathBuf,
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
        Ok(Self { database: database.to_owned(), log: beside("-wal"), index: beside("-shm") })
    }
}

/// The identities of the files behind [`Paths`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Files {
    database: FileId,
    log: FileId,
    index: FileId,
}

impl Files {
    /// What is there now. An error means that one of them is not.
    pub(crate) fn look(paths: &Paths) -> io::Result<Self> {
        Ok(Self {
            database: FileId::look(&paths.database)?,
            log: FileId::look(&paths.log)?,
            index: FileId::look(&paths.index)?,
        })
    }

    /// Whether the paths still lead to the same files.
    pub(crate) fn still_at(&self, paths: &Paths) -> bool {
        Self::look(paths).is_ok_and(|now| now == *self)
    }

    /// Whether this is the file that was there before it was opened.
    pub(crate) fn belong_to(&self, database: FileId) -> bool {
        self.database == database
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

/// The name of the network file system that this path is on, if it is on one.
///
/// SQLite can't tell: its log seems to work there until two machines use it.
#[cfg(target_os = "linux")]
pub(crate) fn network_file_system(path: &Path) -> Option<&'static str> {
    const KNOWN: [(u32, &str); 8] = [
        (0x0000_6969, "NFS"),
        (0x0000_517b, "SMB"),
        (0xff53_4d42, "CIFS"),
        (0xfe53_4d42, "SMB"),
        (0x00c3_6400, "Ceph"),
        (0x5346_414f, "AFS"),
        (0x0bd0_0bd0, "Lustre"),
        (0x4750_4653, "GPFS"),
    ];
    // Its width and sign differ from machine to machine; the number is of 32 bits.
    let kind = rustix::fs::statfs(path).ok()?.f_type as u32;
    KNOWN.iter().find(|(magic, _)| *magic == kind).map(|(_, name)| *name)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn network_file_system(_: &Path) -> Option<&'static str> {
    None
}
