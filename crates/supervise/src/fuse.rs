//! A timer of the kernel that kills this process, even while it is stopped.

use std::io;
use std::time::Duration;

use nix::sys::signal::{SigEvent, SigevNotify, Signal};
use nix::sys::timer::{Expiration, Timer, TimerSetTimeFlags};
use nix::time::ClockId;

/// Kills this process at a moment, unless it is set again before.
pub(crate) struct Fuse(Timer);

impl Fuse {
    /// A fuse that isn't lit.
    pub(crate) fn new() -> io::Result<Self> {
        let kill = SigevNotify::SigevSignal { signal: Signal::SIGKILL, si_value: 0 };
        Ok(Self(Timer::new(ClockId::CLOCK_BOOTTIME, SigEvent::new(kill))?))
    }

    /// Lights it, or lights it anew, for this moment of the boot-time clock.
    pub(crate) fn light(&mut self, at_ns: u64) -> io::Result<()> {
        // Zero would put it out.
        let at = Expiration::OneShot(Duration::from_nanos(at_ns.max(1)).into());
        Ok(self.0.set(at, TimerSetTimeFlags::TFD_TIMER_ABSTIME)?)
    }
}
