//! How many connections there may be: no more than leave files for all else.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// How many connections there are at most.
const CONNECTIONS: usize = 4096;

/// How many files a connection needs at most: a Unix socket has two handles, and one to its process.
pub(crate) const FILES_UNIX: usize = 3;
pub(crate) const FILES_TCP: usize = 1;

/// So many files at least are left for the store, trust files and listeners.
const KEPT: usize = 64;

/// With so many files there is room for all connections.
#[cfg(target_os = "linux")]
const ENOUGH: u64 = 16_384;

/// Lets this process open as many files as all connections need, as far as the system allows it without
/// more rights: the limit that processes usually start with is 1,024.
pub fn raise_file_limit() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        let wanted = maximum.map_or(ENOUGH, |most| most.min(ENOUGH));
        if current.is_some_and(|current| current < wanted) {
            // If it is refused, fewer connections are taken.
            let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum });
        }
    }
}

/// How many files this process may open.
fn limit() -> usize {
    #[cfg(target_os = "linux")]
    if let Some(limit) = rustix::process::getrlimit(rustix::process::Resource::Nofile).current {
        return usize::try_from(limit).unwrap_or(usize::MAX);
    }
    usize::MAX
}

/// All who are connected to this server.
#[derive(Debug, Default)]
pub(crate) struct Crowd {
    connections: AtomicUsize,
    files: AtomicUsize,
    /// It was said that no more are taken.
    said: AtomicBool,
}

/// Somebody who is connected, until this is dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    crowd: Arc<Crowd>,
    files: usize,
}

impl Crowd {
    /// Takes a connection that needs so many files, if there is room for it.
    pub(crate) fn enter(self: &Arc<Self>, files: usize) -> Option<Seat> {
        self.enter_within(files, limit())
    }

    fn enter_within(self: &Arc<Self>, files: usize, limit: usize) -> Option<Seat> {
        let room = limit.saturating_sub(KEPT.max(limit / 4));
        let connections = self.connections.fetch_add(1, Ordering::AcqRel) + 1;
        let open = self.files.fetch_add(files, Ordering::AcqRel) + files;
        let seat = Seat { crowd: Arc::clone(self), files };
        if connections > CONNECTIONS || open > room {
            self.refused(&format!("there are {connections}, and {limit} files may be open"));
            return None;
        }
        if connections <= CONNECTIONS / 2 && open <= room / 2 {
            self.said.store(false, Ordering::Release);
        }
        Some(seat)
    }

    /// Says once that connections aren't taken, until there is much room again.
    pub(crate) fn refused(&self, why: &str) {
        if !self.said.swap(true, Ordering::AcqRel) {
            tracing::warn!(why, action = "accept", "no more connections are accepted");
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.crowd.connections.fetch_sub(1, Ordering::AcqRel);
        self.crowd.files.fetch_sub(self.files, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_left_for_all_else() {
        for (limit, files, most) in [
            (16_384, FILES_UNIX, CONNECTIONS),
            (usize::MAX, FILES_UNIX, CONNECTIONS),
            (1024, FILES_UNIX, 256),
            (1024, FILES_TCP, 768),
            (128, FILES_UNIX, 21),
            (10, FILES_TCP, 0),
        ] {
            let crowd = Arc::new(Crowd::default());
            let mut seats = Vec::new();
            while let Some(seat) = crowd.enter_within(files, limit) {
                seats.push(seat);
            }
            assert_eq!(seats.len(), most, "{limit}");
            // Who leaves makes room for the next.
            if seats.pop().is_some() {
                assert!(crowd.enter_within(files, limit).is_some());
            }
        }
    }
}
