//! Tells subscribers that somebody changed something, by pub/sub on a connection of its own.
//!
//! Losing hints costs latency alone. So this never reports an error: it connects again, waits a
//! little longer after each failure, and wakes everybody once when it hears again, for something
//! may have been said meanwhile (F22).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use futures_util::StreamExt;
use incumbent_core::store::{HintGuard, Wake};
use incumbent_store_common::{locked, pause};
use redis::aio::{PubSub, PubSubSink, PubSubStream};
use redis::{RedisConnectionInfo, RedisResult};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::connection;
use crate::options::RedisOptions;

/// How often an idle connection is tried, for one that is half-open says nothing by itself.
const PING: Duration = Duration::from_secs(10);

/// The longest pause between attempts to connect.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Starts a task at the first subscription and ends it when dropped.
pub(crate) struct Listener {
    options: Arc<RedisOptions>,
    home: Handle,
    shared: Arc<Shared>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Listener {
    /// The task runs on the runtime of whoever subscribes first, or else at home.
    pub(crate) fn new(options: &Arc<RedisOptions>, home: Handle) -> Self {
        let (options, shared) = (Arc::clone(options), Arc::default());
        Self { options, home, shared, task: Mutex::new(None) }
    }

    /// Calls `wake` from now on after each message on this channel.
    pub(crate) fn subscribe(&self, channel: String, wake: Wake) -> HintGuard {
        let id = self.shared.add(channel, wake);
        let mut task = locked(&self.task);
        // A task whose runtime has ended is as good as none.
        if task.as_ref().is_none_or(JoinHandle::is_finished) {
            let runtime = Handle::try_current().unwrap_or_else(|_| self.home.clone());
            let listening = listen(Arc::clone(&self.options), Arc::clone(&self.shared));
            *task = Some(runtime.spawn(listening));
        }
        Box::new(Subscription { id, shared: Arc::downgrade(&self.shared) })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(task) = &*locked(&self.task) {
            task.abort();
        }
    }
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Tells the task that the subscribers are others than before.
    changed: Notify,
}

#[derive(Default)]
struct State {
    subscribers: BTreeMap<u64, Subscriber>,
    next: u64,
}

struct Subscriber {
    channel: String,
    wake: Wake,
}

impl Shared {
    fn add(&self, channel: String, wake: Wake) -> u64 {
        let mut state = locked(&self.state);
        let id = state.next;
        state.next += 1;
        state.subscribers.insert(id, Subscriber { channel, wake });
        drop(state);
        self.changed.notify_one();
        id
    }

    fn channels(&self) -> BTreeSet<String> {
        locked(&self.state).subscribers.values().map(|one| one.channel.clone()).collect()
    }

    fn wake(&self, concerned: impl Fn(&str) -> bool) {
        let state = locked(&self.state);
        let wakes = state.subscribers.values().filter(|one| concerned(&one.channel));
        let wakes: Vec<Wake> = wakes.map(|one| Arc::clone(&one.wake)).collect();
        // The lock goes first: a wake may subscribe or unsubscribe.
        drop(state);
        for wake in wakes {
            wake();
        }
    }
}

/// Unsubscribes when dropped.
struct Subscription {
    id: u64,
    shared: Weak<Shared>,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.upgrade() {
            let removed = locked(&shared.state).subscribers.remove(&self.id);
            shared.changed.notify_one();
            // What the wake captured may itself come back here when dropped, so the lock went
            // first.
            drop(removed);
        }
    }
}

/// Connects for as long as there are subscribers.
async fn listen(options: Arc<RedisOptions>, shared: Arc<Shared>) {
    let mut failures = 0;
    loop {
        while shared.channels().is_empty() {
            shared.changed.notified().await;
        }
        // It ends without an error when the last subscriber has gone.
        if follow(&options, &shared, &mut failures).await.is_none() {
            failures += 1;
            tokio::time::sleep(pause(failures, LONGEST_PAUSE)).await;
        }
    }
}

/// Passes messages on until nobody wants them any more, or until the connection fails (`None`).
async fn follow(options: &RedisOptions, shared: &Shared, failures: &mut u32) -> Option<()> {
    let (mut sink, mut stream) =
        timeout(options.connect_timeout, connect(options)).await.ok()??;
    let mut subscribed = BTreeSet::new();
    loop {
        let wanted = shared.channels();
        if wanted.is_empty() {
            return Some(());
        }
        let new: Vec<&String> = wanted.difference(&subscribed).collect();
        if !new.is_empty() {
            within(options, sink.subscribe(&new)).await?;
            *failures = 0;
            shared.wake(|channel| new.iter().any(|new| *new == channel));
        }
        let old: Vec<&String> = subscribed.difference(&wanted).collect();
        if !old.is_empty() {
            within(options, sink.unsubscribe(&old)).await?;
        }
        subscribed = wanted;
        tokio::select! {
            message = stream.next() => {
                let message = message?;
                shared.wake(|channel| channel == message.get_channel_name());
            }
            () = shared.changed.notified() => {}
            () = tokio::time::sleep(PING) => {
                within(options, sink.ping::<redis::Value>()).await?;
            }
        }
    }
}

async fn connect(options: &RedisOptions) -> Option<(PubSubSink, PubSubStream)> {
    let stream = connection::stream(options).await.ok()?;
    // Channels are common to all databases, so that none needs to be selected.
    let mut login = RedisConnectionInfo::default().set_skip_set_lib_name();
    if let Some(username) = &options.username {
        login = login.set_username(username);
    }
    if let Some(password) = options.password.read().ok()? {
        login = login.set_password(password);
    }
    PubSub::new(&login, stream).await.ok().map(PubSub::split)
}

async fn within<T>(
    options: &RedisOptions,
    answer: impl Future<Output = RedisResult<T>>,
) -> Option<T> {
    timeout(options.timeout, answer).await.ok()?.ok()
}
