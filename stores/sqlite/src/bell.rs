//! What the watcher's thread sleeps on: the log's inode, a bell that this process rings, and a
//! time-out.
//!
//! SQLite writes the log before a commit can be seen and says nothing afterwards, so a watcher
//! that woke at the write would look too early. Therefore whoever commits a change that others
//! should know of touches the log's times afterwards, and watchers wait for just that. Beats and
//! the application's own writes wake nobody.

pub(crate) use system::{Bell, poke};

#[cfg(target_os = "linux")]
mod system {
    use std::path::Path;
    use std::thread;
    use std::time::Duration;

    use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
    use rustix::fd::OwnedFd;
    use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
    use rustix::fs::{AtFlags, CWD, Timestamps, UTIME_NOW, utimensat};
    use rustix::io::{Errno, read, write};

    use crate::options::HintSource;

    /// How often to look where nothing wakes the watcher.
    const POLL: Duration = Duration::from_millis(50);
    /// How often to look in any case: a writer may die between its commit and its touch.
    const SAFETY: Duration = Duration::from_secs(1);

    pub(crate) struct Bell {
        rung: OwnedFd,
        inotify: Option<OwnedFd>,
    }

    impl Bell {
        /// Fails if the process has no file descriptor left. Without inotify it does with polling.
        pub(crate) fn new(source: HintSource) -> std::io::Result<Self> {
            let rung = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
            let inotify = match source {
                HintSource::Watch => {
                    inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()
                }
                HintSource::Poll => None,
            };
            Ok(Self { rung, inotify })
        }

        /// Waits for touches of this log too, and says how often to look nevertheless.
        pub(crate) fn watch(&self, log: &Path) -> Duration {
            let flags = WatchFlags::ATTRIB | WatchFlags::MOVE_SELF | WatchFlags::DELETE_SELF;
            match &self.inotify {
                Some(inotify) if inotify::add_watch(inotify, log, flags).is_ok() => SAFETY,
                _ => POLL,
            }
        }

        /// Ends a wait, now or the next.
        pub(crate) fn ring(&self) {
            // It fails only if the counter is at its end, and then it rings anyway.
            let _ = write(&self.rung, &1_u64.to_ne_bytes());
        }

        /// Waits for a ring, a touch or the time-out.
        pub(crate) fn wait(&self, longest: Option<Duration>) {
            let mut sources = vec![PollFd::new(&self.rung, PollFlags::IN)];
            sources.extend(self.inotify.as_ref().map(|fd| PollFd::new(fd, PollFlags::IN)));
            let timeout = longest.and_then(|longest| Timespec::try_from(longest).ok());
            match poll(&mut sources, timeout.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                // Nothing is known to cause this, but without a pause it would spin.
                Err(_) => thread::park_timeout(POLL),
            }
            drain(&self.rung);
            if let Some(inotify) = &self.inotify {
                drain(inotify);
            }
        }
    }

    /// What happened is of no interest, only that something did.
    fn drain(fd: &OwnedFd) {
        let mut buffer = [0_u8; 4096];
        while read(fd, &mut buffer).is_ok_and(|count| count == buffer.len()) {}
    }

    /// Wakes all that watch this log. If it fails they find out at their next look.
    pub(crate) fn poke(log: &Path) {
        let now = rustix::fs::Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        let times = Timestamps { last_access: now, last_modification: now };
        let _ = utimensat(CWD, log, &times, AtFlags::empty());
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::path::Path;
    use std::sync::Mutex;
    use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
    use std::time::Duration;

    use incumbent_store_common::locked;

    use crate::options::HintSource;

    pub(crate) struct Bell {
        ring: SyncSender<()>,
        rung: Mutex<Receiver<()>>,
        interval: Duration,
    }

    impl Bell {
        pub(crate) fn new(source: HintSource) -> std::io::Result<Self> {
            let (ring, rung) = sync_channel(1);
            let interval = match source {
                HintSource::Watch => Duration::from_millis(100),
                HintSource::Poll => Duration::from_millis(50),
            };
            Ok(Self { ring, rung: Mutex::new(rung), interval })
        }

        pub(crate) fn watch(&self, _log: &Path) -> Duration {
            self.interval
        }

        pub(crate) fn ring(&self) {
            // A full channel means that it rings already.
            let _ = self.ring.try_send(());
        }

        pub(crate) fn wait(&self, longest: Option<Duration>) {
            let rung = locked(&self.rung);
            let _ = match longest {
                Some(longest) => rung.recv_timeout(longest).ok(),
                None => rung.recv().ok(),
            };
        }
    }

    pub(crate) fn poke(_log: &Path) {}
}
