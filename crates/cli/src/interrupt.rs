//! Signals that ask this program to end.

use std::sync::OnceLock;

use tokio::signal::unix::{SignalKind, signal};

/// Waits for one of them, and names it.
pub(crate) async fn received() -> &'static str {
    // Asked before the first of them is caught, for from then on nothing is ignored.
    static NOHUP: OnceLock<bool> = OnceLock::new();
    let nohup = *NOHUP.get_or_init(|| ignored() & (1 << (HANGUP - 1)) != 0);
    tokio::select! {
        () = one(SignalKind::interrupt()) => "SIGINT",
        () = one(SignalKind::terminate()) => "SIGTERM",
        () = one(SignalKind::hangup()), if !nohup => "SIGHUP",
    }
}

/// SIGHUP.
const HANGUP: u32 = 1;

/// The signals that this process ignores, one a bit: under `nohup` it was told to ignore SIGHUP.
pub(crate) fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

async fn one(kind: SignalKind) {
    match signal(kind) {
        Ok(mut signal) => {
            signal.recv().await;
        }
        // A system that can't tell ends the process by itself.
        Err(_) => std::future::pending().await,
    }
}
