use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;
use incumbent_core::{LeaseName, Moment};
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio_util::sync::ReusableBoxFuture;

use super::{Cluster, LeaseState, lease_name};
use crate::driver::clock;
use crate::driver::thread;
use crate::error::ClusterError;

type Receiver = watch::Receiver<Option<StateSeen>>;

/// No longer than this between two looks at a lease, whatever became of the hints.
const LONGEST: Duration = Duration::from_secs(1);

/// Follows a lease: its present state first, then whatever it becomes. It is a [`Stream`] too. Dropping
/// it ends it.
///
/// Changes that follow one another faster than they are asked for are told as one: only the
/// latest state counts, and its list of changes has those in between.
#[must_use = "dropping it ends the watch"]
pub struct LeaseWatch {
    states: Receiver,
    /// Waits for the next state, and gives the receiver back. It lives here between two calls, so that
    /// nothing is missed if one of them is dropped.
    next: ReusableBoxFuture<'static, (Option<LeaseState>, Receiver)>,
    task: AbortHandle,
}

/// A state, and when the question was sent whose answer it is.
#[derive(Clone, Debug)]
struct StateSeen {
    state: LeaseState,
    at: Moment,
}

impl Cluster {
    /// Follows a lease, by the store's hints where it pushes and by looking once a second.
    ///
    /// # Errors
    /// If the lease's name is not valid. A store that can't be reached is tried again for as long
    /// as it takes.
    pub fn watch_lease(&self, lease: &str) -> Result<LeaseWatch, ClusterError> {
        let lease = lease_name(lease)?;
        let (states, receiver) = watch::channel(None);
        let task = thread::spawn(follow(self.clone(), lease, states))
            .map_err(|error| ClusterError::Thread(error.to_string()))?;
        let next = ReusableBoxFuture::new(next(receiver.clone()));
        Ok(LeaseWatch { states: receiver, next, task: task.abort_handle() })
    }
}

impl LeaseWatch {
    /// Waits for the next state; the first call gives the present one. Nothing comes only if
    /// the process is shutting down. Cancel-safe.
    pub async fn recv(&mut self) -> Option<LeaseState> {
        std::future::poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }

    /// The last state that was seen, and how long ago it was asked for: at most about a second
    /// while the store answers. From memory; nothing before the first answer.
    #[must_use]
    pub fn known(&self) -> Option<(LeaseState, Duration)> {
        let seen = self.states.borrow().clone()?;
        let age = clock::now().since(seen.at);
        Some((seen.state, age))
    }

    /// Waits for a state that passes the test, which the last one that was seen may do at once.
    /// Any number of tasks may wait at a time, and each sees the latest state alone. Nothing comes
    /// only if the process is shutting down. Cancel-safe.
    pub async fn when(&self, test: impl Fn(&LeaseState) -> bool) -> Option<LeaseState> {
        let mut states = self.states.clone();
        let passes = |seen: &Option<StateSeen>| seen.as_ref().is_some_and(|seen| test(&seen.state));
        let seen = states.wait_for(passes).await.ok()?.clone();
        seen.map(|seen| seen.state)
    }
}

impl Stream for LeaseWatch {
    type Item = LeaseState;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<LeaseState>> {
        let (state, receiver) = ready!(self.next.poll(context));
        self.next.set(next(receiver));
        Poll::Ready(state)
    }
}

async fn next(mut states: Receiver) -> (Option<LeaseState>, Receiver) {
    while states.changed().await.is_ok() {
        let seen = states.borrow_and_update().clone();
        if let Some(seen) = seen {
            return (Some(seen.state), states);
        }
    }
    (None, states)
}

impl fmt::Debug for LeaseWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseWatch").finish_non_exhaustive()
    }
}

impl Drop for LeaseWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn follow(cluster: Cluster, lease: LeaseName, states: watch::Sender<Option<StateSeen>>) {
    let hints = Arc::new(Notify::new());
    let wake = Arc::clone(&hints);
    // Subscribed before the first look, so that nothing falls in between.
    let _guard = cluster.store.hints(&cluster.name, Arc::new(move || wake.notify_one()));
    let mut failing = false;
    while !states.is_closed() {
        let at = clock::now();
        match cluster.read_lease(&lease).await {
            Ok(state) => {
                failing = false;
                states.send_if_modified(|known| {
                    let news = known.as_ref().is_none_or(|known| differs(&known.state, &state));
                    *known = Some(StateSeen { state, at });
                    news
                });
            }
            Err(error) if !failing => {
                failing = true;
                tracing::warn!(cluster = %cluster.name, %lease, action = "watch", %error, "can't look at the lease");
            }
            Err(_) => {}
        }
        tokio::select! {
            () = hints.notified() => {}
            () = tokio::time::sleep(LONGEST) => {}
        }
    }
}

/// A beat alone is no change.
fn differs(one: &LeaseState, other: &LeaseState) -> bool {
    let ageless = |state: &LeaseState| {
        let mut state = state.clone();
        if let Some(leader) = &mut state.leader {
            leader.age = None;
        }
        state
    };
    ageless(one) != ageless(other)
}
