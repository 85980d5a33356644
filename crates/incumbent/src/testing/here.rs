//! Where in a world a piece of code runs: in which process, and on which of its threads.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use incumbent_core::Moment;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::Sleep;

use super::aside::Aside;
use super::process::Inside;
use super::world::Space;

/// A thread of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Thread {
    /// The one on which nodes beat, and on which all talk to stores happens.
    Beats,
    /// The one that starts and ends work.
    Runners,
    /// The application's runtime.
    Work,
    /// One of those that a single call has for itself: a placement, a drop, blocking work.
    Apart,
}

impl Thread {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Beats, Self::Runners, Self::Work, Self::Apart];
}

/// The place that code runs at.
#[derive(Clone)]
pub(crate) struct Here {
    pub(super) space: Arc<Space>,
    pub(super) process: Arc<Inside>,
    pub(super) thread: Thread,
}

thread_local! {
    static HERE: RefCell<Option<Here>> = const { RefCell::new(None) };
}

/// Where this code runs; nothing outside of a world.
pub(crate) fn here() -> Option<Here> {
    HERE.with_borrow(Clone::clone)
}

/// What time it is here; nothing outside of a world.
#[inline]
pub(crate) fn now() -> Option<Moment> {
    HERE.with_borrow(|here| here.as_ref().map(|here| here.process.moment(here.space.instant())))
}

/// What the wall clock shows here; nothing outside of a world.
pub(crate) fn wall_ms() -> Option<u64> {
    HERE.with_borrow(|here| here.as_ref().map(|here| here.process.wall_ms(here.space.instant())))
}

/// Draws from the world's seed; nothing outside of a world.
pub(crate) fn draw() -> Option<u64> {
    HERE.with_borrow(|here| here.as_ref().map(|here| here.space.draw(|random| random.number())))
}

/// Sets where this code runs, until it is dropped.
#[derive(Debug)]
pub(crate) struct Entered(Option<Option<Here>>);

impl Entered {
    pub(super) fn at(here: Here) -> Self {
        Self(Some(HERE.replace(Some(here))))
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        if let Some(former) = self.0.take() {
            HERE.set(former);
        }
    }
}

/// The process that something was made in, so that what it starts later belongs there too.
#[derive(Clone, Default)]
pub(crate) struct Home(Option<Here>);

impl Home {
    pub(crate) fn here() -> Self {
        Self(here())
    }

    /// Until the result is dropped, this code runs in that process.
    pub(crate) fn enter(&self) -> Entered {
        match &self.0 {
            Some(home) => Entered::at(Here { thread: Thread::Work, ..home.clone() }),
            None => Entered(None),
        }
    }
}

impl std::fmt::Debug for Home {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Home").field(&self.0.as_ref().map(|home| &home.process.name)).finish()
    }
}

impl std::fmt::Debug for Here {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Here").field(&self.process.name).field(&self.thread).finish()
    }
}

impl Here {
    /// Runs a future on a thread of this process.
    pub(crate) fn spawn<F>(&self, thread: Thread, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.space.runtime().spawn(Strand::new(Self { thread, ..self.clone() }, future))
    }

    /// Runs a future of the application's, which may block if this process says so.
    pub(crate) fn work<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        if !self.process.may_block.load(Ordering::Relaxed) {
            return self.spawn(Thread::Work, future);
        }
        let home = Self { thread: Thread::Work, ..self.clone() };
        self.spawn(Thread::Work, Aside::future(home, future))
    }

    /// Calls something on a thread of its own.
    pub(crate) fn apart(&self, call: impl FnOnce() + Send + 'static) {
        let home = Self { thread: Thread::Apart, ..self.clone() };
        // A panic there is nobody's but its own.
        drop(self.spawn(Thread::Apart, Aside::call(home, call)));
    }

    /// Whether this is one of incumbent's own threads.
    pub(crate) fn is_own(&self) -> bool {
        matches!(self.thread, Thread::Beats | Thread::Runners)
    }
}

/// A future on a thread of a process: it is polled there, and only while that thread runs.
pub(crate) struct Strand<F: Future> {
    here: Option<Here>,
    /// Emptied where it ended or its process did.
    future: Option<Pin<Box<F>>>,
    waiting: Option<Pin<Box<Sleep>>>,
    counted: bool,
}

impl<F: Future> Strand<F> {
    pub(super) fn new(here: Here, future: F) -> Self {
        here.process.count(here.thread, 1);
        Self { here: Some(here), future: Some(Box::pin(future)), waiting: None, counted: true }
    }

    /// Of the process that this is called in; outside of a world, the future as it is.
    pub(crate) fn here(thread: Thread, future: F) -> Self {
        match here() {
            Some(here) => Self::new(Here { thread, ..here }, future),
            None => {
                Self { here: None, future: Some(Box::pin(future)), waiting: None, counted: false }
            }
        }
    }

    /// Waits while the thread stands still; says whether it runs.
    fn runs(&mut self, here: &Here, context: &mut Context<'_>) -> bool {
        loop {
            if here.process.is_dead() {
                return false;
            }
            if let Some(waiting) = &mut self.waiting {
                if waiting.as_mut().poll(context).is_pending() {
                    return false;
                }
                self.waiting = None;
                // A moment of hesitation is over; whether the thread stands still is asked anew.
                if here.process.stands_still(here.thread, here.space.instant()).is_none() {
                    return true;
                }
            }
            let still = here.process.stands_still(here.thread, here.space.instant());
            match still.or_else(|| here.hesitation()) {
                Some(span) => self.waiting = Some(Box::pin(tokio::time::sleep(span))),
                None => return true,
            }
        }
    }
}

impl Here {
    /// Now and then a task isn't polled at once although it was woken.
    fn hesitation(&self) -> Option<Duration> {
        let odds = self.process.hesitates.load(Ordering::Relaxed);
        if odds == 0 {
            return None;
        }
        self.space.draw(|random| {
            (random.below(1000) < odds).then(|| Duration::from_millis(1 + random.below(8)))
        })
    }
}

impl<F: Future> Future for Strand<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        let Some(here) = this.here.clone() else {
            return match &mut this.future {
                Some(future) => future.as_mut().poll(context),
                None => Poll::Pending,
            };
        };
        if !this.runs(&here, context) {
            return Poll::Pending;
        }
        let Some(future) = &mut this.future else { return Poll::Pending };
        let entered = Entered::at(here.clone());
        let polled = future.as_mut().poll(context);
        if polled.is_ready() {
            // Dropped where it ran.
            this.future = None;
        }
        drop(entered);
        here.space.polled(&here);
        polled
    }
}

impl<F: Future> Drop for Strand<F> {
    fn drop(&mut self) {
        let Some(here) = self.here.take() else { return };
        if let Some(future) = self.future.take() {
            let _entered = Entered::at(here.clone());
            drop(future);
        }
        if self.counted {
            here.process.count(here.thread, -1);
        }
    }
}

/// Blocks the thread that this is called on for so long, in the time of the world.
///
/// For code of the application's that is tested with what blocks: placements, `Drop`, blocking work,
/// and futures of a process that [may block](super::Process::allow_blocking). Elsewhere in a world it has
/// no effect, because nothing could go on meanwhile.
pub fn block(span: Duration) {
    super::aside::block(span);
}

/// The runtime that this code runs on.
pub(super) fn runtime() -> Option<Handle> {
    Handle::try_current().ok()
}
