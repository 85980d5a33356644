//! What a node says of itself while the thread that beats is blocked. It has a process of its own,
//! because that thread is everybody's.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::{soon, steady, until};
use incumbent::MemoryStore;
use incumbent::store::{Answer, Capabilities, Exchange, HintGuard, Lane, Store, Wake};

/// A store that blocks its caller while it is told to, instead of waiting.
#[derive(Clone, Default)]
struct Blocking {
    inner: MemoryStore,
    blocks: Arc<AtomicBool>,
}

impl Store for Blocking {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn exchange<'a>(&'a self, cluster: &'a str, lane: Lane, exchange: Exchange) -> Answer<'a> {
        while self.blocks.load(Ordering::SeqCst) {
            std::thread::park_timeout(Duration::from_millis(10));
        }
        self.inner.exchange(cluster, lane, exchange)
    }

    fn hints(&self, cluster: &str, wake: Wake) -> Option<HintGuard> {
        self.inner.hints(cluster, wake)
    }
}

#[tokio::test]
async fn a_thread_that_is_blocked_shows_without_its_help() {
    let store = Blocking::default();
    let node = soon(steady("a").join(store.clone())).await.unwrap();
    let turned = || node.health().last_turn;
    until("it turns once a second", || turned() < Duration::from_secs(1)).await;
    store.blocks.store(true, Ordering::SeqCst);
    until("it has not turned for long", || turned() > Duration::from_secs(3)).await;
    until("trust runs out all the same", || node.health().trust_left.is_zero()).await;
    store.blocks.store(false, Ordering::SeqCst);
    until("it turns again", || turned() < Duration::from_secs(1)).await;
    until("and trusts again", || !node.health().trust_left.is_zero()).await;
}
