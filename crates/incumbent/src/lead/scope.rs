//! What runs under a term, so that all of it ends with the term and before its lease is freed.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use tokio_util::sync::{CancellationToken, DropGuard, WaitForCancellationFutureOwned};

use crate::driver::mutant::{DriverMutant, planted};
use crate::lead::futures::Futures;
use crate::lead::hold::Hold;
use crate::lead::tenure::Tenure;

/// One run of some work: all futures that belong to it. Clones are handles to the same run.
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    tenure: Arc<Tenure>,
    /// Gone once the work under the term has ended.
    hold: Weak<Hold>,
    /// Nothing where the run is all of the work under the term.
    part: Option<Arc<Part>>,
}

/// One of several runs under a term.
#[derive(Debug)]
struct Part {
    /// Fires when the run is over.
    closing: CancellationToken,
    /// How many futures there are.
    futures: Arc<Futures>,
}

impl Scope {
    /// The work under a term, for whoever has a handle to it.
    pub(crate) fn new(tenure: &Arc<Tenure>, hold: Weak<Hold>) -> Self {
        Self { tenure: Arc::clone(tenure), hold, part: None }
    }

    /// A run of its own under the same term.
    pub(crate) fn anew(&self) -> Self {
        let part = Part { closing: self.tenure.abort_token(), futures: Arc::default() };
        Self { part: Some(Arc::new(part)), ..self.clone() }
    }

    fn closing(&self) -> &CancellationToken {
        self.part.as_ref().map_or_else(|| self.tenure.closing(), |part| &part.closing)
    }

    fn futures(&self) -> &Arc<Futures> {
        self.part.as_ref().map_or_else(|| self.tenure.futures(), |part| &part.futures)
    }

    /// Ends all that runs in it, at the next `await` of each.
    pub(crate) fn close(&self) {
        match &self.part {
            Some(part) => part.closing.cancel(),
            None => self.tenure.close(),
        }
    }

    /// Ends all that runs in it when this is dropped.
    pub(crate) fn close_on_drop(&self) -> DropGuard {
        self.closing().clone().drop_guard()
    }

    /// Ends all that runs in it, and waits until nothing does.
    pub(crate) async fn closed(&self) {
        self.close();
        self.futures().over().await;
    }

    pub(crate) fn guard<F: Future>(&self, future: F) -> Guarded<F> {
        let place = self.hold.upgrade().map(|hold| HeldOpen::new(hold, Arc::clone(self.futures())));
        let future = place.is_some().then(|| Box::pin(future));
        let closing = Box::pin(self.closing().clone().cancelled_owned());
        Guarded { future, closing, tenure: Arc::clone(&self.tenure), place }
    }
}

/// A future that takes no step once its term is trusted no more; see
/// [`Term::guard`](crate::Term::guard). Nothing comes out of one that was cut off.
#[must_use = "futures do nothing unless they are polled"]
pub struct Guarded<F: Future> {
    // The order matters: what it is made of is dropped before anybody may think that it is gone.
    future: Option<Pin<Box<F>>>,
    closing: Pin<Box<WaitForCancellationFutureOwned>>,
    tenure: Arc<Tenure>,
    place: Option<HeldOpen>,
}

impl<F: Future> Future for Guarded<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let guarded = &mut *self;
        // Taken out, so that it is gone in any case where it isn't put back: also by a panic.
        let Some(mut future) = guarded.future.take() else { return Poll::Ready(None) };
        let closed = guarded.closing.as_mut().poll(context).is_ready();
        // The clock is compared last, so that nothing comes between this and the step.
        let trusted = guarded.tenure.is_trusted() || planted(DriverMutant::GuardSkipsTrust);
        let polled = if !closed && trusted {
            match future.as_mut().poll(context) {
                Poll::Pending => {
                    guarded.future = Some(future);
                    return Poll::Pending;
                }
                Poll::Ready(output) => Some(output),
            }
        } else {
            None
        };
        drop(future);
        guarded.place = None;
        Poll::Ready(polled)
    }
}

impl<F: Future> std::fmt::Debug for Guarded<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Guarded");
        shown.field("lease", &self.tenure.lease).field("term", &self.tenure.term);
        shown.finish_non_exhaustive()
    }
}

/// Keeps the lease from being freed, and is counted.
struct HeldOpen {
    _hold: Arc<Hold>,
    futures: Arc<Futures>,
}

impl HeldOpen {
    fn new(hold: Arc<Hold>, futures: Arc<Futures>) -> Self {
        futures.begin();
        Self { _hold: hold, futures }
    }
}

impl Drop for HeldOpen {
    fn drop(&mut self) {
        self.futures.end();
    }
}
