//! One term: the command runs while the lease is held.

use std::time::Duration;

use incumbent::{Leadership, Loss, Moment};
use incumbent_supervise::{Ending, Guard, Status};

use super::signals::{Signals, ends};
use super::watchdog::{self, Watchdog};

/// The signal that asks a command to end.
const TERMINATE: i32 = 15;
/// The signal that nothing survives.
const KILL: i32 = 9;

/// How a term ended. Nothing of the command is left.
pub(crate) struct Over {
    /// How the command ended.
    pub(crate) ending: Ending,
    /// Why the lease was lost, if that came first.
    pub(crate) lost: Option<Loss>,
    /// This process was asked to end by a signal, before or after that.
    pub(crate) asked: bool,
    /// The command was told that trust is about to end, but it didn't: a beat got through after all.
    pub(crate) warned: bool,
}

/// Waits for the end of a command that was started, and ends it if need be.
pub(crate) async fn hold(
    leadership: &Leadership,
    guard: &mut Guard,
    signals: &mut Signals,
    grace: Duration,
    watchdog: Option<&Watchdog>,
) -> Over {
    // No deadline is that, so the first is told again: it may have changed since the start.
    let mut told = Moment::NEVER;
    let mut lost = None;
    // Whether a signal asked to end, and whether the lease was still ours then.
    let (mut asked, mut asked_first) = (false, false);
    loop {
        tokio::select! {
            ending = guard.ended() => {
                // A guardian that was stopped is killed by its fuse, and can't say why.
                let killed = matches!(ending.status, Status::Killed(KILL));
                let overdue = ending.overdue || (killed && !leadership.is_held());
                let overdue = overdue.then_some(Loss::CannotTell);
                // Who was asked to end by a signal has ended because of that.
                let lost = lost.or(overdue).filter(|_| !asked_first);
                let warned = ending.warned;
                return Over { ending, lost, asked, warned };
            }
            signal = signals.next() => {
                if ends(signal) {
                    asked_first |= !asked && lost.is_none();
                    asked = true;
                    guard.stop(signal, grace);
                } else {
                    guard.signal(signal);
                }
            }
            end = leadership.lost(), if lost.is_none() => {
                lost = Some(end.why);
                if end.abrupt {
                    guard.kill();
                } else {
                    // Beats go on, so there is time to end in order.
                    guard.stop(TERMINATE, grace);
                }
            }
            () = watchdog::silent(watchdog), if lost.is_none() && !asked => {
                lost = Some(Loss::Stuck);
                guard.kill();
            }
            // Told at once, whatever else goes on: the guardian ends what it thinks is overdue.
            until = leadership.trust_changed(told), if told != Moment::START => {
                told = until;
                guard.extend(until);
            }
        }
    }
}
