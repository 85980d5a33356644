//! How many futures run under a term.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// A count whose end can be waited for. There is one for each term that is held, and a channel would
/// take ten times the memory.
#[derive(Debug, Default)]
pub(crate) struct Futures {
    count: AtomicUsize,
    none: Notify,
}

impl Futures {
    pub(crate) fn begin(&self) {
        self.count.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn end(&self) {
        if self.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.none.notify_waiters();
        }
    }

    /// Ready once there is none. Cancel-safe.
    pub(crate) async fn over(&self) {
        loop {
            let mut told = std::pin::pin!(self.none.notified());
            // Before the count is looked at, so that no end can come between.
            told.as_mut().enable();
            if self.count.load(Ordering::Acquire) == 0 {
                return;
            }
            told.await;
        }
    }
}
