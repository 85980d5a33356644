//! Watching processes until they are surely dead.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;

use incumbent_core::records::{Evidence, HostIdentity, Mark, ProcessEvidence};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::gather;
use crate::node::host;

/// What is known about the processes of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeathVerdict {
    /// None of them is left, and all that was below them has ended too.
    Dead,
    /// Nothing can be concluded, now or later.
    Unknown,
}

/// Waits until all processes of a member are dead; says at once if that can't be known here.
/// Only for futures that run on incumbent's threads.
pub(crate) async fn death(host: &HostIdentity) -> DeathVerdict {
    let Some(evidence) = host.evidence.as_ref().filter(|evidence| is_here(host, evidence)) else {
        return DeathVerdict::Unknown;
    };
    // All are opened before any is waited for: as long as they live, their numbers are theirs.
    let mut living = Vec::new();
    for process in &evidence.processes {
        match sight(process) {
            ProcessSight::Dead => {}
            ProcessSight::Alive(pidfd) => living.push(pidfd),
            ProcessSight::Unknown => return DeathVerdict::Unknown,
        }
    }
    for pidfd in living {
        if !ended(pidfd).await {
            return DeathVerdict::Unknown;
        }
    }
    if evidence.mark.as_ref().is_none_or(is_left) {
        DeathVerdict::Dead
    } else {
        DeathVerdict::Unknown
    }
}

/// Whether the numbers in the evidence mean here what they meant where it was written.
fn is_here(host: &HostIdentity, evidence: &Evidence) -> bool {
    let boot = host::boot().is_some_and(|boot| !boot.is_empty() && boot == host.boot);
    let (pid, time) = (evidence.pid_namespace, evidence.time_namespace);
    boot && !evidence.processes.is_empty()
        && gather::namespaces().ok() == Some((pid, time))
        && is_no_copy(host, evidence)
}

/// Whether this is the very machine, and no copy of it: one that was copied while it ran has the
/// same boot id and the same namespaces, and there a process that is missing may live on in the
/// original (O7).
fn is_no_copy(host: &HostIdentity, evidence: &Evidence) -> bool {
    let cards = evidence.cards.is_some() && evidence.cards == gather::cards().ok();
    // A second more, because one is rounded down.
    let now = gather::uptime().map_or(0, |uptime| uptime.saturating_add(100));
    let started = evidence.processes.iter().all(|process| process.start <= now);
    cards && started && host.host == host::name()
}

enum ProcessSight {
    Alive(OwnedFd),
    Dead,
    Unknown,
}

fn sight(process: &ProcessEvidence) -> ProcessSight {
    let pidfd = match open(process.pid) {
        Ok(pidfd) => pidfd,
        // In this very namespace no process has that number.
        Err(Errno::SRCH) => return ProcessSight::Dead,
        Err(_) => return ProcessSight::Unknown,
    };
    // A process that can't be seen below /proc may only be hidden, and one that looks otherwise
    // may be another: neither says anything about the one that is meant.
    let same = rustix::fs::fstat(&pidfd).is_ok_and(|stat| stat.st_ino == process.inode)
        && gather::start(process.pid).is_ok_and(|start| start == process.start);
    if same { ProcessSight::Alive(pidfd) } else { ProcessSight::Unknown }
}

/// A handle to a process, which keeps meaning that process.
pub(super) fn open(pid: u32) -> Result<OwnedFd, Errno> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(Errno::INVAL)?;
    pidfd_open(pid, PidfdFlags::empty())
}

/// Waits for the end of a process with all its threads; a zombie is one that has ended.
async fn ended(pidfd: OwnedFd) -> bool {
    #[allow(
        deprecated,
        reason = "an OwnedFd is one open descriptor for all its life, which is all \
                                  that the newer and unsafe function asks for"
    )]
    let Ok(pidfd) = AsyncFd::with_interest(pidfd, Interest::READABLE) else { return false };
    loop {
        let Ok(mut ready) = pidfd.readable().await else { return false };
        // Readiness may be told in error, so the kernel is asked.
        match is_readable(pidfd.get_ref()) {
            Ok(true) => return true,
            Ok(false) => ready.clear_ready(),
            Err(_) => return false,
        }
    }
}

fn is_readable(pidfd: &OwnedFd) -> io::Result<bool> {
    let mut polled = [PollFd::new(pidfd, PollFlags::IN)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut polled, Some(&at_once))?;
    Ok(polled.iter().any(|one| one.revents().contains(PollFlags::IN)))
}

/// Whether the mark is there, a plain file of the right owner.
fn is_left(mark: &Mark) -> bool {
    std::fs::symlink_metadata(&mark.path)
        .is_ok_and(|metadata| metadata.is_file() && metadata.uid() == mark.owner)
}

#[cfg(test)]
#[path = "proof_tests.rs"]
mod tests;
