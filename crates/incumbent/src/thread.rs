//! The one thread on which all nodes of the process beat.
//!
//! Blocked application workers, a busy pool or a slow callback can't starve it, because none of
//! them run here (F17, F31). It starts with the first store that is opened or node that joins,
//! and lives as long as the process.

use std::future::Future;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use incumbent_core::Moment;
use tokio::runtime::{Builder, Handle};
use tokio::task::JoinHandle;

use crate::clock;

static THREAD: Mutex<Option<Handle>> = Mutex::new(None);

/// How long a wait sleeps at most before it looks at the clock: tokio's timers stand still while
/// the machine sleeps, so they may only wake things up.
const LONGEST: Duration = Duration::from_secs(1);

/// The runtime of the thread, which is started if need be.
pub(crate) fn handle() -> io::Result<Handle> {
    let mut thread = THREAD.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(handle) = &*thread {
        return Ok(handle.clone());
    }
    let runtime =
        Builder::new_current_thread().thread_name("incumbent-store").enable_all().build()?;
    let handle = runtime.handle().clone();
    std::thread::Builder::new()
        .name("incumbent".to_owned())
        .spawn(move || runtime.block_on(std::future::pending::<()>()))?;
    *thread = Some(handle.clone());
    Ok(handle)
}

/// Runs a future on the thread.
pub(crate) fn spawn<F>(future: F) -> io::Result<JoinHandle<F::Output>>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    Ok(handle()?.spawn(future))
}

/// Waits for a moment. Only for futures that run on the thread.
pub(crate) async fn sleep_until(at: Moment) {
    loop {
        let now = clock::now();
        if now >= at {
            return;
        }
        // At least a millisecond, because timers are no finer and a zero would spin.
        let left = at.since(now).clamp(Duration::from_millis(1), LONGEST);
        tokio::time::sleep(left).await;
    }
}
