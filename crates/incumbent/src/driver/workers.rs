//! Where the application's work runs: never on incumbent's own thread.

use std::future::Future;
use std::io;
use std::sync::{Mutex, PoisonError};

use tokio::runtime::{Builder, Handle};
use tokio::task::JoinHandle;

/// Serves programs that have no tokio runtime of their own, with the process that it belongs to: a
/// forked child has none of its parent's threads.
static OWN: Mutex<Option<(u32, Handle)>> = Mutex::new(None);

/// Runs something of the application's on its runtime.
pub(crate) fn spawn<F>(workers: &Handle, future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    #[cfg(feature = "testing")]
    if let Some(here) = crate::testing::here() {
        return here.work(future);
    }
    workers.spawn(future)
}

/// The runtime of whoever asks, or one that incumbent keeps for those who have none.
pub(crate) fn handle() -> io::Result<Handle> {
    if let Ok(handle) = Handle::try_current() {
        return Ok(handle);
    }
    let mut own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if let Some((_, handle)) = own.as_ref().filter(|(owner, _)| *owner == process) {
        return Ok(handle.clone());
    }
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("incumbent-work")
        .enable_all()
        .build()?;
    let handle = runtime.handle().clone();
    // It lives as long as the process. A child that dropped it would wait for threads it hasn't got.
    std::mem::forget(runtime);
    *own = Some((process, handle.clone()));
    Ok(handle)
}
