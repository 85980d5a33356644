use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::mpsc::Receiver;
use tokio::task::AbortHandle;

use crate::blocking;
use crate::event::Notice;
use crate::{panic, workers};

/// What happens to a node, from now on and in order: the present state first, then each change
/// once. Dropping it unsubscribes.
///
/// A slow subscriber holds up nobody. Some thousands of notices wait for it; one that has fallen
/// further behind misses what comes, and is told so by [`Event::Missed`](crate::Event::Missed)
/// and the state as it is then.
#[derive(Debug)]
#[must_use = "dropping it unsubscribes"]
pub struct Subscription {
    pub(crate) notices: Receiver<Notice>,
}

impl Subscription {
    /// Waits for what happens next; nothing once the node has left and all was delivered.
    ///
    /// Cancel-safe: what was not returned is returned by the next call.
    pub async fn next(&mut self) -> Option<Notice> {
        self.notices.recv().await
    }

    /// What happened already and was not returned yet, without waiting.
    pub fn try_next(&mut self) -> Option<Notice> {
        self.notices.try_recv().ok()
    }

    /// As [`Self::next`] for programs without async: blocks this thread.
    pub fn recv(&mut self) -> Option<Notice> {
        pollster::block_on(self.next())
    }

    /// As [`Self::recv`], for so long at most.
    ///
    /// # Errors
    /// If nothing happened by then, or the node has left and all was delivered.
    pub fn recv_timeout(&mut self, limit: Duration) -> Result<Notice, RecvTimeoutError> {
        let next = blocking::wait_for(limit, self.next()).ok_or(RecvTimeoutError::Timeout)?;
        next.ok_or(RecvTimeoutError::Disconnected)
    }

    pub(crate) fn observed(
        mut self,
        workers: &Handle,
        mut callback: impl FnMut(&Notice) + Send + 'static,
    ) -> Observer {
        let task = workers::spawn(workers, async move {
            while let Some(notice) = self.next().await {
                let called = panic::contain(|| callback(&notice));
                if let Err(said) = called {
                    tracing::error!(event = ?notice.event, said, "an observer panicked; it is called again for what comes next");
                }
            }
        });
        Observer { task: Some(task.abort_handle()) }
    }
}

/// Keeps a callback of [`Node::observe`](crate::Node::observe) subscribed. Dropping it
/// unsubscribes.
#[derive(Debug)]
#[must_use = "dropping it unsubscribes; `detach` keeps it for the life of the node"]
pub struct Observer {
    task: Option<AbortHandle>,
}

impl Observer {
    /// Keeps the callback subscribed for as long as the node lives.
    pub fn detach(mut self) {
        self.task = None;
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }
}
