//! Tells subscribers that somebody changed something: subscriptions on a connection of their own.

use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::sync::{Arc, Mutex, Weak};
use std::task::Poll;
use std::time::Duration;

use async_nats::Subscriber;
use futures_util::StreamExt as _;
use incumbent_core::store::{HintGuard, Wake};
use incumbent_store_common::{locked, pause};
use tokio::sync::Notify;

use crate::opener::{Opener, Role};
use crate::session::Session;

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
        state.subscribers.insert(id, Listener { channel, wake });
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
    subscribers: BTreeMap<u64, Listener>,
    next: u64,
    started: bool,
    ended: bool,
}

struct Listener {
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
        let ended = match opener.open(Role::Hints).await {
            Ok((session, _)) => follow(&registry, &session, &mut failures).await,
            Err(_) => Err(()),
        };
        if ended.is_err() {
            failures = failures.saturating_add(1);
        }
    }
}

/// Listens to what is wanted until the connection fails or nobody wants anything.
async fn follow(registry: &Registry, session: &Session, failures: &mut u32) -> Result<(), ()> {
    let mut heard: BTreeMap<String, Subscriber> = BTreeMap::new();
    loop {
        let Some(wanted) = registry.channels() else { return Ok(()) };
        if wanted.is_empty() {
            return Ok(());
        }
        heard.retain(|channel, _| wanted.contains(channel));
        let fresh: Vec<_> = wanted.iter().filter(|channel| !heard.contains_key(*channel)).collect();
        for channel in &fresh {
            let client = session.client().ok_or(())?;
            let subscriber = client.subscribe((*channel).clone()).await.map_err(drop)?;
            heard.insert((*channel).clone(), subscriber);
        }
        if !fresh.is_empty() {
            // The server takes one thing after another: with an answer to this it has subscribed.
            session.info(None, None).await.map_err(drop)?.map_err(drop)?;
        }
        *failures = 0;
        // What was told before we listened is lost, so each new channel is woken once. After a
        // new connection these are all.
        for channel in fresh {
            registry.wake(channel);
        }
        loop {
            tokio::select! {
                () = registry.changed.notified() => break,
                () = session.lost() => return Err(()),
                channel = next(&mut heard) => registry.wake(&channel),
            }
        }
    }
}

/// Waits for the next hint and says on which channel.
async fn next(heard: &mut BTreeMap<String, Subscriber>) -> String {
    poll_fn(|context| {
        for (channel, subscriber) in heard.iter_mut() {
            if let Poll::Ready(Some(_)) = subscriber.poll_next_unpin(context) {
                return Poll::Ready(channel.clone());
            }
        }
        Poll::Pending
    })
    .await
}
