//! The store contract: what incumbent asks of the place where its records live.
//!
//! A store compares and swaps single records. It never judges expiry and never compares clocks:
//! all of that is the core's. A store is therefore a small adapter, and one conformance kit
//! (`incumbent-testkit`) says whether it is a right one.
//!
//! # Rules a store keeps
//!
//! 1. Each [`Write`] of an [`Exchange`] is a compare-and-swap of its own. A refused write never
//!    undoes another, and nothing relies on their order.
//! 2. Reads see every write acknowledged before the exchange was sent (from the primary, from a
//!    quorum), as long as all is well. That keeps things quick: a stale read costs time, but never
//!    two leaders. Whether a read sees a write of its own exchange is left open.
//! 3. A [`Version`] never repeats for a key, not even after a delete. A store without such a
//!    version of its own uses the write's [`Stamp`].
//! 4. A store never sends a write a second time by itself: retries carry new stamps and are the
//!    core's.
//! 5. Errors tell the truth: [`ErrorKind::Unavailable`] only where surely nothing was applied.
//! 6. Hints may be lost, repeated, early or late.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// The future that a store answers with.
pub type Answer<'a> = Pin<Box<dyn Future<Output = Result<Reply, StoreError>> + Send + 'a>>;

/// The future of [`Store::obstacles`].
pub type Obstacles<'a> = Pin<Box<dyn Future<Output = Vec<Obstacle>> + Send + 'a>>;

/// What a hint calls. It is cheap, never blocks and may be called from any thread.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

/// Keeps hints coming; dropping it unsubscribes.
pub type HintGuard = Box<dyn Any + Send + Sync>;

/// Where records live. One value serves any number of clusters and nodes of a process.
pub trait Store: Send + Sync + 'static {
    /// What this store can do. Constant over the life of the value.
    fn capabilities(&self) -> Capabilities;

    /// Applies the writes, each on its own, and answers the reads, in one round trip if it can.
    ///
    /// Dropping the future does not stop what was sent: the outcome is then unknown.
    fn exchange<'a>(&'a self, cluster: &'a str, lane: Lane, exchange: Exchange) -> Answer<'a>;

    /// Calls `wake` after records of this cluster changed by a write with [`Put::hint`] set.
    /// `None` where the store can't push.
    fn hints(&self, cluster: &str, wake: Wake) -> Option<HintGuard>;

    /// The SQL by which an application asserts a term inside its own transaction. `None` where the
    /// store is no database that an application could have its own tables in.
    fn assertion(&self) -> Option<AssertionSql> {
        None
    }

    /// What is set up so that this very server may lose what it acknowledged, or be slow to tell:
    /// each a whole sentence with what to do, as it was when the store was opened. For people
    /// alone.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// Who keeps a write waiting at this moment, as far as the server tells and this user may
    /// know. For people alone, and empty where nothing can be told. It uses no lane and may be
    /// dropped at any time.
    fn obstacles(&self) -> Obstacles<'_> {
        Box::pin(std::future::ready(Vec::new()))
    }
}

/// The SQL by which an application asserts a term inside its own transaction, in the words of the
/// database that holds the lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssertionSql {
    /// One statement that fails by itself unless the term is held, and otherwise makes it stand
    /// until the transaction ends. Its parameters are the cluster, the lease's name and the term.
    pub statement: String,
    /// The same without anything that a role would have to make in the database first: a query that
    /// brings a row if the term is held. **No row: roll back.** Its parameters are the cluster, the
    /// lease's key and the term.
    pub query: Option<String>,
    /// Where the statement can't say what it found: a query for term and holder, with the cluster
    /// and the lease's name for parameters.
    pub standing: Option<String>,
}

/// Which queue an exchange belongs to. Exchanges of different lanes never wait for each other:
/// a store gives the beat a connection of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Lane {
    /// The beat of a member and nothing else that could wait for a lock.
    Beat,
    /// Takes, releases and all other writes; these may wait for a row that an application's
    /// fenced transaction holds, so they have a lock time-out of their own.
    Change,
    /// Reads alone.
    Watch,
}

/// What a store is opened for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Access {
    /// Taking part: whatever the store needs is made where it is missing.
    #[default]
    Full,
    /// Looking: the right to read is enough, and nothing is made or written. Where nothing was
    /// made yet, every record is absent.
    Look,
}

/// What a store says about itself. The conformance kit and `doctor` read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The name of the kind of store, as in its URL: `sqlite`, `postgres`.
    pub kind: &'static str,
    /// Whether [`Store::hints`] works.
    pub push: bool,
    /// Whether records carry an [`Record::age`] from the store's own clock.
    pub clock: bool,
    /// How many writes and reads one exchange may hold; more are split by the caller.
    pub max_operations: usize,
    /// The largest value in bytes.
    pub max_value: usize,
    /// Whether an acknowledged write survives the store's crash or the loss of its power.
    pub durable: bool,
    /// Whether processes other than this one can share the records.
    pub shared: bool,
}

/// Some writes and some reads, sent together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Exchange {
    /// Applied each on its own, in any order.
    pub writes: Vec<Write>,
    /// Answered in this order.
    pub reads: Vec<Read>,
}

/// One change to one record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Write {
    /// Compare and swap.
    Put(Put),
    /// Removes the record, whatever its version. Only terminal records are deleted, so this
    /// needs no comparison. Deleting what is absent succeeds.
    Delete(Key),
}

impl Write {
    /// The same, and whether it has to survive the store's crash.
    #[must_use]
    pub fn durable(mut self, durable: bool) -> Self {
        if let Self::Put(put) = &mut self {
            put.durable = durable;
        }
        self
    }

    /// Whether it has to survive the store's crash.
    #[must_use]
    pub fn is_durable(&self) -> bool {
        match self {
            Self::Put(put) => put.durable,
            Self::Delete(_) => true,
        }
    }

    /// The key that this write is about.
    #[must_use]
    pub fn key(&self) -> &Key {
        match self {
            Self::Put(put) => &put.key,
            Self::Delete(key) => key,
        }
    }
}

/// A compare-and-swap of one record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Put {
    /// Which record.
    pub key: Key,
    /// What must be there for the write to apply.
    pub expect: Expect,
    /// The new content.
    pub value: Vec<u8>,
    /// Unique to this attempt; the version where the store has none of its own.
    pub stamp: Stamp,
    /// Whether others should be woken. Beats never hint.
    pub hint: bool,
    /// Whether it has to survive the store's crash once it is acknowledged. Without, it may be lost
    /// as long as no later write that has to survive is acknowledged, which a store may use to
    /// answer sooner. Only for what nobody builds on but by such a write, and what costs nothing but
    /// time if it is lost.
    pub durable: bool,
}

/// What a write expects to find.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Expect {
    /// No record.
    Absent,
    /// This very version.
    Version(Version),
}

/// One question about one record, or about all below a prefix.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Read {
    /// The record under this key; [`Found::Unchanged`] if it still has the version `unless`.
    Key {
        /// Which record.
        key: Key,
        /// The version that the reader has already, if any.
        unless: Option<Version>,
    },
    /// All records whose key starts with this, in key order.
    Prefix(Key),
}

/// The answer to an [`Exchange`], in the order in which it was asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Reply {
    /// One for each write.
    pub writes: Vec<Outcome>,
    /// One for each read.
    pub reads: Vec<Found>,
}

impl Reply {
    /// What is answered where there is no record and none can be made.
    #[must_use]
    pub fn of_nothing(exchange: &Exchange) -> Self {
        let found = |read: &Read| match read {
            Read::Key { .. } => Found::Absent,
            Read::Prefix(_) => Found::Records(Vec::new()),
        };
        Self {
            writes: vec![Outcome::Refused; exchange.writes.len()],
            reads: exchange.reads.iter().map(found).collect(),
        }
    }
}

/// What became of one write.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It applied; this is the record's version now.
    Applied(Version),
    /// The record is gone.
    Deleted,
    /// It surely did not apply: the record was not as expected, or was locked too long.
    Refused,
}

/// What a read found.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Found {
    /// There is no such record.
    Absent,
    /// The version is still the one that the reader has.
    Unchanged,
    /// The record.
    Record(Record),
    /// The records below a prefix.
    Records(Vec<Record>),
}

/// A record as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// Where it is.
    pub key: Key,
    /// Its content.
    pub value: Vec<u8>,
    /// Its version, compared for equality alone.
    pub version: Version,
    /// How long ago it was written by the store's own clock. For display alone: it decides
    /// nothing and schedules nothing.
    pub age: Option<Duration>,
}

/// The name of a record below its cluster: ASCII, made by [`crate::keys`].
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(Arc<str>);

impl Key {
    /// A key of this text, as [`crate::keys`] encodes it.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// The text of the key.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Names one state of one record. Never repeats for a key.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version(Arc<str>);

impl Version {
    /// A version of this text.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// The text of the version.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Unique to one attempt to write: who wrote, and which of its attempts this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Stamp {
    /// Drawn at random by each writer.
    pub writer: u64,
    /// Counts that writer's attempts, retries included.
    pub attempt: u64,
}

impl Stamp {
    /// The version of a record written with this stamp, for stores that have no other.
    #[must_use]
    pub fn version(&self) -> Version {
        Version::new(&self.to_string())
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}.{}", self.writer, self.attempt)
    }
}

/// Somebody else's lock that a write waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Obstacle {
    /// The cluster and the key of the record that is locked, where that is known.
    pub record: Option<(String, String)>,
    /// Who holds it, since when and what it does, as the server tells: never a statement's values.
    pub holder: String,
}

impl Obstacle {
    /// A lock on this record, or on any, and who holds it.
    #[must_use]
    pub fn new(record: Option<(String, String)>, holder: impl Into<String>) -> Self {
        Self { record, holder: holder.into() }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.record {
            Some((cluster, key)) => {
                write!(f, "{key} of the cluster {cluster} is locked by {}", self.holder)
            }
            None => write!(f, "records are locked by {}", self.holder),
        }
    }
}

/// What went wrong with a whole exchange.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct StoreError {
    /// What the caller may conclude.
    pub kind: ErrorKind,
    /// What happened and what to do about it, without secrets.
    pub message: String,
}

/// What a caller may conclude from an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// Surely nothing was applied. Try again later.
    Unavailable,
    /// Any of the writes may have been applied, or may still be. A time-out is this.
    Unknown,
    /// The set-up is wrong: trying again won't help. Nothing was applied.
    Rejected,
}

impl StoreError {
    /// Surely nothing was applied.
    pub fn unavailable(message: impl fmt::Display) -> Self {
        Self { kind: ErrorKind::Unavailable, message: message.to_string() }
    }

    /// The writes may have been applied.
    pub fn unknown(message: impl fmt::Display) -> Self {
        Self { kind: ErrorKind::Unknown, message: message.to_string() }
    }

    /// The set-up is wrong; the message says what to do.
    pub fn rejected(message: impl fmt::Display) -> Self {
        Self { kind: ErrorKind::Rejected, message: message.to_string() }
    }
}
