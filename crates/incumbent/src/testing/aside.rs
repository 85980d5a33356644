//! Code that blocks, on a thread of its own that takes turns with the world: only one of them runs
//! at any time, so that a run can be repeated from its seed.

use std::any::Any;
use std::cell::RefCell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::time::Sleep;

use super::here::{Entered, Here};

/// Whose turn it is.
#[derive(Debug)]
enum Turn {
    /// The other thread's.
    Aside,
    /// The world's, until this span is over.
    Blocked(Duration),
    /// The world's, until the future is woken.
    Parked,
    /// The other thread has ended.
    Over,
    /// The world has ended: the other thread runs to its end by itself.
    Alone,
}

struct Turns {
    turn: Mutex<Turn>,
    changed: Condvar,
    waker: Mutex<Option<Waker>>,
}

thread_local! {
    static TURNS: RefCell<Option<Arc<Turns>>> = const { RefCell::new(None) };
}

impl Turns {
    /// Gives the turn away, and waits until it comes back or the world has ended.
    fn give(&self, turn: Turn) {
        let mut now = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*now, Turn::Alone) {
            return;
        }
        *now = turn;
        self.changed.notify_all();
        while !matches!(*now, Turn::Aside | Turn::Alone) {
            now = self.changed.wait(now).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn is_alone(&self) -> bool {
        matches!(*self.turn.lock().unwrap_or_else(PoisonError::into_inner), Turn::Alone)
    }
}

/// Blocks the calling thread for a span of the world's time, if it takes turns.
pub(super) fn block(span: Duration) {
    let turns = TURNS.with_borrow(Clone::clone);
    if let Some(turns) = turns {
        turns.give(Turn::Blocked(span));
    }
}

/// What came of it, or what it panicked with.
type Ended<T> = Result<T, Box<dyn Any + Send>>;

/// What runs on the other thread, as a future of the world.
pub(super) struct Aside<T> {
    turns: Arc<Turns>,
    start: Option<Box<dyn FnOnce() + Send>>,
    ended: Arc<Mutex<Option<Ended<T>>>>,
    thread: Option<std::thread::JoinHandle<()>>,
    sleeping: Option<Pin<Box<Sleep>>>,
    /// It may have been woken while it blocked.
    blocked: bool,
}

impl<T: Send + 'static> Aside<T> {
    fn new(home: Here, run: impl FnOnce(&Turns) -> Option<T> + Send + 'static) -> Self {
        let turns = Arc::new(Turns {
            turn: Mutex::new(Turn::Aside),
            changed: Condvar::new(),
            waker: Mutex::new(None),
        });
        let ended = Arc::new(Mutex::new(None));
        let start = {
            let (turns, ended) = (Arc::clone(&turns), Arc::clone(&ended));
            move || {
                let runtime = home.space.runtime();
                let _runtime = runtime.enter();
                let _entered = Entered::at(home);
                TURNS.set(Some(Arc::clone(&turns)));
                let result = catch_unwind(AssertUnwindSafe(|| run(&turns)));
                let result = result.map_or_else(|panic| Some(Err(panic)), |end| end.map(Ok));
                *ended.lock().unwrap_or_else(PoisonError::into_inner) = result;
                let mut turn = turns.turn.lock().unwrap_or_else(PoisonError::into_inner);
                if !matches!(*turn, Turn::Alone) {
                    *turn = Turn::Over;
                }
                turns.changed.notify_all();
            }
        };
        Self {
            turns,
            start: Some(Box::new(start)),
            ended,
            thread: None,
            sleeping: None,
            blocked: false,
        }
    }

    /// Polls a future there, each time that it is woken.
    pub(super) fn future<F>(home: Here, future: F) -> Self
    where
        F: Future<Output = T> + Send + 'static,
    {
        Self::new(home, move |turns| {
            let mut future = Box::pin(future);
            while !turns.is_alone() {
                let waker = turns.waker.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let waker = waker.unwrap_or_else(|| Waker::noop().clone());
                if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker))
                {
                    return Some(output);
                }
                turns.give(Turn::Parked);
            }
            None
        })
    }

    /// Has its turn until the other thread blocks, waits or ends.
    fn turn(&mut self) -> Turn {
        if let Some(start) = self.start.take() {
            let name = "incumbent-aside".to_owned();
            match std::thread::Builder::new().name(name).spawn(start) {
                Ok(thread) => self.thread = Some(thread),
                // It never runs, as if its machine had no room for it.
                Err(_) => return Turn::Parked,
            }
        } else {
            let mut turn = self.turns.turn.lock().unwrap_or_else(PoisonError::into_inner);
            *turn = Turn::Aside;
            self.turns.changed.notify_all();
        }
        let mut turn = self.turns.turn.lock().unwrap_or_else(PoisonError::into_inner);
        while matches!(*turn, Turn::Aside) {
            turn = self.turns.changed.wait(turn).unwrap_or_else(PoisonError::into_inner);
        }
        std::mem::replace(&mut *turn, Turn::Parked)
    }
}

impl Aside<()> {
    /// Calls something there.
    pub(super) fn call(home: Here, call: impl FnOnce() + Send + 'static) -> Self {
        Self::new(home, |_| {
            call();
            Some(())
        })
    }
}

impl<T: Send + 'static> Future for Aside<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let this = &mut *self;
        let mut waker = this.turns.waker.lock().unwrap_or_else(PoisonError::into_inner);
        *waker = Some(context.waker().clone());
        drop(waker);
        loop {
            if let Some(sleeping) = &mut this.sleeping {
                if sleeping.as_mut().poll(context).is_pending() {
                    return Poll::Pending;
                }
                this.sleeping = None;
            }
            match this.turn() {
                Turn::Blocked(span) => {
                    this.blocked = true;
                    this.sleeping = Some(Box::pin(tokio::time::sleep(span)));
                }
                Turn::Parked if std::mem::take(&mut this.blocked) => {}
                Turn::Over => {
                    if let Some(thread) = this.thread.take() {
                        let _ = thread.join();
                    }
                    let ended = this.ended.lock().unwrap_or_else(PoisonError::into_inner).take();
                    return match ended {
                        Some(Ok(output)) => Poll::Ready(output),
                        Some(Err(panic)) => resume_unwind(panic),
                        None => Poll::Pending,
                    };
                }
                Turn::Parked | Turn::Aside | Turn::Alone => return Poll::Pending,
            }
        }
    }
}

impl<T> Drop for Aside<T> {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        *self.turns.turn.lock().unwrap_or_else(PoisonError::into_inner) = Turn::Alone;
        self.turns.changed.notify_all();
        // It waits for nothing any more.
        let _ = thread.join();
    }
}
