//! A node that stands for another process gives no evidence of its own, and many of them beat together.
#![allow(clippy::unwrap_used, reason = "this is test code, also where it is no test")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use incumbent::store::{Answer, Capabilities, Exchange, HintGuard, Lane, Store, StoreError, Wake};
use incumbent::{Cluster, MemoryStore, Node, OpenStore, witness};

#[tokio::test]
async fn a_node_on_behalf_of_another_process_publishes_no_evidence() {
    let store = MemoryStore::new();
    let evidence = || witness::evidence(&[std::process::id()], None).unwrap();
    let join = |name: &str| Node::builder().for_tests().name(name).evidence(evidence());
    let _own = join("own").join(store.clone()).await.unwrap();
    let _other = join("other").on_behalf().join(store.clone()).await.unwrap();
    let cluster = Cluster::new(store, "default").unwrap();
    let mut members = cluster.members().await.unwrap();
    // Profiles come a moment after their members.
    while members.iter().filter(|member| !member.node.is_empty()).count() < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
        members = cluster.members().await.unwrap();
    }
    let proven = |name: &str| {
        let member = members.iter().find(|member| member.node == name).unwrap();
        member.host.as_ref().is_some_and(|host| host.evidence.is_some())
    };
    assert!(proven("own"));
    assert!(!proven("other"), "its witness would close it while that process works");
}

/// Counts exchanges that beat, and the beats in them; rejects those with more than one while it is told to.
#[derive(Clone)]
struct Counting {
    store: MemoryStore,
    exchanges: Arc<AtomicUsize>,
    beats: Arc<AtomicUsize>,
    picky: Arc<AtomicBool>,
}

impl Counting {
    fn new() -> Self {
        Self {
            store: MemoryStore::new(),
            exchanges: Arc::default(),
            beats: Arc::default(),
            picky: Arc::default(),
        }
    }

    /// Exchanges and beats since the last question.
    fn take(&self) -> (usize, usize) {
        (self.exchanges.swap(0, Ordering::SeqCst), self.beats.swap(0, Ordering::SeqCst))
    }
}

impl Store for Counting {
    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }

    fn hints(&self, cluster: &str, wake: Wake) -> Option<HintGuard> {
        self.store.hints(cluster, wake)
    }

    fn exchange<'a>(&'a self, cluster: &'a str, lane: Lane, exchange: Exchange) -> Answer<'a> {
        let beats = exchange.writes.len();
        if lane == Lane::Beat {
            self.exchanges.fetch_add(1, Ordering::SeqCst);
            self.beats.fetch_add(beats, Ordering::SeqCst);
            if beats > 1 && self.picky.load(Ordering::SeqCst) {
                return Box::pin(async { Err(StoreError::rejected("one at a time")) });
            }
        }
        self.store.exchange(cluster, lane, exchange)
    }
}

const MEMBERS: usize = 40;

async fn crowd(store: &Counting) -> Vec<Node> {
    let open = OpenStore::from(store.clone());
    let mut nodes = Vec::new();
    for name in 0..MEMBERS {
        let joining = Node::builder().for_tests().name(name.to_string()).on_behalf();
        nodes.push(joining.join(open.clone()).await.unwrap());
    }
    nodes
}

#[tokio::test]
async fn many_that_stand_for_others_beat_in_one_exchange() {
    let store = Counting::new();
    let nodes = crowd(&store).await;
    // Each has found the common moment by its second beat.
    tokio::time::sleep(Duration::from_secs(1)).await;
    store.take();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let (exchanges, beats) = store.take();
    assert!(beats >= 5 * MEMBERS, "all beat: {beats}");
    assert!(exchanges * 4 <= beats, "{beats} beats took {exchanges} exchanges");
    assert!(nodes.iter().all(|node| node.member().is_some()), "and nobody is lost");
}

/// What is wrong with one beat must not cost the others their trust.
#[tokio::test]
async fn a_store_that_rejects_them_together_gets_them_one_by_one() {
    let store = Counting::new();
    let nodes = crowd(&store).await;
    let ids = || nodes.iter().map(Node::member).collect::<Vec<_>>();
    let before = ids();
    store.picky.store(true, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(ids(), before, "each has the member that it had");
}
