//! The same for programs without async. Every call blocks its thread.
//!
//! What there is no counterpart for here, such as the questions of [`Cluster`] or
//! [`Serving::stop`](crate::Serving::stop), is had through [`wait`], and with a time-out through
//! [`wait_for`].
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use incumbent::blocking;
//!
//! let store = blocking::open("solo:")?;
//! let node = blocking::join(incumbent::Node::builder().cluster("billing"), store)?;
//! let scheduler = node.lead("scheduler", |term| {
//!     while term.is_held() {
//!         // Settle invoices.
//!         # break;
//!     }
//!     Ok(())
//! })?;
//! scheduler.finished();
//! node.leave()?;
//! # Ok(())
//! # }
//! ```

mod wait;

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use crate::candidacy::Candidacy;
use crate::cluster::{Cluster, Leader};
use crate::error::{
    CampaignError, Closed, ClusterError, JoinError, LeaveError, OpenError, Unanswered, WorkResult,
};
use crate::event::Notice;
use crate::loss::Lost;
use crate::open::OpenStore;
use crate::subscription::{Observer, Subscription};
use crate::{Builder, Finish, Health, KnownLeader, LeaseName, Member, MemberId, Term, Timing};
use pollster::block_on;

pub use wait::{wait, wait_for};

/// As [`crate::open`].
///
/// # Errors
/// As there.
pub fn open(url: &str) -> Result<OpenStore, OpenError> {
    block_on(crate::open(url))
}

/// As [`Builder::join`].
///
/// # Errors
/// As there.
pub fn join(builder: Builder, store: impl Into<OpenStore>) -> Result<Node, JoinError> {
    block_on(builder.join(store)).map(Node)
}

/// As [`crate::Node::from_env`].
///
/// # Errors
/// As there.
pub fn join_from_env() -> Result<Node, JoinError> {
    block_on(crate::Node::from_env()).map(Node)
}

/// As [`crate::Node`].
#[derive(Clone, Debug)]
pub struct Node(crate::Node);

impl Node {
    /// The same node for async code.
    #[must_use]
    pub fn as_async(&self) -> &crate::Node {
        &self.0
    }

    /// As [`crate::Node::name`].
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// As [`crate::Node::member`].
    #[must_use]
    pub fn member(&self) -> Option<MemberId> {
        self.0.member()
    }

    /// As [`crate::Node::timing`].
    #[must_use]
    pub fn timing(&self) -> &Timing {
        self.0.timing()
    }

    /// As [`crate::Node::cluster`]; its questions go through [`wait`].
    #[must_use]
    pub fn cluster(&self) -> &Cluster {
        self.0.cluster()
    }

    /// As [`crate::Node::leads_cluster`].
    #[must_use]
    pub fn leads_cluster(&self) -> bool {
        self.0.leads_cluster()
    }

    /// As [`crate::Node::members`].
    #[must_use]
    pub fn members(&self) -> Arc<Vec<Member>> {
        self.0.members()
    }

    /// As [`crate::Node::health`].
    #[must_use]
    pub fn health(&self) -> Health {
        self.0.health()
    }

    /// As [`crate::Node::is_leader`].
    #[must_use]
    pub fn is_leader(&self, lease: &str) -> bool {
        self.0.is_leader(lease)
    }

    /// As [`crate::Node::term`].
    #[must_use]
    pub fn term(&self, lease: &str) -> Option<Term> {
        self.0.term(lease)
    }

    /// As [`crate::Node::leader`].
    ///
    /// # Errors
    /// As there.
    pub fn leader(&self, lease: &str) -> Result<Option<Leader>, ClusterError> {
        block_on(self.0.leader(lease))
    }

    /// As [`crate::Node::known_leader`].
    #[must_use]
    pub fn known_leader(&self, lease: &str) -> Option<KnownLeader> {
        self.0.known_leader(lease)
    }

    /// Runs work while this node leads, on a thread of its own; as
    /// [`crate::Node::lead_blocking`].
    ///
    /// # Errors
    /// As there.
    pub fn lead<F>(&self, candidacy: impl Into<Candidacy>, work: F) -> Result<Lead, CampaignError>
    where
        F: Fn(Term) -> WorkResult + Send + Sync + 'static,
    {
        self.0.lead_blocking(candidacy, work).map(Lead)
    }

    /// Runs a job once per tick of a schedule, on a thread of its own; as
    /// [`crate::Node::periodic_blocking`].
    ///
    /// # Errors
    /// As there.
    pub fn periodic<F>(
        &self,
        candidacy: impl Into<Candidacy>,
        schedule: crate::Schedule,
        work: F,
    ) -> Result<Lead, CampaignError>
    where
        F: Fn(crate::Run) -> WorkResult + Send + Sync + 'static,
    {
        self.0.periodic_blocking(candidacy, schedule, work).map(Lead)
    }

    /// Serves a family of duties; as [`crate::Node::serve`]. Describe their work with
    /// [`crate::Family::run_blocking`].
    ///
    /// # Errors
    /// As there.
    pub fn serve(&self, family: crate::FamilyWork) -> Result<crate::Serving, crate::ServeError> {
        self.0.serve(family)
    }

    /// As [`crate::Node::tell_load`].
    pub fn tell_load(&self, load: u64) {
        self.0.tell_load(load);
    }

    /// As [`crate::Node::campaign`].
    ///
    /// # Errors
    /// As there.
    pub fn campaign(&self, candidacy: impl Into<Candidacy>) -> Result<Campaign, CampaignError> {
        self.0.campaign(candidacy).map(Campaign)
    }

    /// As [`crate::Node::try_lead`]. The leadership that it may give derefs to [`Term`] and is
    /// freed by dropping it.
    ///
    /// # Errors
    /// As there.
    pub fn try_lead(
        &self,
        candidacy: impl Into<Candidacy>,
    ) -> Result<crate::Attempt, CampaignError> {
        block_on(self.0.try_lead(candidacy))
    }

    /// As [`crate::Node::slots`].
    ///
    /// # Errors
    /// As there.
    pub fn slots(&self, name: &str, count: u16) -> Result<Slots, crate::SlotsError> {
        self.0.slots(name, count).map(Slots)
    }

    /// As [`crate::Node::run_if_leader`]. The call can't be interrupted, so it should be short;
    /// the lease isn't freed before it has ended.
    pub fn run_if_leader<T>(&self, lease: &str, call: impl FnOnce(Term) -> T) -> Option<T> {
        block_on(self.0.run_if_leader(lease, |term| async move { call(term) }))
    }

    /// As [`crate::Node::subscribe`]; [`Subscription::recv`] and [`Subscription::recv_timeout`] block.
    pub fn subscribe(&self) -> Subscription {
        self.0.subscribe()
    }

    /// As [`crate::Node::observe`].
    pub fn observe(&self, callback: impl FnMut(&Notice) + Send + 'static) -> Observer {
        self.0.observe(callback)
    }

    /// As [`crate::Node::leave`].
    ///
    /// # Errors
    /// As there.
    pub fn leave(&self) -> Result<(), LeaveError> {
        block_on(self.0.leave())
    }
}

/// As [`crate::Lead`].
#[derive(Debug)]
pub struct Lead(crate::Lead);

impl Lead {
    /// As [`crate::Lead::lease`].
    #[must_use]
    pub fn lease(&self) -> &LeaseName {
        self.0.lease()
    }

    /// As [`crate::Lead::term`].
    #[must_use]
    pub fn term(&self) -> Option<Term> {
        self.0.term()
    }

    /// As [`crate::Lead::is_leader`].
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.0.is_leader()
    }

    /// As [`crate::Lead::stop`].
    pub fn stop(&self) -> Finish {
        block_on(self.0.stop())
    }

    /// As [`crate::Lead::finished`].
    pub fn finished(&self) -> Finish {
        block_on(self.0.finished())
    }

    /// As [`Self::finished`], for so long at most: nothing if the work may still run or be started
    /// again by then.
    pub fn finished_timeout(&self, limit: Duration) -> Option<Finish> {
        wait_for(limit, self.0.finished())
    }
}

/// As [`crate::Slots`]. A slot derefs to [`Term`] and is freed by dropping it.
#[derive(Clone, Debug)]
pub struct Slots(crate::Slots);

impl Slots {
    /// As [`crate::Slots::acquire`].
    ///
    /// # Errors
    /// As there.
    pub fn acquire(&self) -> Result<crate::Slot, CampaignError> {
        block_on(self.0.acquire())
    }

    /// As [`crate::Slots::acquire_within`].
    ///
    /// # Errors
    /// As there.
    pub fn acquire_within(
        &self,
        span: std::time::Duration,
    ) -> Result<Option<crate::Slot>, CampaignError> {
        block_on(self.0.acquire_within(span))
    }

    /// As [`crate::Slots::try_acquire`].
    ///
    /// # Errors
    /// As there.
    pub fn try_acquire(&self) -> Result<crate::SlotAttempt, CampaignError> {
        block_on(self.0.try_acquire())
    }
}

/// As [`crate::Campaign`].
#[derive(Debug)]
#[must_use = "dropping it withdraws the candidacy"]
pub struct Campaign(crate::Campaign);

impl Campaign {
    /// As [`crate::Campaign::lease`].
    #[must_use]
    pub fn lease(&self) -> &LeaseName {
        self.0.lease()
    }

    /// As [`crate::Campaign::elected`].
    ///
    /// # Errors
    /// As there.
    pub fn elected(&mut self) -> Result<Leadership, Closed> {
        block_on(self.0.elected()).map(Leadership)
    }

    /// As [`Self::elected`], for so long at most: nothing if this node doesn't lead by then. The
    /// campaign goes on either way, and what it wins in the meantime is kept for the next call; drop
    /// it to stop contending. A limit of zero only looks.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # use incumbent::{Node, blocking};
    /// # let node = blocking::join(Node::builder().name("a"), blocking::open("solo:")?)?;
    /// let mut campaign = node.campaign("scheduler")?;
    /// match campaign.elected_timeout(Duration::from_secs(30))? {
    ///     Some(leadership) => println!("leads in term {}", leadership.term()),
    ///     None => println!("another leads"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As there.
    pub fn elected_timeout(&mut self, limit: Duration) -> Result<Option<Leadership>, Closed> {
        let elected = wait_for(limit, self.0.elected()).transpose()?;
        Ok(elected.map(Leadership))
    }
}

/// As [`crate::Leadership`]. Dropping it frees the lease.
#[derive(Debug)]
#[must_use = "dropping it frees the lease"]
pub struct Leadership(crate::Leadership);

impl Leadership {
    /// As [`Term::lost`].
    pub fn wait_lost(&self) -> Lost {
        block_on(self.0.lost())
    }

    /// As [`Self::wait_lost`], for so long at most: nothing if the term goes on.
    pub fn wait_lost_timeout(&self, limit: Duration) -> Option<Lost> {
        wait_for(limit, self.0.lost())
    }

    /// As [`Term::confirm`].
    ///
    /// # Errors
    /// As there.
    pub fn ask_store(&self) -> Result<bool, Unanswered> {
        block_on(self.0.confirm())
    }

    /// As [`crate::Leadership::resign`].
    ///
    /// # Errors
    /// As there.
    pub fn resign(self) -> Result<(), Unanswered> {
        block_on(self.0.resign())
    }

    /// As [`crate::Leadership::transfer`].
    ///
    /// # Errors
    /// As there, with this leadership.
    #[allow(
        clippy::result_large_err,
        reason = "a leadership that was not handed over comes back, as from the async call"
    )]
    pub fn transfer(self, node: &str) -> Result<(), (Self, ClusterError)> {
        block_on(self.0.transfer(node)).map_err(|(leadership, error)| (Self(leadership), error))
    }
}

impl Deref for Leadership {
    type Target = Term;

    fn deref(&self) -> &Term {
        &self.0
    }
}
