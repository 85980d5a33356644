//! Waiting for a future on a thread.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use crate::clock;

/// The clock is looked at this often: time spent in parking may stand still while the machine sleeps.
const LONGEST: Duration = Duration::from_secs(1);

/// Waits for a future of this crate. All of them can be awaited anywhere, so that whatever has no
/// counterpart in this module can be had through this:
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use incumbent::{Cluster, blocking};
///
/// let cluster = Cluster::new(blocking::open("solo:")?, "billing")?;
/// let members = blocking::wait(cluster.members())?;
/// # assert!(members.is_empty());
/// # Ok(())
/// # }
/// ```
pub fn wait<T>(future: impl Future<Output = T>) -> T {
    pollster::block_on(future)
}

/// As [`wait`], for so long at most: nothing if it wasn't ready by then. The future is dropped in that
/// case, and its documentation says what that means. A limit of zero only looks.
pub fn wait_for<T>(limit: Duration, future: impl Future<Output = T>) -> Option<T> {
    let until = clock::now() + limit;
    let sleeper = Arc::new(Sleeper { thread: thread::current(), woken: AtomicBool::new(false) });
    let waker = Waker::from(Arc::clone(&sleeper));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
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

/// A thread that waits. Others may unpark it for reasons of their own.
struct Sleeper {
    thread: Thread,
    woken: AtomicBool,
}

impl Wake for Sleeper {
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
    use super::*;

    #[test]
    fn what_is_ready_comes_and_what_is_not_is_given_up() {
        assert_eq!(wait_for(Duration::ZERO, std::future::ready(1)), Some(1));
        assert_eq!(wait_for(Duration::ZERO, std::future::pending::<()>()), None);
        assert_eq!(wait_for(Duration::from_millis(20), std::future::pending::<()>()), None);
    }

    #[test]
    fn who_waits_is_woken_from_another_thread() {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let other = thread::spawn(move || {
            thread::park_timeout(Duration::from_millis(20));
            sender.send(7)
        });
        assert_eq!(wait_for(Duration::from_secs(60), receiver), Some(Ok(7)));
        assert_eq!(other.join().unwrap(), Ok(()));
    }
}
