use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use incumbent_core::store::{
    Answer, Capabilities, Exchange, Found, HintGuard, Lane, Outcome, Put, Read, Record, Reply,
    Store, StoreError, Version, Wake, Write,
};
use tokio::sync::Semaphore;

use super::Mistake;
use super::shelf::Shelf;
use crate::locked::locked;

/// A small store in memory that is right, or makes one chosen [`Mistake`]. It shows that the kit
/// bites, and is no store to use. A clone is another handle on the same records.
pub struct ModelStore {
    mistake: Option<Mistake>,
    shared: Arc<Shared>,
    connection: Semaphore,
    /// One clone for each handle.
    handles: Arc<()>,
}

struct Shared {
    shelf: Mutex<Shelf>,
    subscribers: Mutex<BTreeMap<u64, (String, Wake)>>,
    subscriptions: AtomicU64,
    exchanges: AtomicU64,
}

impl ModelStore {
    /// A store without mistakes.
    #[must_use]
    pub fn sound() -> Self {
        Self::new(None)
    }

    /// A store that makes this mistake and no other.
    #[must_use]
    pub fn mistaken(mistake: Mistake) -> Self {
        Self::new(Some(mistake))
    }

    fn new(mistake: Option<Mistake>) -> Self {
        let shared = Shared {
            shelf: Mutex::new(Shelf::new(mistake)),
            subscribers: Mutex::default(),
            subscriptions: AtomicU64::new(0),
            exchanges: AtomicU64::new(0),
        };
        let (shared, handles) = (Arc::new(shared), Arc::new(()));
        Self { mistake, shared, connection: Semaphore::new(1), handles }
    }

    fn makes(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    async fn serve(
        &self,
        cluster: &str,
        lane: Lane,
        exchange: Exchange,
    ) -> Result<Reply, StoreError> {
        match self.mistake {
            Some(Mistake::LanesShared) => {
                let _turn = self.connection.acquire().await;
                if lane == Lane::Change && exchange.writes.len() > 10 {
                    tokio::time::sleep(Duration::from_millis(300)).await;
                }
                self.answer(cluster, lane, exchange).await
            }
            Some(Mistake::DropKeepsConnection) => {
                if let Ok(connection) = self.connection.acquire().await {
                    connection.forget();
                }
                tokio::task::yield_now().await;
                let reply = self.answer(cluster, lane, exchange).await;
                self.connection.add_permits(1);
                reply
            }
            _ => self.answer(cluster, lane, exchange).await,
        }
    }

    async fn answer(
        &self,
        cluster: &str,
        lane: Lane,
        exchange: Exchange,
    ) -> Result<Reply, StoreError> {
        let count = self.shared.exchanges.fetch_add(1, Ordering::SeqCst);
        let saved =
            self.makes(Mistake::RefusalUndoesAll).then(|| locked(&self.shared.shelf).clone());
        let mut writes = Vec::with_capacity(exchange.writes.len());
        for (place, write) in exchange.writes.iter().enumerate() {
            writes.push(self.apply(cluster, place, write).await);
        }
        if let (Some(saved), true) = (saved, writes.contains(&Outcome::Refused)) {
            *locked(&self.shared.shelf) = saved;
            writes.fill(Outcome::Refused);
        }
        self.hint(cluster, &exchange.writes);
        if self.makes(Mistake::UnavailableThoughApplied) && lane == Lane::Beat && count % 5 == 4 {
            return Err(StoreError::unavailable("the connection broke"));
        }
        let mut reads = Vec::with_capacity(exchange.reads.len());
        for read in exchange.reads {
            reads.push(self.find(cluster, read).await);
        }
        if self.makes(Mistake::ReadsReversed) {
            reads.reverse();
        }
        Ok(Reply { writes, reads })
    }

    async fn apply(&self, cluster: &str, place: usize, write: &Write) -> Outcome {
        let put = match write {
            Write::Put(put) => put,
            Write::Delete(key) => return locked(&self.shared.shelf).delete(cluster, key),
        };
        if place >= 100 && self.makes(Mistake::BatchTruncated) {
            return Outcome::Applied(put.stamp.version());
        }
        if self.makes(Mistake::CheckThenAct) {
            let matched = locked(&self.shared.shelf).matches(cluster, put);
            tokio::task::yield_now().await;
            return if matched {
                locked(&self.shared.shelf).write(cluster, put)
            } else {
                Outcome::Refused
            };
        }
        let mut shelf = locked(&self.shared.shelf);
        if shelf.matches(cluster, put) {
            shelf.write(cluster, put)
        } else {
            shelf.refuse(cluster, put)
        }
    }

    async fn find(&self, cluster: &str, read: Read) -> Found {
        let (key, unless) = match read {
            Read::Prefix(prefix) => {
                return Found::Records(locked(&self.shared.shelf).records(cluster, &prefix));
            }
            Read::Key { key, unless } => (key, unless),
        };
        let Some(mut record) = locked(&self.shared.shelf).record(cluster, &key) else {
            return Found::Absent;
        };
        if self.makes(Mistake::TornReads) {
            tokio::task::yield_now().await;
            if let Some(later) = locked(&self.shared.shelf).record(cluster, &key) {
                record.value = later.value;
            }
        }
        self.unless(record, unless)
    }

    fn unless(&self, record: Record, unless: Option<Version>) -> Found {
        match unless {
            Some(version) if version == record.version || self.makes(Mistake::UnchangedAlways) => {
                Found::Unchanged
            }
            _ => Found::Record(record),
        }
    }

    fn hint(&self, cluster: &str, writes: &[Write]) {
        let hinted = writes.iter().any(|write| match write {
            Write::Put(Put { hint, .. }) => *hint || self.makes(Mistake::BeatsHint),
            Write::Delete(_) => false,
        });
        if !hinted || self.makes(Mistake::HintsNever) {
            return;
        }
        let subscribers: Vec<_> = locked(&self.shared.subscribers).values().cloned().collect();
        for (_, wake) in subscribers.iter().filter(|(other, _)| other == cluster) {
            wake();
        }
    }
}

impl Clone for ModelStore {
    fn clone(&self) -> Self {
        let (shared, handles) = (Arc::clone(&self.shared), Arc::clone(&self.handles));
        Self { mistake: self.mistake, shared, connection: Semaphore::new(1), handles }
    }
}

impl Drop for ModelStore {
    fn drop(&mut self) {
        // This handle and the one that opens more are the last two.
        if self.makes(Mistake::ForgetsOnClose) && Arc::strong_count(&self.handles) <= 2 {
            locked(&self.shared.shelf).clear();
        }
    }
}

impl Store for ModelStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            kind: "model",
            push: true,
            clock: self.makes(Mistake::AgeFrozen),
            max_operations: usize::MAX,
            max_value: 1 << 20,
            durable: false,
            shared: self.makes(Mistake::ForgetsOnClose),
        }
    }

    fn exchange<'a>(&'a self, cluster: &'a str, lane: Lane, exchange: Exchange) -> Answer<'a> {
        Box::pin(self.serve(cluster, lane, exchange))
    }

    fn hints(&self, cluster: &str, wake: Wake) -> Option<HintGuard> {
        if self.makes(Mistake::PushDeclared) {
            return None;
        }
        let number = self.shared.subscriptions.fetch_add(1, Ordering::SeqCst);
        locked(&self.shared.subscribers).insert(number, (cluster.to_owned(), wake));
        if self.makes(Mistake::GuardIgnored) {
            return Some(Box::new(()));
        }
        Some(Box::new(Subscription { number, shared: Arc::downgrade(&self.shared) }))
    }
}

struct Subscription {
    number: u64,
    shared: Weak<Shared>,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.upgrade() {
            locked(&shared.subscribers).remove(&self.number);
        }
    }
}
