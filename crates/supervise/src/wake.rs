//! What a process without threads waits for.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use crate::channel::Channel;

/// Ends of children, and one alarm on the clock that goes on while the machine sleeps. All other
/// signals but SIGKILL and SIGSTOP are shut out: this process ends when its work is done.
pub(crate) struct Wake {
    children: SignalFd,
    alarm: OwnedFd,
}

/// What has happened.
pub(crate) struct Woken {
    pub(crate) first: bool,
    pub(crate) second: bool,
}

impl Wake {
    pub(crate) fn new() -> io::Result<Self> {
        SigSet::all().thread_block()?;
        let mut ends = SigSet::empty();
        ends.add(Signal::SIGCHLD);
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        let children = SignalFd::with_flags(&ends, flags)?;
        let alarm = timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::CLOEXEC)?;
        Ok(Self { children, alarm })
    }

    /// Waits for a child, for the moment, or for one of the channels to have something.
    pub(crate) fn wait(
        &self,
        until_ns: Option<u64>,
        first: &Channel,
        second: Option<&Channel>,
    ) -> io::Result<Woken> {
        self.set_alarm(until_ns)?;
        let mut polled = vec![
            PollFd::new(first, PollFlags::IN),
            PollFd::new(&self.children, PollFlags::IN),
            PollFd::new(&self.alarm, PollFlags::IN),
        ];
        polled.extend(second.map(|second| PollFd::from_borrowed_fd(second.as_fd(), PollFlags::IN)));
        match poll(&mut polled, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready = |at: usize| polled.get(at).is_some_and(|one| !one.revents().is_empty());
        let woken = Woken { first: ready(0), second: ready(3) };
        // Which child it was is found out by reaping.
        while let Ok(Some(_)) = self.children.read_signal() {}
        Ok(woken)
    }

    fn set_alarm(&self, at_ns: Option<u64>) -> io::Result<()> {
        // Zero would mean no alarm.
        let at = at_ns.map_or(0, |at| at.max(1));
        let spec = |ns: u64| Timespec {
            tv_sec: i64::try_from(ns / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(ns % 1_000_000_000).unwrap_or(0),
        };
        let alarm = Itimerspec { it_interval: spec(0), it_value: spec(at) };
        timerfd_settime(&self.alarm, TimerfdTimerFlags::ABSTIME, &alarm)?;
        Ok(())
    }
}
