//! Tells subscribers that something of their cluster changed: one watch for each cluster, on keys
//! that only hinted writes touch, so that beats wake nobody.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use incumbent_core::store::{HintGuard, Wake};
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use crate::keys::{Space, Span};
use crate::lane::{Common, Lane};
use crate::link::{Flight, Link, Watching};
use crate::wire::{WatchCreateRequest, WatchRequest};

const SHORTEST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Watches while somebody listens. Dropping it ends all watches.
pub(crate) struct Hints {
    common: Arc<Common>,
    /// A connection of its own, which all watches share.
    lane: Arc<Lane>,
    channels: Arc<Mutex<Channels>>,
}

#[derive(Default)]
struct Channels {
    by_cluster: BTreeMap<String, Channel>,
    next: u64,
}

struct Channel {
    listeners: Arc<Listeners>,
    _task: AbortOnDropHandle<()>,
}

#[derive(Default)]
struct Listeners(Mutex<BTreeMap<u64, Wake>>);

impl Hints {
    pub(crate) fn new(common: &Arc<Common>, lane: Lane) -> Self {
        Self { common: Arc::clone(common), lane: Arc::new(lane), channels: Arc::default() }
    }

    /// Calls `wake` from now on after each change of this cluster that asks for it.
    pub(crate) fn subscribe(&self, cluster: &str, wake: Wake) -> HintGuard {
        let mut channels = lock(&self.channels);
        let id = channels.next;
        channels.next += 1;
        let channel =
            channels.by_cluster.entry(cluster.to_owned()).or_insert_with(|| self.channel(cluster));
        lock(&channel.listeners.0).insert(id, wake);
        let (cluster, channels) = (cluster.to_owned(), Arc::downgrade(&self.channels));
        Box::new(Subscription { cluster, id, channels })
    }

    fn channel(&self, cluster: &str) -> Channel {
        let listeners = Arc::new(Listeners::default());
        let follower = Follower {
            common: Arc::clone(&self.common),
            lane: Arc::clone(&self.lane),
            space: Space::new(&self.common.options.prefix, cluster),
            listeners: Arc::clone(&listeners),
        };
        let task = self.common.handle.spawn(follower.run());
        Channel { listeners, _task: AbortOnDropHandle::new(task) }
    }
}

impl Drop for Hints {
    fn drop(&mut self) {
        // Subscriptions may outlive the store; watches don't.
        let channels = std::mem::take(&mut lock(&self.channels).by_cluster);
        drop(channels);
    }
}

/// Unsubscribes when dropped. The last one of a cluster ends its watch.
struct Subscription {
    cluster: String,
    id: u64,
    channels: Weak<Mutex<Channels>>,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let Some(channels) = self.channels.upgrade() else { return };
        let mut channels = lock(&channels);
        let Some(channel) = channels.by_cluster.get(&self.cluster) else { return };
        let mut listeners = lock(&channel.listeners.0);
        let removed = listeners.remove(&self.id);
        let last = listeners.is_empty();
        drop(listeners);
        let ended = if last { channels.by_cluster.remove(&self.cluster) } else { None };
        drop(channels);
        // What the wake captured may itself come back here when dropped, so the locks went first.
        drop((removed, ended));
    }
}

impl Listeners {
    fn wake(&self) {
        let wakes: Vec<Wake> = lock(&self.0).values().cloned().collect();
        // The lock is free by now: a wake may subscribe or unsubscribe.
        for wake in wakes {
            wake();
        }
    }
}

/// Keeps one cluster's watch going.
struct Follower {
    common: Arc<Common>,
    lane: Arc<Lane>,
    space: Space,
    listeners: Arc<Listeners>,
}

impl Follower {
    async fn run(self) {
        let mut pause = SHORTEST_PAUSE;
        loop {
            let begun = timeout(self.common.options.timeout, self.begin()).await;
            if let Ok(Some((link, watching))) = begun {
                pause = SHORTEST_PAUSE;
                // What happened while nobody watched was missed.
                self.listeners.wake();
                follow(watching, &self.listeners).await;
                // Whatever ended it, another connection is the better bet.
                link.suspect();
            }
            sleep(jittered(pause)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// A watch that the server has confirmed.
    async fn begin(&self) -> Option<(Link, Watching)> {
        let (link, token) = self.lane.ready().await.ok()?;
        let flight = Flight::new(&link);
        let Span { key, end } = self.space.hints();
        let create = WatchCreateRequest { key, range_end: end };
        let question = WatchRequest { create: Some(create) };
        let mut watching = link.watch(question, token.text()).await.ok()?;
        let first = watching.next().await?;
        if first.canceled {
            // It says so too if it has forgotten the token.
            self.common.tokens.forget(&token).await;
            return None;
        }
        flight.landed();
        first.created.then_some((link, watching))
    }
}

/// Wakes until the watch ends: the connection broke, the member lost its leader, or the watch fell
/// so far behind that what it wanted was compacted.
async fn follow(mut watching: Watching, listeners: &Listeners) {
    while let Some(response) = watching.next().await {
        if response.canceled {
            return;
        }
        if !response.events.is_empty() {
            listeners.wake();
        }
    }
}

/// Between half of it and all of it, so that those who lost one server don't come back together.
fn jittered(pause: Duration) -> Duration {
    // Each new state is keyed at random.
    let random = RandomState::new().build_hasher().finish();
    let share = u32::try_from(random % 512).unwrap_or(0);
    pause / 2 + pause * share / 1024
}

/// Nothing below these locks calls foreign code, so a poisoned one still guards sound data.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_differ_within_bounds() {
        let pauses: Vec<_> = (0..100).map(|_| jittered(LONGEST_PAUSE)).collect();
        let bounds = LONGEST_PAUSE / 2..=LONGEST_PAUSE;
        assert!(pauses.iter().all(|pause| bounds.contains(pause)), "{pauses:?}");
        assert!(pauses.iter().any(|pause| Some(pause) != pauses.first()));
    }
}
