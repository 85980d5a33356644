use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use incumbent_core::store::{
    ErrorKind, Exchange, Expect, Found, Key, Lane, Outcome, Put, Read, Record, Reply, Stamp, Store,
    StoreError, Version, Write,
};

use crate::{Context, Violation, shape};

/// How often an exchange that fails is tried again before the kit gives up.
const PATIENCE: usize = 60;

/// One opened store, used within one cluster. Every reply that passes through is checked for
/// its shape: as many answers as questions, each of the right sort.
#[derive(Clone)]
pub struct Handle {
    context: Context,
    store: Arc<dyn Store>,
    cluster: Arc<str>,
    writer: u64,
    attempts: Arc<AtomicU64>,
}

/// What became of one attempt to write, as far as the writer can tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It applied, and this is the version.
    Applied(Version),
    /// It surely did not apply: the store compared and refused.
    Refused,
    /// It surely did not apply: the store was unavailable.
    Unavailable,
    /// It may have been applied, or may still be.
    Unknown,
}

impl Handle {
    pub(crate) fn new(context: Context, store: Arc<dyn Store>, cluster: &str) -> Self {
        let (writer, attempts) = (context.rng().bits(), Arc::default());
        Self { context, store, cluster: cluster.into(), writer, attempts }
    }

    /// The same handle within another cluster.
    #[must_use]
    pub fn within(&self, cluster: &str) -> Self {
        Self { cluster: cluster.into(), ..self.clone() }
    }

    /// The store itself.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The cluster that this handle is used within.
    #[must_use]
    pub fn cluster(&self) -> &str {
        &self.cluster
    }

    /// A stamp that was never used before.
    #[must_use]
    pub fn stamp(&self) -> Stamp {
        let attempt = self.attempts.fetch_add(1, Ordering::SeqCst).saturating_add(1);
        Stamp { writer: self.writer, attempt }
    }

    /// A write that creates, freshly stamped, without a hint.
    #[must_use]
    pub fn creation(&self, key: &Key, value: &[u8]) -> Put {
        self.replacement(key, Expect::Absent, value)
    }

    /// A write with this expectation, freshly stamped, without a hint.
    #[must_use]
    pub fn replacement(&self, key: &Key, expect: Expect, value: &[u8]) -> Put {
        let (key, value, stamp) = (key.clone(), value.to_vec(), self.stamp());
        Put { key, expect, value, stamp, hint: false, durable: true }
    }

    /// Sends once. The outer error is a reply that no store may give, the inner one the store's.
    pub async fn send(
        &self,
        lane: Lane,
        exchange: Exchange,
    ) -> Result<Result<Reply, StoreError>, Violation> {
        let asked = exchange.clone();
        match self.store.exchange(&self.cluster, lane, exchange).await {
            Ok(reply) => shape::check(&asked, &reply).map(|()| Ok(reply)),
            Err(error) if error.kind == ErrorKind::Rejected => {
                Err(Violation::failure("an exchange", &error))
            }
            Err(error) => {
                self.context.count_error();
                Ok(Err(error))
            }
        }
    }

    /// Sends once and takes every error for a violation.
    pub async fn exchange(&self, lane: Lane, exchange: Exchange) -> Result<Reply, Violation> {
        let sent = self.send(lane, exchange).await?;
        sent.map_err(|error| Violation::failure("an exchange", &error))
    }

    /// Tries to write once.
    pub async fn attempt(&self, lane: Lane, put: Put) -> Result<Effect, Violation> {
        let writes = vec![Write::Put(put)];
        Ok(match self.send(lane, Exchange { writes, reads: Vec::new() }).await? {
            Ok(reply) => match reply.writes.into_iter().next() {
                Some(Outcome::Applied(version)) => Effect::Applied(version),
                Some(Outcome::Refused | Outcome::Deleted) | None => Effect::Refused,
            },
            Err(error) if error.kind == ErrorKind::Unknown => Effect::Unknown,
            Err(_) => Effect::Unavailable,
        })
    }

    /// Writes, whatever it takes: `Some` version if it applied in the end, `None` if refused.
    /// Only for keys that nobody else writes meanwhile, for a write whose outcome is unknown is
    /// told by its content.
    pub async fn put(
        &self,
        key: &Key,
        expect: Expect,
        value: &[u8],
    ) -> Result<Option<Version>, Violation> {
        let mut doubt = false;
        for _ in 0..PATIENCE {
            let put = self.replacement(key, expect.clone(), value);
            match self.attempt(Lane::Change, put).await? {
                Effect::Applied(version) => {
                    self.clear(doubt).await;
                    return Ok(Some(version));
                }
                Effect::Refused => {
                    self.clear(doubt).await;
                    return if doubt { self.settle(key, &expect, value).await } else { Ok(None) };
                }
                Effect::Unknown => doubt = true,
                Effect::Unavailable => {}
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        Err(weary("a write"))
    }

    /// Creates a record that must not be there.
    pub async fn create(&self, key: &Key, value: &[u8]) -> Result<Version, Violation> {
        let created = self.put(key, Expect::Absent, value).await?;
        created.ok_or_else(|| {
            Violation::new(format!("creating {key} was refused, though there is no such record"))
        })
    }

    /// Swaps a record that must have this version.
    pub async fn swap(
        &self,
        key: &Key,
        from: &Version,
        value: &[u8],
    ) -> Result<Version, Violation> {
        let swapped = self.put(key, Expect::Version(from.clone()), value).await?;
        swapped.ok_or_else(|| {
            Violation::new(format!("swapping {key} was refused, though its version is {from:?}"))
        })
    }

    /// Deletes, whatever it takes.
    pub async fn delete(&self, key: &Key) -> Result<(), Violation> {
        let mut doubt = false;
        for _ in 0..PATIENCE {
            let writes = vec![Write::Delete(key.clone())];
            match self.send(Lane::Change, Exchange { writes, reads: Vec::new() }).await? {
                Ok(reply) if reply.writes == [Outcome::Deleted] => {
                    self.clear(doubt).await;
                    return Ok(());
                }
                Ok(_) => {}
                Err(error) => doubt |= error.kind == ErrorKind::Unknown,
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        Err(weary(&format!("deleting {key}")))
    }

    /// The record under this key.
    pub async fn read(&self, key: &Key) -> Result<Option<Record>, Violation> {
        self.read_on(Lane::Watch, key).await
    }

    /// The record under this key, asked on this lane.
    pub async fn read_on(&self, lane: Lane, key: &Key) -> Result<Option<Record>, Violation> {
        match self.ask(lane, Read::Key { key: key.clone(), unless: None }).await? {
            Found::Record(record) => Ok(Some(record)),
            Found::Absent | Found::Unchanged | Found::Records(_) => Ok(None),
        }
    }

    /// All records whose key starts with this.
    pub async fn list(&self, prefix: &Key) -> Result<Vec<Record>, Violation> {
        match self.ask(Lane::Watch, Read::Prefix(prefix.clone())).await? {
            Found::Records(records) => Ok(records),
            Found::Absent | Found::Unchanged | Found::Record(_) => Ok(Vec::new()),
        }
    }

    /// Asks one question, whatever it takes.
    pub async fn ask(&self, lane: Lane, read: Read) -> Result<Found, Violation> {
        let found = self.ask_all(lane, vec![read]).await?;
        found.into_iter().next().ok_or_else(|| Violation::new("a read got no answer"))
    }

    /// Asks these questions in one exchange, whatever it takes.
    pub async fn ask_all(&self, lane: Lane, reads: Vec<Read>) -> Result<Vec<Found>, Violation> {
        for _ in 0..PATIENCE {
            let exchange = Exchange { writes: Vec::new(), reads: reads.clone() };
            if let Ok(reply) = self.send(lane, exchange).await? {
                return Ok(reply.reads);
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        Err(weary("a read"))
    }

    /// Whether this error may come of injected faults.
    pub(crate) fn tolerates(&self, error: &StoreError) -> bool {
        self.context.faulty() && error.kind != ErrorKind::Rejected
    }

    /// Deletes every record of the cluster, as well as that goes.
    pub(crate) async fn wipe(&self) {
        let Ok(records) = self.list(&Key::new("")).await else { return };
        let most = self.store.capabilities().max_operations.clamp(1, 500);
        for some in records.chunks(most) {
            let writes = some.iter().map(|record| Write::Delete(record.key.clone())).collect();
            let _ = self.send(Lane::Change, Exchange { writes, reads: Vec::new() }).await;
        }
    }

    /// After a refusal: did an earlier attempt of this very write apply?
    async fn settle(
        &self,
        key: &Key,
        expect: &Expect,
        value: &[u8],
    ) -> Result<Option<Version>, Violation> {
        Ok(self.read(key).await?.and_then(|record| {
            let moved = *expect != Expect::Version(record.version.clone());
            (moved && record.value == value).then_some(record.version)
        }))
    }

    /// Waits for injected stragglers, so that none of them lands in what comes next.
    async fn clear(&self, doubt: bool) {
        if doubt {
            self.context.quiet().await;
        }
    }
}

fn weary(what: &str) -> Violation {
    Violation::new(format!("{what} came to no clear end in {PATIENCE} attempts"))
}
