//! The hook for the loss of a lease.

use std::ffi::OsStr;
use std::time::Duration;

use incumbent::Loss;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};

use super::signals::Signals;

/// The signal that nothing survives.
const KILL: i32 = 9;

/// One word for why a lease was lost, for scripts.
pub(crate) fn reason(loss: Loss) -> &'static str {
    match loss {
        Loss::Closed(state) => state.as_str(),
        Loss::Vanished => "vanished",
        Loss::Superseded => "superseded",
        Loss::Stuck => "stuck",
        Loss::Resigned => "resigned",
        Loss::Withdrawn | Loss::Leaving | Loss::WorkEnded => "given-up",
        // `CannotTell`, `Broken`, and what this program doesn't know yet.
        _ => "unconfirmed",
    }
}

/// A hook that runs, in a process group of its own.
pub(crate) struct Hook(Child);

impl Hook {
    /// Starts it; says what went wrong with that.
    pub(crate) fn start(
        hook: &OsStr,
        variables: &[(String, String)],
        loss: Loss,
    ) -> Result<Self, String> {
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(hook).envs(variables.iter().map(|(name, value)| (name, value)));
        command.env("INCUMBENT_LOST", reason(loss)).env_remove("NOTIFY_SOCKET");
        let child = command.process_group(0).spawn();
        child.map(Self).map_err(|error| format!("the hook of --on-lost can't be run: {error}"))
    }

    /// Waits for its end; says whether a signal asked this process to end meanwhile. Then the hook
    /// gets that signal, and is killed after the grace.
    pub(crate) async fn ended(
        mut self,
        signals: &mut Signals,
        grace: Duration,
    ) -> Result<bool, String> {
        let (status, asked) = tokio::select! {
            status = self.0.wait() => (status, false),
            signal = signals.ending() => {
                self.signal(signal);
                let ended = tokio::time::timeout(grace, self.0.wait()).await;
                let status = match ended {
                    Ok(status) => status,
                    Err(_) => {
                        self.signal(KILL);
                        self.0.wait().await
                    }
                };
                (status, true)
            }
        };
        match status {
            Ok(status) if status.success() || asked => Ok(asked),
            Ok(status) => Err(format!("the hook of --on-lost failed: {status}")),
            Err(error) => Err(format!("the hook of --on-lost can't be waited for: {error}")),
        }
    }

    fn signal(&self, number: i32) {
        let id = self.0.id().and_then(|id| i32::try_from(id).ok());
        if let (Some(group), Some(signal)) =
            (id.and_then(Pid::from_raw), Signal::from_named_raw(number))
        {
            // One that has ended needs none.
            let _ = kill_process_group(group, signal);
        }
    }
}
