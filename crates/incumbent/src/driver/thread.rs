//! The two threads of incumbent's own, for all nodes of the process.
//!
//! On one all nodes beat, and all talk to stores happens there. On the other are the runners,
//! which start and end work: what keeps the first from running can't keep them from ending work.
//! Blocked application workers, a busy pool or a slow callback can't starve either, because none
//! of them run here (F17, F31); nor does the application's logging, nor what its values do when
//! they are dropped (O3). They start with the first store that is opened or node that joins, and
//! live as long as the process.

use std::cell::Cell;
use std::future::Future;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use incumbent_core::Moment;
use tokio::runtime::{Builder, Handle};
use tokio::task::{AbortHandle, JoinHandle};

use crate::driver::clock;
use crate::driver::telling;
#[cfg(feature = "testing")]
use crate::testing::{self, Thread};

/// One of the threads, and the runtime on it.
struct Own {
    name: &'static str,
    /// With the process that it belongs to: a forked child has none of its parent's threads.
    runtime: Mutex<Option<(u32, Handle)>>,
}

static BEATS: Own = Own::new("incumbent");
static RUNNERS: Own = Own::new("incumbent-runs");

thread_local! {
    static OWN: Cell<bool> = const { Cell::new(false) };
}

/// How long a wait sleeps at most before it looks at the clock: tokio's timers stand still while
/// the machine sleeps, so they may only wake things up.
const LONGEST: Duration = Duration::from_secs(1);

impl Own {
    const fn new(name: &'static str) -> Self {
        Self { name, runtime: Mutex::new(None) }
    }

    /// The runtime of the thread, which is started if need be.
    fn handle(&self) -> io::Result<Handle> {
        let mut runtime = self.runtime.lock().unwrap_or_else(PoisonError::into_inner);
        let process = std::process::id();
        if let Some((_, handle)) = runtime.as_ref().filter(|(owner, _)| *owner == process) {
            return Ok(handle.clone());
        }
        let started = Builder::new_current_thread()
            .thread_name("incumbent-store")
            .on_thread_unpark(telling::capture)
            .enable_all()
            .build()?;
        let handle = started.handle().clone();
        std::thread::Builder::new().name(self.name.to_owned()).spawn(move || {
            OWN.set(true);
            telling::capture();
            started.block_on(std::future::pending::<()>());
        })?;
        *runtime = Some((process, handle.clone()));
        Ok(handle)
    }
}

/// Starts both threads, so that nothing can fail for want of them later.
pub(crate) fn start() -> io::Result<()> {
    #[cfg(feature = "testing")]
    if testing::here().is_some() {
        return Ok(());
    }
    BEATS.handle()?;
    RUNNERS.handle().map(drop)
}

/// Runs a future on the thread that beats. Only for what talks to a store.
pub(crate) fn spawn<F>(future: F) -> io::Result<JoinHandle<F::Output>>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    #[cfg(feature = "testing")]
    if let Some(here) = testing::here() {
        return Ok(here.spawn(Thread::Beats, future));
    }
    Ok(BEATS.handle()?.spawn(future))
}

/// A future that belongs to the thread that beats, for those who spawn it there themselves.
pub(crate) fn beating<F: Future>(future: F) -> impl Future<Output = F::Output> {
    #[cfg(feature = "testing")]
    let future = testing::Strand::here(Thread::Beats, future);
    future
}

/// Runs a future on the thread of the runners.
pub(crate) fn spawn_runner<F>(future: F) -> io::Result<JoinHandle<F::Output>>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    #[cfg(feature = "testing")]
    if let Some(here) = testing::here() {
        return Ok(here.spawn(Thread::Runners, future));
    }
    Ok(RUNNERS.handle()?.spawn(future))
}

/// Calls something of the application's on a thread of its own, which nothing waits for.
pub(crate) fn apart(name: &str, call: impl FnOnce() + Send + 'static) -> io::Result<()> {
    #[cfg(feature = "testing")]
    if let Some(here) = testing::here() {
        here.apart(call);
        return Ok(());
    }
    std::thread::Builder::new().name(name.to_owned()).spawn(call).map(drop)
}

/// Whether this is one of incumbent's own threads, where nothing of the application's may run.
pub(crate) fn is_own() -> bool {
    #[cfg(feature = "testing")]
    if let Some(here) = testing::here() {
        return here.is_own();
    }
    OWN.get()
}

/// Waits for so long. For futures that run elsewhere, on an executor that may have no timers.
pub(crate) async fn rest(span: Duration) {
    let resting = spawn_runner(async move { sleep_until(clock::now() + span).await });
    match resting {
        // It fails only if the process shuts down. Who stops waiting leaves nothing behind.
        Ok(resting) => {
            let _ends = AbortOnDrop(resting.abort_handle());
            let _ = resting.await;
        }
        // The thread was started when the node joined, so this doesn't happen. Whoever waits for
        // something else too must not spin.
        Err(_) => std::future::pending().await,
    }
}

/// Ends a task with whoever waits for it.
struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Waits for a moment. Only for futures that run on these threads.
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
