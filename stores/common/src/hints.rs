//! Hints: who wants to be woken, and the connection on which a server tells of changes.
//!
//! Losing hints costs latency alone. So nothing here reports an error: it connects again, waits a
//! little longer after each failure, and wakes everybody once when it hears again, for something may
//! have been told meanwhile (F22).

mod registry;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use incumbent_core::store::{HintGuard, Wake};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::sleep;

pub use registry::Registry;

use crate::locked::locked;
use crate::pause::pause;

/// How often a connection on which nothing happens is tried: one that is half-open says nothing.
const IDLE: Duration = Duration::from_secs(10);

/// The longest pause between attempts to connect.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Makes connections on which a server tells of changes.
pub trait Listen: Send + Sync + 'static {
    /// What it makes.
    type Ear: Ear;

    /// A connection, or nothing if there is none now. Ends by itself in a time of its own.
    fn listen(&self) -> impl Future<Output = Option<Self::Ear>> + Send;
}

/// A connection on which a server tells of changes, or its part of one that is there for reads too.
pub trait Ear: Send + 'static {
    /// Hears the fresh channels too from now on, and the stale ones no longer. Ready when the server
    /// has said so; nothing if the connection is of no use any more.
    fn tune(
        &mut self,
        fresh: &BTreeSet<String>,
        stale: &BTreeSet<String>,
    ) -> impl Future<Output = Option<()>> + Send;

    /// The channel on which the next change is told; nothing once the connection has ended. It may
    /// be given up at any time, and nothing is lost by that.
    fn hear(&mut self) -> impl Future<Output = Option<String>> + Send;

    /// Whether the server still answers. It needn't be asked where the connection itself finds out.
    fn answers(&mut self) -> impl Future<Output = bool> + Send {
        std::future::ready(true)
    }
}

/// Keeps a connection while anybody listens. Dropping it ends that.
pub struct Hints<L> {
    listen: Arc<L>,
    registry: Arc<Registry>,
    /// The runtime that it was given.
    given: Option<Handle>,
    /// The one on which it was made.
    home: Option<Handle>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl<L: Listen> Hints<L> {
    /// It runs on this runtime, or else on that of whoever subscribes first, or else on the one on
    /// which this is called.
    pub fn new(listen: L, runtime: Option<&Handle>) -> Self {
        Self {
            listen: Arc::new(listen),
            registry: Arc::default(),
            given: runtime.cloned(),
            home: Handle::try_current().ok(),
            task: Mutex::new(None),
        }
    }

    /// Calls `wake` from now on after each change that is told on this channel, and once when it is
    /// first heard; nothing if there is no runtime to listen on.
    pub fn subscribe(&self, channel: String, wake: Wake) -> Option<HintGuard> {
        let guard = self.registry.add(channel, wake);
        let mut task = locked(&self.task);
        // A task whose runtime has ended is as good as none.
        if task.as_ref().is_none_or(JoinHandle::is_finished) {
            let current = || Handle::try_current().ok().or_else(|| self.home.clone());
            let runtime = self.given.clone().or_else(current)?;
            let listening = follow(Arc::clone(&self.listen), Arc::clone(&self.registry));
            *task = Some(runtime.spawn(listening));
        }
        Some(guard)
    }
}

impl<L> Drop for Hints<L> {
    fn drop(&mut self) {
        if let Some(task) = &*locked(&self.task) {
            task.abort();
        }
    }
}

async fn follow<L: Listen>(listen: Arc<L>, registry: Arc<Registry>) {
    let mut failures = 0_u32;
    loop {
        while registry.channels().is_empty() {
            registry.changed().await;
        }
        sleep(pause(failures, LONGEST_PAUSE)).await;
        if hear(&*listen, &registry, &mut failures).await.is_none() {
            failures = failures.saturating_add(1);
        }
    }
}

/// Passes on what is told until nobody wants it any more, or until the connection fails (`None`).
async fn hear<L: Listen>(listen: &L, registry: &Registry, failures: &mut u32) -> Option<()> {
    let mut ear = listen.listen().await?;
    let mut heard = BTreeSet::new();
    loop {
        let wanted = registry.channels();
        if wanted.is_empty() {
            // The connection may be there for more than this.
            ear.tune(&wanted, &heard).await?;
            return Some(());
        }
        let (fresh, stale) = (&wanted - &heard, &heard - &wanted);
        if !fresh.is_empty() || !stale.is_empty() {
            ear.tune(&fresh, &stale).await?;
        }
        *failures = 0;
        // What was told before is lost, so each new channel is woken once. On a new connection
        // these are all.
        for channel in &fresh {
            registry.wake(channel);
        }
        heard = wanted;
        loop {
            tokio::select! {
                () = registry.changed() => break,
                channel = ear.hear() => registry.wake(&channel?),
                () = sleep(IDLE) => if !ear.answers().await {
                    return None;
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::mpsc;

    use super::*;

    /// Connections that tests speak on and break.
    struct Lines(Mutex<mpsc::UnboundedReceiver<Line>>);

    type Line = mpsc::UnboundedReceiver<String>;

    struct Ears(Line);

    impl Listen for Lines {
        type Ear = Ears;

        async fn listen(&self) -> Option<Ears> {
            locked(&self.0).try_recv().ok().map(Ears)
        }
    }

    impl Ear for Ears {
        async fn tune(&mut self, _: &BTreeSet<String>, _: &BTreeSet<String>) -> Option<()> {
            Some(())
        }

        async fn hear(&mut self) -> Option<String> {
            self.0.recv().await
        }
    }

    fn counter() -> (Arc<AtomicUsize>, Wake) {
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        let wake = Arc::new(move || {
            counted.fetch_add(1, Ordering::SeqCst);
        });
        (count, wake)
    }

    #[tokio::test(start_paused = true)]
    async fn everybody_is_woken_once_on_each_connection_and_then_by_what_is_told() {
        let (lines, waiting) = mpsc::unbounded_channel();
        let hints = Hints::new(Lines(Mutex::new(waiting)), None);
        let (count, wake) = counter();
        let (other, other_wake) = counter();
        let guard = hints.subscribe("a".to_owned(), wake).unwrap();
        let _other = hints.subscribe("b".to_owned(), other_wake).unwrap();
        let seen = || (count.load(Ordering::SeqCst), other.load(Ordering::SeqCst));
        sleep(Duration::from_secs(60)).await;
        assert_eq!(seen(), (0, 0), "there is no connection yet");
        let (line, receiver) = mpsc::unbounded_channel();
        lines.send(receiver).unwrap();
        sleep(Duration::from_secs(6)).await;
        assert_eq!(seen(), (1, 1));
        line.send("a".to_owned()).unwrap();
        sleep(Duration::from_millis(1)).await;
        assert_eq!(seen(), (2, 1));
        let (next, receiver) = mpsc::unbounded_channel();
        lines.send(receiver).unwrap();
        drop(line);
        sleep(Duration::from_secs(6)).await;
        assert_eq!(seen(), (3, 2), "something may have been told meanwhile");
        drop(guard);
        next.send("a".to_owned()).unwrap();
        next.send("b".to_owned()).unwrap();
        sleep(Duration::from_millis(1)).await;
        assert_eq!(seen(), (3, 3));
    }
}
