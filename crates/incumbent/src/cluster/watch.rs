use std::sync::Arc;
use std::time::Duration;

use incumbent_core::LeaseName;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;

use super::{Cluster, LeaseState, lease_name};
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
    states: watch::Receiver<Option<LeaseState>>,
    task: AbortHandle,
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
            if let Some(state) = self.states.borrow_and_update().clone() {
                return Some(state);
            }
        }
    }
}

impl Drop for LeaseWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn follow(cluster: Cluster, lease: LeaseName, states: watch::Sender<Option<LeaseState>>) {
    let hints = Arc::new(Notify::new());
    let wake = Arc::clone(&hints);
    // Subscribed before the first look, so that nothing falls in between.
    let _guard = cluster.store.hints(&cluster.name, Arc::new(move || wake.notify_one()));
    let mut failing = false;
    while !states.is_closed() {
        match cluster.read_lease(&lease).await {
            Ok(state) => {
                failing = false;
                states.send_if_modified(|known| {
                    let news = known.as_ref().is_none_or(|known| differs(known, &state));
                    *known = Some(state);
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
