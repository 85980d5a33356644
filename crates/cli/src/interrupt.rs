//! Signals that ask this program to end.

use tokio::signal::unix::{SignalKind, signal};

/// Waits for one of them, and names it.
pub(crate) async fn received() -> &'static str {
    tokio::select! {
        () = one(SignalKind::interrupt()) => "SIGINT",
        () = one(SignalKind::terminate()) => "SIGTERM",
        () = one(SignalKind::hangup()) => "SIGHUP",
    }
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
