//! The process that closes the member of a dead holder in the store, for those who can't see from
//! where they are that it is dead.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{ExitCode, Stdio};

use incumbent::witness;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{PidfdFlags, getppid, pidfd_open};

use crate::channel::Channel;
use crate::launch;
use crate::message::{Order, Ward};

/// A holder that is dying may need a moment to be dead.
const MOMENT: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };

/// The process that started this one, so that its death can be proven.
pub(crate) fn parent() -> io::Result<OwnedFd> {
    let gone = || io::Error::other("the holder is gone");
    let before = getppid().ok_or_else(gone)?;
    let parent = pidfd_open(before, PidfdFlags::empty())?;
    // The parent before and after, so it is the parent's and no stranger's.
    if getppid() == Some(before) { Ok(parent) } else { Err(gone()) }
}

/// Leaves it to another process to close the member of this holder. To be called when nothing is
/// left of what the holder has run.
pub(crate) fn entrust(ward: &Ward, holder: &OwnedFd, mark: &str) -> io::Result<()> {
    let (channel, end) = Channel::pair()?;
    let mut trustee = launch::own_program(crate::TRUSTEE);
    trustee
        .arg(mark)
        .stdin(launch::speaks_through(end))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    trustee.spawn()?;
    channel.send_with(&Order::Entrust(ward.clone()), Some(holder.as_fd()))
}

/// Closes the member, if the holder is surely dead.
pub(crate) fn run(arguments: &[OsString]) -> ExitCode {
    let Ok(guardian) = Channel::inherited() else {
        eprintln!("incumbent: this is started by `incumbent run` and by nobody else");
        return ExitCode::from(64);
    };
    let _ = rustix::thread::set_name(c"incumbent-close");
    let Ok(Some((Order::Entrust(ward), Some(holder)))) = guardian.receive() else {
        return ExitCode::FAILURE;
    };
    let mut polled = [PollFd::new(&holder, PollFlags::IN)];
    let told = poll(&mut polled, Some(&MOMENT));
    let dead = polled.iter().any(|one| one.revents().contains(PollFlags::IN));
    let Ward { url, cluster, member } = ward;
    let proven = told.is_ok() && dead;
    let closed = proven && witness::close(&witness::Ward { url, cluster, member }).is_ok();
    // Whoever watched has seen the mark by now; who comes later waits the ttl at worst.
    for mark in arguments {
        let _ = std::fs::remove_file(mark);
    }
    if closed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
