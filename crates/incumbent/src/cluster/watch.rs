use std::sync::Arc;
use std::time::Duration;

use incumbent_core::{LeaseName, Moment};
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;

use super::{Cluster, LeaseState, lease_name};
use crate::clock;
use crate::error::ClusterError;
use crate::thread;

/// No longer than this between two looks at a lease, whatever became of the hints.
const LONGEST: Duration = Duration::from_secs(1);

/// Follows a lease: its present state first, then whatever it becomes. Dropping it ends it.
///
/// Changes that follow one another faster than they are asked for are told as one: only the
/// latest state counts, and its list of changes has those in between.
#[derive(Debug)]
#[must_use = "dropping it ends the watch"]
pub struct LeaseWatch {
    states: watch::Receiver<Option<Seen>>,
    task: AbortHandle,
}

/// A state, and when the question was sent whose answer it is.
#[derive(Clone, Debug)]
struct Seen {
    state: LeaseState,
    at: Moment,
}

impl Cluster {
    /// Follows a lease, by the store's hints where it pushes and by looking once a second.
    ///
    /// # Errors
    /// If the lease's name won't do. A store that can't be reached is tried again for as long
    /// as it takes.
    pub fn watch(&self, lease: &str) -> Result<LeaseWatch, ClusterError> {
        let lease = lease_name(lease)?;
        let (states, receiver) = watch::channel(None);
        let task = thread::spawn(follow(self.clone(), lease, states))
            .map_err(|error| ClusterError::Thread(error.to_string()))?;
        Ok(LeaseWatch { states: receiver, task: task.abort_handle() })
    }
}

impl LeaseWatch {
    /// Waits for the next state; the first call gives the present one. Nothing comes only if
    /// the process is shutting down. Cancel-safe.
    pub async fn next(&mut self) -> Option<LeaseState> {
        loop {
            self.states.changed().await.ok()?;
            if let Some(seen) = self.states.borrow_and_update().clone() {
                return Some(seen.state);
            }
        }
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
        let passes = |seen: &Option<Seen>| seen.as_ref().is_some_and(|seen| test(&seen.state));
        let seen = states.wait_for(passes).await.ok()?.clone();
        seen.map(|seen| seen.state)
    }
}

impl Drop for LeaseWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn follow(cluster: Cluster, lease: LeaseName, states: watch::Sender<Option<Seen>>) {
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
                    *known = Some(Seen { state, at });
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
