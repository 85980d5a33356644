//! The same for programs without async. Every call blocks its thread.
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

use std::ops::Deref;
use std::sync::Arc;

use crate::candidacy::Candidacy;
use crate::cluster::{Cluster, Leader, LeaseState, Requested};
use crate::error::{
    CampaignError, Closed, ClusterError, JoinError, LeaveError, OpenError, Unanswered, WorkResult,
};
use crate::event::Notice;
use crate::loss::Lost;
use crate::open::OpenStore;
use crate::subscription::{Observer, Subscription};
use crate::{Builder, Finish, Member, MemberId, Term};
use pollster::block_on;

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

    /// As [`crate::Node::members`].
    #[must_use]
    pub fn members(&self) -> Arc<Vec<Member>> {
        self.0.members()
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

    /// Serves a family of duties; as [`crate::Node::serve`]. Describe their work with
    /// [`crate::Family::run_blocking`].
    ///
    /// # Errors
    /// As there.
    pub fn serve(&self, family: crate::FamilyWork) -> Result<crate::Serving, crate::ServeError> {
        self.0.serve(family)
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

    /// As [`crate::Node::run_if_leader`]. The call can't be interrupted, so it should be short;
    /// the lease isn't freed before it has ended.
    pub fn run_if_leader<T>(&self, lease: &str, call: impl FnOnce(Term) -> T) -> Option<T> {
        block_on(self.0.run_if_leader(lease, |term| async move { call(term) }))
    }

    /// As [`crate::Node::subscribe`]; [`Subscription::recv`] blocks.
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
}

/// As [`crate::Campaign`].
#[derive(Debug)]
#[must_use = "dropping it withdraws the candidacy"]
pub struct Campaign(crate::Campaign);

impl Campaign {
    /// As [`crate::Campaign::elected`].
    ///
    /// # Errors
    /// As there.
    pub fn elected(&mut self) -> Result<Leadership, Closed> {
        block_on(self.0.elected()).map(Leadership)
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
}

impl Deref for Leadership {
    type Target = Term;

    fn deref(&self) -> &Term {
        &self.0
    }
}

/// As [`Cluster::lease`].
///
/// # Errors
/// As there.
pub fn lease(cluster: &Cluster, lease: &str) -> Result<LeaseState, ClusterError> {
    block_on(cluster.lease(lease))
}

/// As [`Cluster::members`].
///
/// # Errors
/// As there.
pub fn members(cluster: &Cluster) -> Result<Vec<Member>, ClusterError> {
    block_on(cluster.members())
}

/// As [`Cluster::request_resign`].
///
/// # Errors
/// As there.
pub fn request_resign(cluster: &Cluster, lease: &str) -> Result<Requested, ClusterError> {
    block_on(cluster.request_resign(lease))
}
