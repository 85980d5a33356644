//! Tells subscribers that somebody changed something: LISTEN on a connection of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use incumbent_core::store::{HintGuard, StoreError, Wake};
use incumbent_store_common::{locked, pause};
use tokio::sync::Notify;

use crate::opener::{Opener, Role};
use crate::session::{Session, within};

/// How often a connection on which nothing happens is tried.
const PING: Duration = Duration::from_secs(15);

/// The longest pause between attempts to connect. Without hints only latency is lost.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Listens from the first subscription on, until it is dropped.
pub(crate) struct Hints {
    opener: Opener,
    registry: Arc<Registry>,
}

impl Hints {
    pub(crate) fn new(opener: &Opener) -> Self {
        Self { opener: opener.clone(), registry: Arc::default() }
    }

    /// Calls `wake` from now on after each change that is told on this channel.
    pub(crate) fn subscribe(&self, channel: String, wake: Wake) -> HintGuard {
        let mut state = locked(&self.registry.state);
        let id = state.next;
        state.next += 1;
        state.subscribers.insert(id, Subscriber { channel, wake });
        if !std::mem::replace(&mut state.started, true) {
            let (opener, registry) = (self.opener.clone(), Arc::clone(&self.registry));
            self.opener.handle.spawn(listen(opener, registry));
        }
        drop(state);
        self.registry.changed.notify_one();
        Box::new(Subscription { id, registry: Arc::downgrade(&self.registry) })
    }
}

impl Drop for Hints {
    fn drop(&mut self) {
        locked(&self.registry.state).ended = true;
        self.registry.changed.notify_one();
    }
}

/// Who wants to be woken.
#[derive(Default)]
pub(crate) struct Registry {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    subscribers: BTreeMap<u64, Subscriber>,
    next: u64,
    started: bool,
    ended: bool,
}

struct Subscriber {
    channel: String,
    wake: Wake,
}

impl Registry {
    /// Wakes all who listen to this channel.
    pub(crate) fn wake(&self, channel: &str) {
        let state = locked(&self.state);
        let wanted = state.subscribers.values().filter(|subscriber| subscriber.channel == channel);
        let wakes: Vec<_> = wanted.map(|subscriber| Arc::clone(&subscriber.wake)).collect();
        drop(state);
        // The lock is free by now: a wake may subscribe or unsubscribe.
        for wake in wakes {
            wake();
        }
    }

    /// The channels that anybody wants, or none when the store was dropped.
    fn channels(&self) -> Option<BTreeSet<String>> {
        let state = locked(&self.state);
        let channels = state.subscribers.values().map(|subscriber| subscriber.channel.clone());
        (!state.ended).then(|| channels.collect())
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
            // What the wake captured may itself come back here when dropped, so the lock goes
            // first.
            drop(removed);
            registry.changed.notify_one();
        }
    }
}

/// Keeps a connection as long as anybody listens.
async fn listen(opener: Opener, registry: Arc<Registry>) {
    let mut failures = 0;
    while let Some(channels) = registry.channels() {
        if channels.is_empty() {
            registry.changed.notified().await;
            continue;
        }
        tokio::time::sleep(pause(failures, LONGEST_PAUSE)).await;
        let ended = match opener.open(&Role::Hints(Arc::clone(&registry))).await {
            // Listening through a pooler would make strangers' connections listen.
            Ok(session) if session.pooled => Err(()),
            Ok(session) => follow(&opener, &registry, &session, &mut failures).await,
            Err(_) => Err(()),
        };
        if ended.is_err() {
            failures = failures.saturating_add(1);
        }
    }
}

/// Listens to what is wanted until the connection fails or nobody wants anything.
async fn follow(
    opener: &Opener,
    registry: &Registry,
    session: &Session,
    failures: &mut u32,
) -> Result<(), ()> {
    let mut heard = BTreeSet::new();
    loop {
        let Some(wanted) = registry.channels() else { return Ok(()) };
        if wanted.is_empty() {
            return Ok(());
        }
        tell(opener, session, &statements(&heard, &wanted)).await.map_err(drop)?;
        *failures = 0;
        // What was told before we listened is lost, so each new channel is woken once. After a
        // new connection these are all.
        for channel in wanted.difference(&heard) {
            registry.wake(channel);
        }
        heard = wanted;
        tokio::select! {
            () = registry.changed.notified() => {}
            () = session.lost() => return Err(()),
            () = tokio::time::sleep(PING) => {}
        }
    }
}

/// The channels are made of letters, digits and underscores. An empty text is a ping.
fn statements(heard: &BTreeSet<String>, wanted: &BTreeSet<String>) -> String {
    let unlisten = heard.difference(wanted).map(|channel| format!("UNLISTEN {channel};"));
    let listen = wanted.difference(heard).map(|channel| format!("LISTEN {channel};"));
    unlisten.chain(listen).collect()
}

async fn tell(opener: &Opener, session: &Session, sql: &str) -> Result<(), StoreError> {
    let telling = async {
        let told = session.client().batch_execute(sql).await;
        told.map_err(StoreError::unavailable)
    };
    within(&opener.options, "listening", opener.options.connect_timeout, telling).await
}
