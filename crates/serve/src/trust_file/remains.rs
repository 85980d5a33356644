//! What servers that were killed left behind: directories of trust files.
//!
//! A server has a lock on a file in its directory for as long as it lives, whatever namespaces it is in, and
//! the kernel takes it away with the process. So who gets it knows that nobody writes these files any more.
//! What a file says counts nevertheless: a client may trust until then.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use incumbent::Moment;
use rustix::fs::{FlockOperation, Mode, OFlags, flock};

use super::LENGTH;
use super::mapped::{boot, time_namespace};

/// What every directory begins with.
pub(super) const PREFIX: &str = "incumbent-";
const LOCK: &str = "lock";

/// Says for as long as the file is open that the server of this directory lives.
pub(super) fn claim(directory: &Path) -> io::Result<File> {
    let (early, lock) = (directory.join("lock-to-be"), directory.join(LOCK));
    let file = File::options().write(true).create_new(true).open(&early)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    // It has this name only once it is locked: who finds it free knows that its owner is gone.
    fs::rename(early, lock)?;
    Ok(file)
}

/// Removes the directories of servers of this user that are dead, as far as nobody trusts any more by what is
/// in them.
pub(super) fn sweep(below: &Path, now: Moment) {
    use std::os::unix::fs::MetadataExt;

    let own = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(below).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let run = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        let is_own = entry.metadata().is_ok_and(|it| it.is_dir() && it.uid() == own);
        if is_own && run.is_some_and(is_id) && is_dead(&entry.path()) {
            let _ = clear(&entry.path(), now);
        }
    }
}

fn is_id(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_dead(directory: &Path) -> bool {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    // Without a lock nothing is known: an earlier version made it, or it is only being made.
    let Ok(lock) = rustix::fs::open(directory.join(LOCK), flags, Mode::empty()) else {
        return false;
    };
    flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok()
}

/// The lock goes last, so that what couldn't be removed now is found by the next.
fn clear(directory: &Path, now: Moment) -> io::Result<()> {
    for entry in fs::read_dir(directory)?.flatten() {
        let is_file = entry.file_name().to_str().is_some_and(is_id);
        if is_file && is_over(&fs::read(entry.path())?, now) {
            fs::remove_file(entry.path())?;
        }
    }
    let left = fs::read_dir(directory)?.flatten().filter(|entry| entry.file_name() != LOCK);
    if left.count() == 0 {
        fs::remove_file(directory.join(LOCK))?;
        fs::remove_dir(directory)?;
    }
    Ok(())
}

/// Whether nobody trusts by this any more. What was written under another clock can't be judged.
fn is_over(bytes: &[u8], now: Moment) -> bool {
    let number = |at: usize| {
        let bytes = bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
        bytes.map(u64::from_le_bytes)
    };
    if bytes.len() < LENGTH {
        // Somebody cut it off: who reads it finds nothing to trust by.
        return true;
    }
    let same_clock = boot().is_ok_and(|boot| bytes.get(40..56) == Some(&boot))
        && number(56) == Some(time_namespace());
    match number(8) {
        Some(0) => true,
        Some(until) => same_clock && until <= now.as_nanos(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::TrustFiles;
    use super::*;

    #[test]
    fn only_what_a_dead_server_left_and_nobody_trusts_by_is_removed() {
        let below = tempfile::tempdir_in("/dev/shm").unwrap();
        let (run, hold) = ("a".repeat(32), "b".repeat(32));
        let files = TrustFiles::new(Some(below.path()), &run).unwrap();
        let file = files.create(&[7; 16], &hold, 3).unwrap();
        let now = Moment::START + Duration::from_secs(1000);
        file.write(now + Duration::from_secs(10));
        let directory = below.path().join(format!("{PREFIX}{run}"));
        let later = now + Duration::from_secs(60);
        sweep(below.path(), later);
        assert!(directory.join(&hold).exists(), "its server lives");
        // As if it were killed: nothing is removed, and the lock goes with the process.
        let (lock, file) = (files.killed(), std::mem::ManuallyDrop::new(file));
        drop(lock);
        sweep(below.path(), now);
        assert!(directory.join(&hold).exists(), "a client may trust by it");
        sweep(below.path(), later);
        assert!(!directory.exists());
        assert!(!file.path().exists());
        // What has no lock, or isn't called like one of ours, is somebody else's.
        let (old, other) = (format!("{PREFIX}{}", "c".repeat(32)), format!("{PREFIX}other"));
        for name in [&old, &other] {
            fs::create_dir(below.path().join(name)).unwrap();
        }
        fs::write(below.path().join(&other).join(LOCK), "").unwrap();
        sweep(below.path(), later);
        assert!(below.path().join(old).exists() && below.path().join(other).exists());
    }
}
