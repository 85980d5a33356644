//! Leader election, membership, fencing and work placement on the store that the application already runs.
//!
//! Any number of processes join a cluster, one of them leads a lease, and its work runs there and
//! nowhere else:
//!
//! ```
//! use incumbent::Node;
//!
//! # async fn settle_invoices(_: incumbent::Fence) -> Result<(), std::io::Error> { Ok(()) }
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = incumbent::open("solo:").await?; // or "sqlite:app.db", and others
//! let node = Node::builder().cluster("billing").name("billing-1").join(store).await?;
//!
//! // Runs while this node leads; cancelled when it stops leading; called again when it leads again.
//! let scheduler = node.lead("scheduler", |term| async move {
//!     while term.is_held() {
//!         settle_invoices(term.fence()).await?;
//!         # break;
//!     }
//!     Ok(()) // Ok: free the lease and stop. Err or panic: free it, back off, contend again.
//! })?;
//! # scheduler.finished().await;
//!
//! node.leave().await?; // work stops, leases are freed, the member leaves
//! # Ok(())
//! # }
//! ```
//!
//! # Work that is spread over all nodes
//!
//! A *duty* is a named piece of background work that runs on one node at a time. Every node says
//! which duties there are and which it can run. The cluster's leader spreads them evenly, and
//! moves them when nodes come and go:
//!
//! ```
//! use incumbent::{Node, family};
//!
//! # async fn project(_: &str, _: incumbent::Fence) -> Result<(), std::io::Error> { Ok(()) }
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let store = incumbent::open("solo:").await?;
//! # let node = Node::builder().cluster("billing").name("billing-1").join(store).await?;
//! # let mut notices = node.subscribe();
//! let serving = node.serve(family("projection").duties(["orders", "invoices"]).run(
//!     |duty| async move {
//!         while duty.is_held() {
//!             project(duty.name(), duty.fence()).await?;
//!             # duty.lost().await;
//!         }
//!         Ok(()) // told to stop; or done, if it still was this node's
//!     },
//! ))?;
//! serving.add("returns")?; // lists may change while they are served
//! # while !matches!(notices.recv().await, Some(n) if matches!(n.event, incumbent::Event::DutyStarted { .. })) {}
//! # node.leave().await?;
//! # Ok(())
//! # }
//! ```
//!
//! [`Family`] says how duties start, end and stop, [`DutyDescription`] where one may run, and
//! [`Cluster`] what operators can see and ask for.
//!
//! # What to use when
//!
//! | you want | use |
//! | --- | --- |
//! | work that runs while this node leads | [`Node::lead`], [`Node::lead_with`], [`Node::lead_blocking`] |
//! | work spread over all nodes | [`Node::serve`], [`family`] |
//! | a job once per interval, or by a cron expression, in the whole cluster | [`Node::periodic`], [`Schedule`] |
//! | up to a number of holders of something, each with a fence | [`Node::slots`], [`Slots::acquire`] |
//! | a guard instead of a closure | [`Node::campaign`], [`Campaign::elected`] |
//! | one attempt, and how it went | [`Node::try_lead`] |
//! | one call, only if this node leads | [`Node::run_if_leader`] |
//! | the cheap question "do I lead?" | [`Term::is_held`], [`Node::is_leader`] |
//! | the sure answer | [`Term::confirm`], or a [`Fence`] where the work writes |
//! | who leads, at once and from memory, and each new leader | [`Node::known_leader`], [`Event::LeaderChanged`] |
//! | who leads, without taking part | [`open_to_look`], [`Cluster::leader`], [`Cluster::watch_lease`] |
//! | what happens, in order | [`Node::subscribe`], [`Node::on_notice`] |
//! | whether this node and its store are well, for a probe | [`Node::health`] |
//! | figures for dashboards: the margin, elections, gaps, latencies | [`Node::metrics`] |
//! | a node that doesn't lead the cluster, or only if it must | [`Builder::cluster_lead`] |
//! | the leader to step down | [`Cluster::request_resign`], [`Cluster::request_transfer`] |
//! | when a periodic job last succeeded | [`Cluster::last_success`] |
//! | who runs a duty, at once and from memory | [`Node::owners`], [`Cluster::owners`] |
//! | which duty runs where, and why | [`Cluster::duties`], [`Cluster::where_is`], [`Cluster::explain`] |
//! | duties placed in your own way, and tests for that | [`placement`] |
//! | a duty or node treated specially | [`Cluster::pin`], [`Cluster::pause`], [`Cluster::drain`] and others |
//! | quick hand-overs between hosts where the store pushes nothing | [`HintSettings`], [`Builder::hints`] |
//! | others to take over at once if this process is killed | [`witness::init`] |
//! | all of this without async | [`blocking`] |
//! | your own code tested in virtual time | the module `testing`, with the feature of that name |
//!
//! # What a lease can promise
//!
//! At no instant do two members trust that they hold the same lease, whatever processes, networks
//! and stores do, as long as clocks run at about the same rate. A request that was sent to the outside
//! world just before trust ended may still arrive later. Hand the [`Fence`] to the system that the work
//! writes to, and let it refuse older ones.
//!
//! # Threads
//!
//! All nodes of a process beat on one thread of incumbent's own, which also talks to the stores. A
//! second thread makes sure that work ends. The application's work runs on its own tokio runtime,
//! and its placements on threads of their own. Yet another thread hands incumbent's log to the
//! application's `tracing` subscriber. Blocked workers, a slow placement or a stuck log cost no
//! leadership, and a slow store blocks no worker. All futures of this crate can be awaited on any executor.
//!
//! A forked child of the process leads nothing, whatever its parent did. It may join by itself.
//!
//! Numbers such as F10 and O6 stand for failures. `docs/failures.md` in the repository tells what happened
//! elsewhere (F) or here (O), and what happens now.

pub mod blocking;
mod cluster;
mod driver;
mod duty;
mod error;
mod hint;
mod lead;
mod node;
mod open;
#[cfg(feature = "testing")]
pub mod testing;

pub use cluster::{
    Asked, Cluster, Damage, DutyCondition, DutyStanding, Explanation, KnownOwner, LastSuccess,
    Leader, LeaseState, LeaseWatch, Mended, Owners, Pinned, PlannedMove, Preview, Remedy,
    RepairOptions, RolloutStanding, RolloutState, Strictness, VersionStanding, Workload,
};
pub use driver::clock;
#[cfg(feature = "mutants")]
pub use driver::mutant::DriverMutant;
pub use duty::{Duty, DutyDescription, Family, FamilyWork, OnDone, Serving, Upcoming, family};
pub use error::{
    BoxError, CampaignError, Closed, ClusterError, EnvironmentError, JoinError, LeaveError,
    OpenError, ServeError, Unanswered, Unfreed, WorkResult,
};
pub use hint::{HintKey, HintKeyError, HintSettings, HintSettingsError};
pub use lead::assertion::Assertion;
pub use lead::attempt::{Attempt, OtherLeader};
pub use lead::campaign::Campaign;
pub use lead::candidacy::{Candidacy, Overrun};
pub use lead::fence::Fence;
pub use lead::known::KnownLeader;
pub use lead::leadership::Leadership;
pub use lead::loss::{Loss, Lost};
pub use lead::periodic::{CatchUp, Run, Schedule, ScheduleError};
pub use lead::scope::Guarded;
pub use lead::slots::{Slot, SlotAttempt, Slots, SlotsError};
pub use lead::term::Term;
pub use lead::{Finish, LeaderTask};
pub use node::Node;
pub use node::builder::Builder;
pub use node::environment::parse_span;
pub use node::event::{Event, Notice, State};
pub use node::health::{Health, Standing, StoreHealth};
pub use node::member::Member;
pub use node::subscription::{Callback, Subscription};
pub use node::{metrics, placement, witness};
pub use open::{OpenStore, open, open_to_look, schemes};

pub use node::host::name as host_name;

#[doc(hidden)]
pub use cluster::Journal;
#[doc(hidden)]
pub use incumbent_core::keys;
pub use incumbent_core::names::NameError;
/// What `incumbent serve` checks names by before it asks for anything.
#[doc(hidden)]
pub use incumbent_core::names::check as check_name;
pub use incumbent_core::records::Extra;
pub use incumbent_core::records::{
    Act, Ask, Canary, Change, ChangeKind, ClusterLead, HostIdentity, Intent, IntentState,
    MemberState, Overdue, Unreadable,
};
pub use incumbent_core::settings::TimingError;
pub use incumbent_core::store;
pub use incumbent_core::{LeaseKind, LeaseName, MemberId, Moment, Past, Rhythm, Timing};
pub use incumbent_duties::DutyId;
pub use incumbent_duties::records::Moved;
pub use incumbent_duties::survey::Trial;
pub use incumbent_duties::version::Basis;
#[cfg(feature = "etcd")]
pub use incumbent_etcd as etcd;
pub use incumbent_memory::MemoryStore;
#[cfg(feature = "mysql")]
pub use incumbent_mysql as mysql;
#[cfg(feature = "nats")]
pub use incumbent_nats as nats;
#[cfg(feature = "object-storage")]
pub use incumbent_object as object_storage;
#[cfg(feature = "postgres")]
pub use incumbent_postgres as postgres;
#[cfg(feature = "redis")]
pub use incumbent_redis as redis;
#[cfg(feature = "sqlite")]
pub use incumbent_sqlite as sqlite;
/// What [`Term::token`] gives.
pub use tokio_util::sync::CancellationToken;
