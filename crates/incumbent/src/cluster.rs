//! A cluster seen from outside: who leads, who is a member, and what an operator asks for.

mod asks;
mod audit;
mod duties;
mod family;
mod hints;
mod intents;
mod journal;
pub(crate) mod json;
mod owners;
mod picture;
mod plan;
mod reading;
mod remains;
mod repair;
mod rollout;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use incumbent_core::names::{self, LeaseKind, NameError};
use incumbent_core::records::{Change, LeaseRecord, MemberState, Unreadable};
use incumbent_core::store::{Exchange, Lane, Obstacle, Outcome, Reply, StoreError, Write};
use incumbent_core::{LeaseName, MemberId};
use serde::Serialize;

use crate::driver::exchange;
use crate::driver::obstacles;
use crate::driver::thread;
use crate::error::ClusterError;
use crate::hint::HintSettings;
use crate::node::member::Member;
use crate::open::OpenStore;

pub use asks::{Asked, Strictness};
pub use duties::{DutyCondition, DutyStanding, Pinned, Workload};
pub(crate) use journal::{JobRecord, Noted, Scribe};
pub use journal::{Journal, LastSuccess};
pub use owners::{KnownOwner, Owners};
pub use plan::{Explanation, PlannedMove, Preview};
pub use repair::{Damage, Mended, Remedy, RepairOptions};
pub use rollout::{RolloutStanding, RolloutState, VersionStanding};
pub use watch::LeaseWatch;

/// How long one request to the store may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// A cluster seen from outside. A program can ask it who leads, and ask the leader to resign,
/// without joining and without contending.
///
/// Its futures are cancel-safe where they only read. If a future that asks for a change is dropped,
/// the change may have been carried out or not.
#[derive(Clone, Debug)]
pub struct Cluster {
    pub(crate) store: OpenStore,
    pub(crate) name: Arc<str>,
    /// How those are told of changes who wait for them, where the store pushes nothing.
    pub(crate) hints: Arc<HintSettings>,
}

/// Who holds a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leader {
    /// The name of its node.
    pub node: String,
    /// Its member id.
    pub member: MemberId,
    /// Where it can be reached.
    pub address: Option<String>,
    /// Its term.
    pub term: u64,
    /// What it wants others to know.
    pub payload: Option<String>,
    /// Since when, by its own wall clock in milliseconds since 1970: for display alone.
    pub since_ms: Option<u64>,
    /// The state of its member: alive, or evicted so short a time ago that the lease is not free
    /// yet.
    pub state: MemberState,
    /// How long ago it beat by the store's clock, where it has one. For display alone: more than
    /// its [`Self::ttl`] means that nodes that watch it will take it for gone.
    pub age: Option<Duration>,
    /// How long others wait for it.
    pub ttl: Duration,
}

/// A lease as it stands in the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeaseState {
    /// Which lease.
    pub lease: String,
    /// Its present or last term; 0 if nobody ever held it.
    pub term: u64,
    /// Who holds it. Nobody, if it is free or its holder's member is closed.
    pub leader: Option<Leader>,
    /// Its last changes of hands, oldest first.
    pub changes: Vec<Change>,
    /// Why nobody can say who leads: the lease's record, or that of its holder, can't be read. Then
    /// [`Self::leader`] is nobody, and the lease isn't free.
    pub unreadable: Option<Unreadable>,
}

impl LeaseState {
    /// A lease that nobody ever held.
    fn unheld(name: &str) -> Self {
        let lease = name.to_owned();
        Self { lease, term: 0, leader: None, changes: Vec::new(), unreadable: None }
    }
}

impl Leader {
    /// Whether it was not heard of for its ttl, by the store's clock: it is probably gone, and nobody who
    /// waits for it has noticed. For display alone.
    #[must_use]
    pub fn is_overdue(&self) -> bool {
        json::is_overdue(self.state, self.age, Some(self.ttl))
    }

    /// The holder that the record names, if it names one.
    pub(crate) fn new(record: &LeaseRecord, state: MemberState, ttl: Duration) -> Option<Self> {
        let holder = record.holder.as_ref()?;
        Some(Self {
            node: holder.node.clone(),
            member: holder.member.clone(),
            address: holder.address.clone(),
            term: record.term,
            payload: record.payload.clone(),
            since_ms: record.since_ms(),
            state,
            age: None,
            ttl,
        })
    }
}

impl Cluster {
    /// The cluster of this name in a store.
    ///
    /// # Errors
    /// If the name is not valid.
    pub fn new(store: impl Into<OpenStore>, name: &str) -> Result<Self, NameError> {
        names::check("cluster", name)?;
        Ok(Self { store: store.into(), name: name.into(), hints: Arc::default() })
    }

    /// The same with these settings for hints to its nodes. They matter where the store pushes nothing: a
    /// request then tells the nodes that have to act on it. By default, it tells nodes of this host.
    #[must_use]
    pub fn with_hints(self, hints: HintSettings) -> Self {
        Self { hints: Arc::new(hints), ..self }
    }

    /// Its settings for hints.
    #[must_use]
    pub fn hints(&self) -> &HintSettings {
        &self.hints
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The store that it is in.
    #[must_use]
    pub fn store(&self) -> &OpenStore {
        &self.store
    }

    /// Who leads now.
    ///
    /// That is what the store says. A leader whose process has just died is named until others
    /// have seen it expire.
    ///
    /// # Errors
    /// If the store can't be reached or the record can't be read.
    pub async fn leader(&self, lease: &str) -> Result<Option<Leader>, ClusterError> {
        Ok(self.lease(lease).await?.leader)
    }

    /// How a lease stands now.
    ///
    /// # Errors
    /// If the store can't be reached or the record can't be read.
    pub async fn lease(&self, lease: &str) -> Result<LeaseState, ClusterError> {
        let (this, lease) = (self.clone(), lease_name(lease)?);
        self.run(async move { this.read_lease(&lease).await }).await
    }

    /// All leases that anybody ever held, in the order of their names, with the lease of the
    /// cluster's own leader. [`Self::duties`] has those of duties. Of one that can't be read the
    /// state says so.
    ///
    /// # Errors
    /// If the store can't be reached.
    pub async fn leases(&self) -> Result<Vec<LeaseState>, ClusterError> {
        let this = self.clone();
        self.run(async move { this.read_leases().await }).await
    }

    /// All members, closed ones that are still visible too, in the order in which they joined. Those
    /// whose records can't be read are not among them: [`Self::unreadable`] has their keys.
    ///
    /// # Errors
    /// If the store can't be reached.
    pub async fn members(&self) -> Result<Vec<Member>, ClusterError> {
        let this = self.clone();
        self.run(async move { this.read_members().await }).await
    }

    /// Whose locks keep writes of anybody waiting at this moment, as far as the server tells and
    /// this user may know: an application's fenced transaction that stays open, for instance.
    /// Empty where nobody waits, or where that can't be told.
    ///
    /// # Errors
    /// If incumbent's own thread can't be started.
    pub async fn obstacles(&self) -> Result<Vec<Obstacle>, ClusterError> {
        let store = self.store.clone();
        self.run(async move {
            tokio::select! {
                found = store.obstacles() => Ok(found),
                () = thread::sleep_until(exchange::within(PATIENCE)) => Ok(Vec::new()),
            }
        })
        .await
    }

    /// The live member of this id, or of the node of this name.
    pub(crate) async fn live_member(&self, name: &str) -> Result<MemberId, ClusterError> {
        let members = self.members().await?;
        let alive = || members.iter().filter(|member| member.is_alive());
        if let Some(member) = alive().find(|member| member.id.as_str() == name) {
            return Ok(member.id.clone());
        }
        let mut ids = alive().filter(|member| member.node == name).map(|member| member.id.clone());
        let first =
            ids.next().ok_or_else(|| ClusterError::NoSuchMember { name: name.to_owned() })?;
        let mut ids: Vec<MemberId> = ids.collect();
        if ids.is_empty() {
            return Ok(first);
        }
        ids.insert(0, first);
        Err(ClusterError::Ambiguous { name: name.to_owned(), ids })
    }

    /// Runs a question to the store on incumbent's thread.
    async fn run<T: Send + 'static>(
        &self,
        question: impl Future<Output = Result<T, ClusterError>> + Send + 'static,
    ) -> Result<T, ClusterError> {
        let task =
            thread::spawn(question).map_err(|error| ClusterError::Thread(error.to_string()))?;
        task.await.unwrap_or_else(|error| {
            let said = format!("the store failed in the middle of an exchange: {error}");
            Err(ClusterError::Store(StoreError::unknown(said)))
        })
    }

    async fn exchange(&self, lane: Lane, exchange: Exchange) -> Result<Reply, StoreError> {
        let asked = (exchange.writes.len(), exchange.reads.len());
        let key = |write: &Write| write.key().as_str().to_owned();
        let keys: Vec<String> = exchange.writes.iter().map(key).collect();
        let deadline = exchange::within(PATIENCE);
        let reply =
            exchange::send(self.store.clone(), Arc::clone(&self.name), lane, exchange, deadline)
                .await?;
        if (reply.writes.len(), reply.reads.len()) != asked {
            return Err(StoreError::unknown("the store answered less than it was asked"));
        }
        // Refused by a lock it would look as if others kept changing it.
        if asked.0 > 0 && reply.writes.iter().all(|outcome| *outcome == Outcome::Refused) {
            let told = obstacles::told(&self.store, &keys);
            if !told.is_empty() {
                let waited = "nothing was changed, because the record stayed locked";
                return Err(StoreError::unavailable(format!("{waited}{told}")));
            }
        }
        Ok(reply)
    }
}

/// The name of a lease as people give it, that of the cluster's leader and of slots included.
fn lease_name(name: &str) -> Result<LeaseName, NameError> {
    if LeaseKind::of(name) == LeaseKind::Leader {
        return Ok(LeaseName::leader());
    }
    LeaseName::parse_slot(name).map_or_else(|| LeaseName::new(name), Ok)
}
