//! Everything for programs without async: [`Wait`] lets a thread wait for any future of this crate, so
//! that no call is missing here and none is there twice.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use incumbent::Node;
//! use incumbent::blocking::Wait;
//!
//! let store = incumbent::open("solo:").wait()?;
//! let node = Node::builder().cluster("billing").join(store).wait()?;
//! let scheduler = node.lead_blocking("scheduler", |term| {
//!     while term.is_held() {
//!         // Settle invoices.
//!         # break;
//!     }
//!     Ok(())
//! })?;
//! scheduler.finished().wait();
//! node.leave().wait()?;
//! # Ok(())
//! # }
//! ```
//!
//! Work that blocks is given to [`Node::lead_blocking`](crate::Node::lead_blocking),
//! [`Node::periodic_blocking`](crate::Node::periodic_blocking) and
//! [`Family::run_blocking`](crate::Family::run_blocking), which run it on threads of their own. Notices come
//! by [`Subscription::blocking_recv`](crate::Subscription::blocking_recv). No runtime is needed.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{self, Context, Poll, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use crate::driver::clock;

/// The clock is looked at this often: time spent in parking may stand still while the machine sleeps.
const LONGEST: Duration = Duration::from_secs(1);

/// Waits for a future on this thread, which is blocked meanwhile.
///
/// All futures of this crate can be awaited anywhere, and so they can be waited for. Don't do that in async
/// code: it blocks a worker of the runtime.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use std::time::Duration;
/// # use incumbent::Node;
/// use incumbent::blocking::Wait;
///
/// # let node = Node::builder().name("a").join(incumbent::open("solo:").wait()?).wait()?;
/// let mut campaign = node.campaign("scheduler")?;
/// match campaign.elected().wait_for(Duration::from_secs(30)) {
///     Some(leadership) => println!("leads in term {}", leadership?.number()),
///     None => println!("another leads"), // the campaign goes on until it is dropped
/// }
/// # Ok(())
/// # }
/// ```
pub trait Wait: Future + Sized {
    /// Waits until it is ready.
    fn wait(self) -> Self::Output {
        pollster::block_on(self)
    }

    /// As [`Self::wait`], for so long at most: nothing if it wasn't ready by then. The future is dropped in
    /// that case, and its documentation says what that means. A limit of zero only looks.
    fn wait_for(self, limit: Duration) -> Option<Self::Output> {
        let until = clock::now() + limit;
        let sleeper =
            Arc::new(Sleeper { thread: thread::current(), woken: AtomicBool::new(false) });
        let waker = Waker::from(Arc::clone(&sleeper));
        let mut context = Context::from_waker(&waker);
        let mut future = pin!(self);
        loop {
            // Before the look, so that no waking is missed in between.
            sleeper.woken.store(false, Ordering::Release);
            if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
                return Some(value);
            }
            while !sleeper.woken.load(Ordering::Acquire) {
                let left = until.since(clock::now());
                if left.is_zero() {
                    return None;
                }
                thread::park_timeout(left.min(LONGEST));
            }
        }
    }
}

impl<F: Future> Wait for F {}

/// A thread that waits. Others may unpark it for reasons of their own.
struct Sleeper {
    thread: Thread,
    woken: AtomicBool,
}

impl task::Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    #[test]
    fn what_is_ready_comes_and_what_is_not_is_given_up() {
        assert_eq!(std::future::ready(1).wait_for(Duration::ZERO), Some(1));
        assert_eq!(pending::<()>().wait_for(Duration::ZERO), None);
        assert_eq!(pending::<()>().wait_for(Duration::from_millis(20)), None);
    }

    #[test]
    fn who_waits_is_woken_from_another_thread() {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let other = thread::spawn(move || {
            thread::park_timeout(Duration::from_millis(20));
            sender.send(7)
        });
        assert_eq!(receiver.wait_for(Duration::from_secs(60)), Some(Ok(7)));
        assert_eq!(other.join().unwrap(), Ok(()));
    }
}
