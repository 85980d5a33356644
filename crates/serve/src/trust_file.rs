//! The file by which a client on the same host knows how long it may trust: docs/http.md has its layout.

#[cfg(target_os = "linux")]
mod remains;

use std::fs::File;
use std::path::{Path, PathBuf};

#[cfg(target_os = "linux")]
pub(crate) use mapped::TrustFile;
#[cfg(not(target_os = "linux"))]
pub(crate) use none::TrustFile;

/// How long a file is.
#[cfg(target_os = "linux")]
const LENGTH: usize = 128;

/// Where files are made for clients of this process: a directory that others can't list, so that
/// only who was told a file's name can open it.
#[derive(Debug)]
pub(crate) struct TrustFiles {
    directory: Option<PathBuf>,
    /// Locked for as long as this process lives.
    _lock: Option<File>,
}

impl TrustFiles {
    /// In a directory of this process below the one that was chosen, or below the usual one. None are
    /// made where that can't be.
    ///
    /// # Errors
    /// If a directory was chosen and can't be used.
    pub(crate) fn new(below: Option<&Path>, run: &str) -> std::io::Result<Self> {
        let made = match (make(below, run), below) {
            (Err(why), Some(_)) => {
                return Err(std::io::Error::other(format!(
                    "there can be no trust files in {why}. Name another directory, or none for the usual one"
                )));
            }
            (Err(why), None) => {
                tracing::warn!(action = "serve", %why, "no trust files: clients have to ask over HTTP");
                None
            }
            (Ok(made), _) => Some(made),
        };
        let (directory, _lock) = made.unzip();
        Ok(Self { directory, _lock })
    }

    /// What is left if its process is killed: nothing is removed.
    #[cfg(all(test, target_os = "linux"))]
    fn killed(mut self) -> Option<File> {
        self.directory = None;
        self._lock.take()
    }

    /// A file for a hold, of which the end of trust is still 0.
    pub(crate) fn create(&self, hold: &[u8; 16], name: &str, term: u64) -> Option<TrustFile> {
        let path = self.directory.as_ref()?.join(name);
        TrustFile::create(path, hold, term)
            .inspect_err(|error| tracing::warn!(action = "hold", %error, "no trust file"))
            .ok()
    }
}

impl Drop for TrustFiles {
    fn drop(&mut self) {
        if let Some(directory) = &self.directory {
            // Whoever has a file mapped keeps it.
            let _ = std::fs::remove_dir_all(directory);
        }
    }
}

#[cfg(target_os = "linux")]
fn make(below: Option<&Path>, run: &str) -> Result<(PathBuf, File), String> {
    use std::os::unix::fs::DirBuilderExt;

    let below = match below {
        Some(below) => below.to_owned(),
        None => usual(),
    };
    let why = |error: std::io::Error| format!("{}: {error}", below.display());
    let made = match std::fs::create_dir(&below) {
        Ok(()) => true,
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => false,
        Err(error) => return Err(why(error)),
    };
    let kind = rustix::fs::statfs(&below).map_err(|error| why(error.into()))?.f_type;
    if kind != TMPFS {
        if made {
            // Nothing is left of what was tried.
            let _ = std::fs::remove_dir(&below);
        }
        return Err(format!("{}, which is not on tmpfs", below.display()));
    }
    remains::sweep(&below, incumbent::clock::now());
    let directory = below.join(format!("{}{run}", remains::PREFIX));
    let mut builder = std::fs::DirBuilder::new();
    builder.mode(0o711).create(&directory).map_err(why)?;
    // Whatever the umask took away.
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o711);
    std::fs::set_permissions(&directory, mode).map_err(why)?;
    let lock = remains::claim(&directory).map_err(why)?;
    Ok((directory, lock))
}

#[cfg(target_os = "linux")]
const TMPFS: rustix::fs::FsWord = 0x0102_1994;

#[cfg(target_os = "linux")]
fn usual() -> PathBuf {
    let named = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let named = named.filter(|path| path.is_absolute() && path.is_dir());
    // One's own runtime directory can't be searched by others, as clients may be.
    match named {
        Some(path) if rustix::process::getuid().is_root() => path,
        Some(_) | None => PathBuf::from("/dev/shm"),
    }
}

#[cfg(not(target_os = "linux"))]
fn make(_: Option<&Path>, _: &str) -> Result<(PathBuf, File), String> {
    Err("only Linux has the clock for them".to_owned())
}

#[cfg(target_os = "linux")]
mod mapped {
    #![allow(unsafe_code, reason = "mapping a file, and referring to it, can't be written without")]

    use std::fs::File;
    use std::io;
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
    use std::path::{Path, PathBuf};
    use std::ptr;
    use std::sync::atomic::{AtomicU64, Ordering};

    use incumbent::Moment;
    use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

    use super::LENGTH;

    /// One file for one hold. Dropped, it says that trust is over and is removed; whoever has it
    /// mapped goes on seeing that.
    #[derive(Debug)]
    pub(crate) struct TrustFile {
        path: PathBuf,
        file: File,
        page: *mut core::ffi::c_void,
    }

    // SAFETY: the mapping belongs to this value alone, lives as long as it does, and is accessed
    // only by atomic stores.
    unsafe impl Send for TrustFile {}
    // SAFETY: as above.
    unsafe impl Sync for TrustFile {}

    impl TrustFile {
        pub(super) fn create(path: PathBuf, hold: &[u8; 16], term: u64) -> io::Result<Self> {
            use std::io::Write;

            let mut options = std::fs::OpenOptions::new();
            // Never one that is there: a file belongs to one hold.
            let mut file: File =
                options.read(true).write(true).create_new(true).mode(0o644).open(&path)?;
            let mut bytes = Vec::with_capacity(LENGTH);
            bytes.extend_from_slice(b"INCTRST1");
            bytes.extend_from_slice(&0_u64.to_le_bytes());
            bytes.extend_from_slice(&term.to_le_bytes());
            bytes.extend_from_slice(hold);
            bytes.extend_from_slice(&boot()?);
            bytes.extend_from_slice(&time_namespace().to_le_bytes());
            bytes.resize(LENGTH, 0);
            file.write_all(&bytes)?;
            file.set_permissions(std::fs::Permissions::from_mode(0o444))?;
            let access = ProtFlags::READ | ProtFlags::WRITE;
            // SAFETY: a new mapping at an address of the kernel's choice touches no memory in use.
            // The file has the whole length, nobody else may write to it, and if its owner truncates it,
            // it isn't touched any more.
            let page =
                unsafe { mmap(ptr::null_mut(), LENGTH, access, MapFlags::SHARED, &file, 0) }?;
            Ok(Self { path, file, page })
        }

        /// Where it is.
        pub(crate) fn path(&self) -> &Path {
            &self.path
        }

        /// Trust lasts until this moment; [`Moment::START`] ends it.
        ///
        /// It is mapped and not written, because a client must never read half of a number. But touching
        /// a mapping whose file was cut off ends the process, so that its length is asked first: who cuts
        /// it off within the nanoseconds in between would have to be its owner, or root.
        pub(crate) fn write(&self, until: Moment) {
            if !self.file.metadata().is_ok_and(|it| it.len() >= LENGTH as u64) {
                let file = self.path.display();
                tracing::warn!(action = "hold", %file, "somebody cut off a trust file");
                return;
            }
            // SAFETY: the mapping is live, aligned to a page, and 16 bytes of it are there; the
            // kernel and other processes access these 8 bytes as a whole alone.
            let end = unsafe { AtomicU64::from_ptr(self.page.cast::<u64>().add(1)) };
            end.store(until.as_nanos().to_le(), Ordering::Release);
        }
    }

    impl Drop for TrustFile {
        fn drop(&mut self) {
            self.write(Moment::START);
            let _ = std::fs::remove_file(&self.path);
            // SAFETY: the mapping was made by this value, and nothing refers to it any more.
            let _ = unsafe { munmap(self.page, LENGTH) };
        }
    }

    /// The id of this boot as bytes.
    pub(super) fn boot() -> io::Result<[u8; 16]> {
        let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
        let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
        let number = u128::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 32);
        let number = number.ok_or_else(|| io::Error::other("the boot id can't be understood"))?;
        Ok(number.to_be_bytes())
    }

    pub(super) fn time_namespace() -> u64 {
        std::fs::metadata("/proc/self/ns/time").map_or(0, |found| found.ino())
    }

    #[cfg(test)]
    mod tests {
        use std::time::Duration;

        use super::*;

        #[test]
        fn a_file_that_is_cut_off_is_not_touched_any_more() {
            let directory = tempfile::tempdir_in("/dev/shm").unwrap();
            let path = directory.path().join("one");
            let file = TrustFile::create(path.clone(), &[7; 16], 9).unwrap();
            File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
            // Without the look at its length this would end the whole test by SIGBUS.
            file.write(Moment::START + Duration::from_secs(1));
            assert_eq!(std::fs::read(&path).unwrap(), b"");
            drop(file);
            assert!(!path.exists());
        }

        #[test]
        fn a_file_says_until_when_and_is_never_taken_over() {
            let directory = tempfile::tempdir_in("/dev/shm").unwrap();
            let path = directory.path().join("one");
            let (hold, term) = ([7; 16], 9);
            let file = TrustFile::create(path.clone(), &hold, term).unwrap();
            let read = || std::fs::read(&path).unwrap();
            let end = |bytes: &[u8]| u64::from_le_bytes(bytes[8..16].try_into().unwrap());
            assert_eq!((read().len(), end(&read())), (128, 0));
            assert_eq!(&read()[..8], b"INCTRST1");
            assert_eq!(read()[16..24], term.to_le_bytes());
            assert_eq!(read()[24..40], hold);
            assert_eq!(read()[40..56], boot().unwrap());
            let until = Moment::START + Duration::from_nanos(12_345);
            file.write(until);
            assert_eq!(end(&read()), 12_345);
            assert!(
                TrustFile::create(path.clone(), &hold, term).is_err(),
                "it belongs to one hold"
            );
            assert_eq!(end(&read()), 12_345, "and wasn't truncated by that");
            // A client that has it open sees the end although the name is gone.
            let open = std::fs::File::open(&path).unwrap();
            drop(file);
            assert!(!path.exists());
            let mut bytes = [0; 16];
            std::os::unix::fs::FileExt::read_exact_at(&open, &mut bytes, 0).unwrap();
            assert_eq!(end(&bytes), 0);
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod none {
    use std::io;
    use std::path::{Path, PathBuf};

    use incumbent::Moment;

    /// There are none here.
    #[derive(Debug)]
    pub(crate) struct TrustFile {
        path: PathBuf,
    }

    impl TrustFile {
        pub(super) fn create(path: PathBuf, _: &[u8; 16], _: u64) -> io::Result<Self> {
            let _ = Self { path };
            Err(io::Error::other("only Linux has the clock for them"))
        }

        pub(crate) fn path(&self) -> &Path {
            &self.path
        }

        pub(crate) fn write(&self, _: Moment) {}
    }
}
