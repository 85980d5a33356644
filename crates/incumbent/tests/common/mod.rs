//! What the tests share: short times, patience, and a store that misbehaves on demand.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]
#![allow(clippy::expect_used, reason = "this is test code, although no test")]

pub mod ledger;
pub mod timeline;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use incumbent::store::{
    Answer, Capabilities, Exchange, HintGuard, Lane, Read, Store, StoreError, Wake,
};
use incumbent::{Builder, Event, MemoryStore, Node, OpenStore, Subscription};

/// Long enough for a slow machine, short enough to notice that something hangs.
const PATIENCE: Duration = Duration::from_secs(30);

/// A node with a ttl of a second.
pub fn builder(name: &str) -> Builder {
    Node::builder().for_tests().cluster("test").name(name)
}

/// A node whose ttl is so long that no pause of a busy machine ends its trust.
pub fn steady(name: &str) -> Builder {
    let (ttl, quiet) = (Duration::from_secs(12), Duration::from_millis(100));
    let builder = Node::builder().cluster("test").name(name).ttl(ttl).rebalance_after(quiet);
    builder.grace(Duration::from_secs(1))
}

pub async fn join(store: &OpenStore, name: &str) -> Node {
    soon(builder(name).join(store)).await.expect("joins")
}

pub fn memory() -> OpenStore {
    MemoryStore::new().into()
}

/// Fails the test if the future hangs.
pub async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("takes too long")
}

/// Waits until the condition holds.
pub async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let wait = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, wait).await.is_ok(), "never came true: {what}");
}

/// Runs a future beside the test.
pub fn spawn<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
) -> tokio::task::JoinHandle<T> {
    tokio::runtime::Handle::current().spawn(future)
}

pub async fn pause(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

/// The next notice that satisfies the question.
pub async fn next_event(notices: &mut Subscription, wanted: impl Fn(&Event) -> bool) -> Event {
    soon(async {
        loop {
            let notice = notices.recv().await.expect("the node is there");
            if wanted(&notice.event) {
                return notice.event;
            }
        }
    })
    .await
}

/// A memory store that hangs, fails or doesn't push when told to, and counts exchanges.
#[derive(Clone, Default)]
pub struct Moody {
    inner: MemoryStore,
    mood: Arc<Mood>,
}

#[derive(Default)]
pub struct Mood {
    how: AtomicUsize,
    /// So many beats to come hang.
    pub hang_beats: AtomicU64,
    pub exchanges: AtomicU64,
    /// So many of them since the last that asked for all records below a prefix.
    pub since_list: AtomicU64,
    pub silent: std::sync::atomic::AtomicBool,
}

const FINE: usize = 0;
const HANGING: usize = 1;
const FAILING: usize = 2;
const REJECTING: usize = 3;

impl Moody {
    pub fn new() -> Self {
        Self::default()
    }

    /// Without hints.
    pub fn silent() -> Self {
        let store = Self::default();
        store.mood.silent.store(true, Ordering::SeqCst);
        store
    }

    /// Another way to the same records, with a mood of its own.
    pub fn beside(&self) -> Self {
        Self { inner: self.inner.clone(), ..Self::default() }
    }

    pub fn mood(&self) -> &Mood {
        &self.mood
    }

    pub fn hang(&self) {
        self.mood.how.store(HANGING, Ordering::SeqCst);
    }

    pub fn fail(&self) {
        self.mood.how.store(FAILING, Ordering::SeqCst);
    }

    pub fn reject(&self) {
        self.mood.how.store(REJECTING, Ordering::SeqCst);
    }

    pub fn recover(&self) {
        self.mood.how.store(FINE, Ordering::SeqCst);
    }
}

impl Store for Moody {
    fn capabilities(&self) -> Capabilities {
        let push = !self.mood.silent.load(Ordering::SeqCst);
        Capabilities { push, ..self.inner.capabilities() }
    }

    fn exchange<'a>(&'a self, cluster: &'a str, lane: Lane, exchange: Exchange) -> Answer<'a> {
        Box::pin(async move {
            self.mood.exchanges.fetch_add(1, Ordering::SeqCst);
            self.mood.since_list.fetch_add(1, Ordering::SeqCst);
            if exchange.reads.iter().any(|read| matches!(read, Read::Prefix(_))) {
                self.mood.since_list.store(0, Ordering::SeqCst);
            }
            let hangs = |left: u64| left.checked_sub(1);
            let order = Ordering::SeqCst;
            if lane == Lane::Beat && self.mood.hang_beats.fetch_update(order, order, hangs).is_ok()
            {
                std::future::pending::<()>().await;
            }
            match self.mood.how.load(Ordering::SeqCst) {
                HANGING => std::future::pending().await,
                FAILING => Err(StoreError::unavailable("the store is away")),
                REJECTING => Err(StoreError::rejected("no such database")),
                _ => self.inner.exchange(cluster, lane, exchange).await,
            }
        })
    }

    fn hints(&self, cluster: &str, wake: Wake) -> Option<HintGuard> {
        if self.mood.silent.load(Ordering::SeqCst) {
            return None;
        }
        self.inner.hints(cluster, wake)
    }
}
