//! The hook for the loss of a lease.

use std::ffi::OsStr;
use std::process::Command;

use incumbent::Loss;

/// One word for why a lease was lost, for scripts.
pub(crate) fn reason(loss: Loss) -> &'static str {
    match loss {
        Loss::CannotTell => "unconfirmed",
        Loss::Closed(state) => state.as_str(),
        Loss::Vanished => "vanished",
        Loss::Superseded => "superseded",
        Loss::Broken => "unconfirmed",
        Loss::Resigned => "resigned",
        Loss::Withdrawn | Loss::Leaving | Loss::WorkEnded => "given-up",
    }
}

/// Runs the hook and waits for it; says what went wrong with it.
pub(crate) fn run_hook(
    hook: &OsStr,
    variables: &[(String, String)],
    loss: Loss,
) -> Result<(), String> {
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(hook).envs(variables.iter().map(|(name, value)| (name, value)));
    command.env("INCUMBENT_LOST", reason(loss)).env_remove("NOTIFY_SOCKET");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("the hook of --on-lost failed: {status}")),
        Err(error) => Err(format!("the hook of --on-lost can't be run: {error}")),
    }
}
