//! Who holds the lock that a write of ours waits for.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use incumbent_core::store::Obstacle;
use tokio::sync::oneshot;

use crate::files::Paths;

/// Where in the log's index SQLite locks for writing.
const WRITE_LOCK: u64 = 120;

/// Everybody who writes holds that lock for a moment. Whoever is found there so often, with these
/// pauses, is in the way.
const LOOKS: u32 = 4;
const PAUSE: Duration = Duration::from_millis(100);

/// The process that stands in the way of writes, if the system tells.
pub(crate) async fn find(path: &Path) -> Vec<Obstacle> {
    let (path, (found, finding)) = (path.to_owned(), oneshot::channel());
    let looking = move || {
        let _ = found.send(lasting(&path).map(obstacle));
    };
    // It waits between its looks, which nobody else should have to.
    let started = thread::Builder::new().name("incumbent-sqlite-locks".to_owned()).spawn(looking);
    match started {
        Ok(_) => finding.await.ok().flatten().into_iter().collect(),
        Err(_) => Vec::new(),
    }
}

fn lasting(path: &Path) -> Option<u32> {
    let first = holder(path)?;
    for _ in 1..LOOKS {
        thread::park_timeout(PAUSE);
        holder(path).filter(|pid| *pid == first)?;
    }
    Some(first)
}

/// The process that writes at this moment. Asking SQLite's way would take its locks away: closing
/// any descriptor of a file drops all locks of this process on it.
fn holder(path: &Path) -> Option<u32> {
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let inode = Paths::of(path).ok().and_then(|paths| inode(&paths.index))?;
    locks.lines().find_map(|line| writer(line, inode))
}

fn obstacle(pid: u32) -> Obstacle {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let who = match (pid, name.trim()) {
        (pid, _) if pid == std::process::id() => "this process itself".to_owned(),
        (pid, "") => format!("the process {pid}"),
        (pid, name) => format!("the process {pid} ({name})"),
    };
    Obstacle::new(None, format!("{who}, which has a write transaction open in the file"))
}

/// A line such as `1: POSIX  ADVISORY  WRITE 4711 fe:00:1234 120 120`.
fn writer(line: &str, inode: u64) -> Option<u32> {
    let mut words = line.split_whitespace().skip_while(|word| *word != "WRITE").skip(1);
    let pid = words.next()?.parse().ok()?;
    let file = words.next()?.rsplit(':').next()?.parse::<u64>().ok()?;
    let (first, last) = (words.next()?.parse::<u64>().ok()?, words.next()?.parse::<u64>().ok()?);
    (file == inode && (first..=last).contains(&WRITE_LOCK)).then_some(pid)
}

#[cfg(unix)]
fn inode(path: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(path).ok().map(|metadata| metadata.ino())
}

#[cfg(not(unix))]
fn inode(_: &Path) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::writer;

    #[test]
    fn only_the_write_lock_of_this_file_counts() {
        assert_eq!(writer("1: POSIX  ADVISORY  WRITE 4711 fe:00:1234 120 120", 1234), Some(4711));
        for other in [
            "1: POSIX  ADVISORY  WRITE 4711 fe:00:1235 120 120",
            "1: POSIX  ADVISORY  WRITE 4711 fe:00:1234 121 127",
            "1: POSIX  ADVISORY  READ 4711 fe:00:1234 120 120",
            "1: FLOCK  ADVISORY  WRITE 4711 fe:00:1234 0 EOF",
            "1: -> POSIX  ADVISORY  WRITE",
            "",
        ] {
            assert_eq!(writer(other, 1234), None, "{other}");
        }
    }
}
