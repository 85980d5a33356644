//! Work that runs while a node leads: as a task, or on a thread of its own.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, JoinError};

use crate::error::WorkResult;
use crate::term::Term;

/// Something that can be started once for each term, or more often.
pub(crate) trait Job<H>: Send + Sync {
    fn start(&self, handle: H) -> Running;
}

/// What work is given, by which it can be asked whether it still may run.
pub(crate) trait Handed: Clone + Send + 'static {
    fn term(&self) -> &Term;

    /// Work has begun under it.
    fn began(&self) {}
}

impl Handed for Term {
    fn term(&self) -> &Term {
        self
    }
}

/// Work that was started.
pub(crate) struct Running {
    pub(crate) ended: Pin<Box<dyn Future<Output = End> + Send>>,
    abort: Option<AbortHandle>,
}

/// How work ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It says that it is done, and whether it was still led then: work that stops because it
    /// was told that it leads no more is not done for good.
    Done { led: bool },
    /// It failed, panicked or could not be started.
    Failed(String),
    /// It was aborted.
    Aborted,
    /// The application's runtime was shut down under it.
    RuntimeGone,
}

impl Running {
    /// Aborts the work if it can be; says whether it can.
    pub(crate) fn abort(&self) -> bool {
        self.abort.as_ref().map(AbortHandle::abort).is_some()
    }
}

/// Work as a task of the application's runtime.
pub(crate) struct Task<F: Send + Sync + 'static> {
    work: Option<Arc<F>>,
    workers: Handle,
}

impl<F: Send + Sync + 'static> Task<F> {
    pub(crate) fn new(work: F, workers: Handle) -> Self {
        Self { work: Some(Arc::new(work)), workers }
    }
}

impl<H, F, Fut> Job<H> for Task<F>
where
    H: Handed,
    F: Fn(H) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = WorkResult> + Send + 'static,
{
    fn start(&self, handle: H) -> Running {
        let work = self.work.clone();
        let task = self.workers.spawn(async move {
            let Some(work) = work else { return End::Aborted };
            let future = work(handle.clone());
            handle.began();
            let result = future.await;
            drop(work);
            outcome(result, handle.term())
        });
        let abort = Some(task.abort_handle());
        let ended = Box::pin(async move { task.await.unwrap_or_else(interrupted) });
        Running { ended, abort }
    }
}

impl<F: Send + Sync + 'static> Drop for Task<F> {
    fn drop(&mut self) {
        // What the closure captured belongs to the application, and so does dropping it.
        let work = self.work.take();
        self.workers.spawn(async move { drop(work) });
    }
}

/// Work that blocks, on a thread of its own each time. It can't be aborted.
pub(crate) struct Thread<F> {
    work: Arc<F>,
}

impl<F> Thread<F> {
    pub(crate) fn new(work: F) -> Self {
        Self { work: Arc::new(work) }
    }
}

impl<H, F> Job<H> for Thread<F>
where
    H: Handed,
    F: Fn(H) -> WorkResult + Send + Sync + 'static,
{
    fn start(&self, handle: H) -> Running {
        let work = Arc::clone(&self.work);
        let (ended, end) = oneshot::channel();
        let name = format!("incumbent: {}", handle.term().lease());
        let started = std::thread::Builder::new().name(name).spawn(move || {
            handle.began();
            let result = catch_unwind(AssertUnwindSafe(|| work(handle.clone())));
            drop(work);
            let end = match result {
                Ok(result) => outcome(result, handle.term()),
                Err(panic) => End::Failed(panic_text(&*panic)),
            };
            let _ = ended.send(end);
        });
        let ended = Box::pin(async move {
            match started {
                Ok(_) => end.await.unwrap_or(End::Aborted),
                Err(error) => End::Failed(format!("no thread could be started for it: {error}")),
            }
        });
        Running { ended, abort: None }
    }
}

fn outcome(result: WorkResult, term: &Term) -> End {
    match result {
        Ok(()) => End::Done { led: term.is_held() },
        Err(error) => End::Failed(error.to_string()),
    }
}

fn interrupted(error: JoinError) -> End {
    match error.try_into_panic() {
        Ok(panic) => End::Failed(panic_text(&*panic)),
        // The runner turns this into an abort where it asked for one.
        Err(_) => End::RuntimeGone,
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned());
    format!("it panicked: {}", text.unwrap_or_else(|| "without a message".to_owned()))
}
