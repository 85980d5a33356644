//! Where the application's work runs: never on incumbent's own thread.

use std::io;
use std::sync::{Mutex, PoisonError};

use tokio::runtime::{Builder, Handle, Runtime};

/// Serves programs that have no tokio runtime of their own.
static OWN: Mutex<Option<Runtime>> = Mutex::new(None);

/// The runtime of whoever asks, or one that incumbent keeps for those who have none.
pub(crate) fn handle() -> io::Result<Handle> {
    if let Ok(handle) = Handle::try_current() {
        return Ok(handle);
    }
    let mut own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(runtime) = &*own {
        return Ok(runtime.handle().clone());
    }
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("incumbent-work")
        .enable_all()
        .build()?;
    let handle = runtime.handle().clone();
    *own = Some(runtime);
    Ok(handle)
}
