//! Work that runs while a node leads: as a task, or on a thread of its own.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::JoinError;

use crate::driver::foreign::{Foreign, drop_elsewhere};
use crate::driver::mutant::{DriverMutant, planted};
use crate::driver::{panic, thread, workers};
use crate::error::WorkResult;
use crate::lead::scope::Scope;
use crate::lead::term::Term;

/// Something that can be started once for each term, or more often.
pub(crate) trait Job<H>: Send + Sync {
    fn start(&self, handle: H) -> Running;
}

/// What work is given, by which it can be asked whether it still may run.
pub(crate) trait Handed: Clone + Send + 'static {
    fn term(&self) -> &Term;

    /// Work has begun under it.
    fn began(&self) {}

    /// Of this grace period, what the work has now that it is told to end.
    fn grace(&self, grace: Duration) -> Duration;

    /// The work reports no progress and can't be ended: somebody else shall do it.
    fn stuck(&self, error: &str);
}

impl Handed for Term {
    fn term(&self) -> &Term {
        self
    }

    fn grace(&self, grace: Duration) -> Duration {
        // What is stuck has had its time.
        if self.tenure.is_stuck() { Duration::ZERO } else { grace }
    }

    /// Work that can't be aborted is told by this, too.
    fn stuck(&self, _error: &str) {
        self.resign();
    }
}

/// Work that was started, with all that it put under its term. Dropping it aborts the work.
pub(crate) struct Running {
    /// Ready when nothing of it runs any more.
    pub(crate) ended: Pin<Box<dyn Future<Output = End> + Send>>,
    scope: Scope,
    can_abort: bool,
}

/// How work ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It says that it is done, and whether it was still led then: work that stops because it
    /// was told that it leads no more is not done for good.
    Done { led: bool },
    /// It failed, panicked or could not be started, and whether it was still led then: what goes
    /// wrong after the loss says nothing about the work (O9).
    Failed { error: String, led: bool },
    /// It was aborted, or cut off because trust was over.
    Aborted,
    /// The application's runtime was shut down under it.
    RuntimeGone,
}

impl Running {
    fn new<E>(end: E, handed: &Term, can_abort: bool) -> Self
    where
        E: Future<Output = End> + Send + 'static,
    {
        let (scope, term) = (handed.scope.clone(), handed.clone());
        let ended = Box::pin(async move {
            let end = end.await;
            term.scope.closed().await;
            match end {
                // Nobody asked for it. Taken for an end, it would be waited for the loss for ever.
                End::Aborted if term.is_held() => {
                    End::Failed { error: "it was cut off while it led".to_owned(), led: true }
                }
                end => end,
            }
        });
        Self { ended, scope, can_abort }
    }

    /// Aborts the work if it can be; says whether it can.
    pub(crate) fn abort(&self) -> bool {
        if !planted(DriverMutant::AbortForgotten) {
            self.scope.close();
        }
        self.can_abort
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.scope.close();
    }
}

/// Work as a task of the application's runtime.
pub(crate) struct AsyncJob<F: Send + Sync + 'static> {
    work: Foreign<Arc<F>>,
    workers: Handle,
}

impl<F: Send + Sync + 'static> AsyncJob<F> {
    pub(crate) fn new(work: F, workers: Handle) -> Self {
        Self { work: Foreign::new(Arc::new(work)), workers }
    }
}

impl<H, F, Fut> Job<H> for AsyncJob<F>
where
    H: Handed,
    F: Fn(H) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = WorkResult> + Send + 'static,
{
    fn start(&self, handle: H) -> Running {
        let work = self.work.as_ref().cloned();
        let term = handle.term().clone();
        let asked = term.clone();
        let task = workers::spawn(
            &self.workers,
            term.guard(async move {
                let Some(work) = work else { return End::Aborted };
                let future = work(handle.clone());
                // Making it may have taken any time.
                if !handle.term().tenure.is_trusted() {
                    return End::Aborted;
                }
                handle.began();
                let result = future.await;
                drop(work);
                outcome(result, handle.term())
            }),
        );
        let end = async move {
            match task.await {
                Ok(end) => end.unwrap_or(End::Aborted),
                Err(error) => interrupted(error, &asked),
            }
        };
        Running::new(end, &term, true)
    }
}

/// Work that blocks, on a thread of its own each time. It can't be aborted.
pub(crate) struct BlockingJob<F: Send + Sync + 'static> {
    work: Foreign<Arc<F>>,
}

impl<F: Send + Sync + 'static> BlockingJob<F> {
    pub(crate) fn new(work: F) -> Self {
        Self { work: Foreign::new(Arc::new(work)) }
    }
}

impl<H, F> Job<H> for BlockingJob<F>
where
    H: Handed,
    F: Fn(H) -> WorkResult + Send + Sync + 'static,
{
    fn start(&self, handle: H) -> Running {
        let work = self.work.as_ref().cloned();
        let term = handle.term().clone();
        let (ended, end) = oneshot::channel();
        let name = format!("incumbent: {}", term.lease());
        let started = thread::apart(&name, move || {
            let _ = ended.send(run_here(work, &handle));
        });
        let end = async move {
            match started {
                Ok(()) => end.await.unwrap_or(End::Aborted),
                Err(error) => {
                    let error = format!("no thread could be started for it: {error}");
                    End::Failed { error, led: true }
                }
            }
        };
        Running::new(end, &term, false)
    }
}

/// Runs blocking work to its end, unless trust is over before it has begun.
fn run_here<H, F>(work: Option<Arc<F>>, handle: &H) -> End
where
    H: Handed,
    F: Fn(H) -> WorkResult + Send + Sync + 'static,
{
    let Some(work) = work.filter(|_| handle.term().tenure.is_trusted()) else {
        return End::Aborted;
    };
    handle.began();
    let result = panic::contain(|| work(handle.clone()));
    drop_elsewhere(work);
    match result {
        Ok(result) => outcome(result, handle.term()),
        Err(said) => panicked(&said, handle.term()),
    }
}

fn outcome(result: WorkResult, term: &Term) -> End {
    let led = term.is_held();
    match result {
        Ok(()) => End::Done { led },
        Err(error) => End::Failed { error: panic::shown(error), led },
    }
}

fn interrupted(error: JoinError, term: &Term) -> End {
    match error.try_into_panic() {
        Ok(_) if planted(DriverMutant::PanicIsFinal) => End::RuntimeGone,
        Ok(panic) => panicked(&panic::text(panic), term),
        // Nobody aborts the task itself.
        Err(_) => End::RuntimeGone,
    }
}

fn panicked(said: &str, term: &Term) -> End {
    End::Failed { error: format!("it panicked: {said}"), led: term.is_held() }
}
