use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, Weak};

use incumbent_core::store::{HintGuard, Wake};
use tokio::sync::Notify;

use crate::locked::locked;

/// Who wants to be woken, and by which channel.
#[derive(Default)]
pub struct Registry {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    subscribers: BTreeMap<u64, (String, Wake)>,
    next: u64,
}

impl Registry {
    /// Adds somebody, for as long as the guard is kept.
    pub fn add(self: &Arc<Self>, channel: String, wake: Wake) -> HintGuard {
        let mut state = locked(&self.state);
        let id = state.next;
        state.next += 1;
        state.subscribers.insert(id, (channel, wake));
        drop(state);
        self.changed.notify_one();
        Box::new(Subscription { id, registry: Arc::downgrade(self) })
    }

    /// Wakes all who listen to this channel.
    pub fn wake(&self, channel: &str) {
        let state = locked(&self.state);
        let wanted = state.subscribers.values().filter(|(wanted, _)| wanted == channel);
        let wakes: Vec<Wake> = wanted.map(|(_, wake)| Arc::clone(wake)).collect();
        drop(state);
        // The lock is free by now: a wake may subscribe or unsubscribe.
        for wake in wakes {
            wake();
        }
    }

    /// The channels that anybody wants.
    #[must_use]
    pub fn channels(&self) -> BTreeSet<String> {
        locked(&self.state).subscribers.values().map(|(channel, _)| channel.clone()).collect()
    }

    /// Waits until somebody came or went since the last time.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }
}

/// Unsubscribes when dropped.
struct Subscription {
    id: u64,
    registry: Weak<Registry>,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(registry) = self.registry.upgrade() {
            let removed = locked(&registry.state).subscribers.remove(&self.id);
            registry.changed.notify_one();
            // What the wake captured may itself come back here when dropped, so the lock went first.
            drop(removed);
        }
    }
}
