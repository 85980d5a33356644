use std::pin::Pin;
use std::sync::mpsc::{RecvTimeoutError, TryRecvError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{self, Receiver};
use tokio::task::AbortHandle;

use crate::blocking::Wait;
use crate::driver::{panic, workers};
use crate::node::event::Notice;

/// What happens to a node, from now on and in order: the present state first, then each change
/// once. It is a [`Stream`] too. Dropping it unsubscribes.
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
    pub async fn recv(&mut self) -> Option<Notice> {
        self.notices.recv().await
    }

    /// What happened already and was not returned yet, without waiting.
    ///
    /// # Errors
    /// If nothing has happened, or the node has left and all was delivered.
    pub fn try_recv(&mut self) -> Result<Notice, TryRecvError> {
        self.notices.try_recv().map_err(|error| match error {
            mpsc::error::TryRecvError::Empty => TryRecvError::Empty,
            mpsc::error::TryRecvError::Disconnected => TryRecvError::Disconnected,
        })
    }

    /// As [`Self::recv`] for programs without async: blocks this thread.
    pub fn blocking_recv(&mut self) -> Option<Notice> {
        self.recv().wait()
    }

    /// As [`Self::blocking_recv`], for so long at most.
    ///
    /// # Errors
    /// If nothing happened by then, or the node has left and all was delivered.
    pub fn blocking_recv_timeout(&mut self, limit: Duration) -> Result<Notice, RecvTimeoutError> {
        let next = self.recv().wait_for(limit).ok_or(RecvTimeoutError::Timeout)?;
        next.ok_or(RecvTimeoutError::Disconnected)
    }

    pub(crate) fn observed(
        mut self,
        workers: &Handle,
        mut callback: impl FnMut(&Notice) + Send + 'static,
    ) -> Callback {
        let task = workers::spawn(workers, async move {
            while let Some(notice) = self.recv().await {
                let called = panic::contain(|| callback(&notice));
                if let Err(said) = called {
                    tracing::error!(event = ?notice.event, said, "a callback panicked; it will be called for the next notice");
                }
            }
        });
        Callback { task: Some(task.abort_handle()) }
    }
}

impl Stream for Subscription {
    type Item = Notice;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Notice>> {
        self.notices.poll_recv(context)
    }
}

/// Keeps a callback of [`Node::on_notice`](crate::Node::on_notice) subscribed. Dropping it
/// unsubscribes.
#[derive(Debug)]
#[must_use = "dropping it unsubscribes; `detach` keeps it for the life of the node"]
pub struct Callback {
    task: Option<AbortHandle>,
}

impl Callback {
    /// Keeps the callback subscribed for as long as the node lives.
    pub fn detach(mut self) {
        self.task = None;
    }
}

impl Drop for Callback {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }
}
