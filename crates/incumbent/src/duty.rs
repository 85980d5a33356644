//! Duties: background work that the cluster's leader spreads over the nodes that can run it.

mod description;
mod family;
mod listing;
mod runner;
mod serving;
mod staff;
mod upcoming;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use incumbent_core::{MemberId, Moment};
use incumbent_duties::{DutyId, DutyStatus};
use tokio_util::sync::CancellationToken;

use crate::assertion::Assertion;
use crate::command::Command;
use crate::error::Unanswered;
use crate::fence::Fence;
use crate::lead::Handed;
use crate::loss::Lost;
use crate::scope::Guarded;
use crate::term::Term;

pub use description::DutyDescription;
pub use family::{Family, FamilyWork, OnDone, family};
pub(crate) use runner::{Counted, Runner};
pub(crate) use serving::Families;
pub use serving::Serving;
pub(crate) use staff::Staff;
pub(crate) use upcoming::Preparing;
pub use upcoming::Upcoming;

/// One duty as the work of its family sees it. Clones speak of the same run; they don't keep it
/// alive.
#[derive(Clone)]
pub struct Duty {
    id: DutyId,
    term: Term,
    drain: Duration,
    waits_for_ready: bool,
    ready: Arc<AtomicBool>,
    parts: Arc<[String]>,
}

impl Duty {
    pub(crate) fn new(id: DutyId, term: Term, staff: &Staff) -> Self {
        let ready = Arc::new(AtomicBool::new(false));
        let parts = staff.parts_of(id.name());
        let waits_for_ready = staff.waits_for_ready;
        Self { id, term, drain: staff.drain, waits_for_ready, ready, parts }
    }

    /// Its id: `family/name`.
    #[must_use]
    pub fn id(&self) -> &DutyId {
        &self.id
    }

    /// What it is made of, if it is a [composite](DutyDescription::parts), as this node's own list
    /// says. A node that runs a duty which only others list finds nothing here.
    #[must_use]
    pub fn parts(&self) -> &[String] {
        &self.parts
    }

    /// Its family.
    #[must_use]
    pub fn family(&self) -> &str {
        self.id.family()
    }

    /// Its name within the family.
    #[must_use]
    pub fn name(&self) -> &str {
        self.id.name()
    }

    /// The member that runs it.
    #[must_use]
    pub fn member(&self) -> &MemberId {
        self.term.member()
    }

    /// The term under which it runs: it grows by one each time the duty changes its node.
    #[must_use]
    pub fn term(&self) -> u64 {
        self.term.term()
    }

    /// The term as a fencing token, to be handed to all that the duty writes to.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.term.fence()
    }

    /// What asserts the duty's term in the database that holds its lease; as [`Term::assertion`].
    #[must_use]
    pub fn assertion(&self) -> Assertion {
        self.term.assertion()
    }

    /// Whether the duty is this node's to run. As cheap as
    /// [`Term::is_held`](crate::Term::is_held); no from the moment at which it is told to stop.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.term.is_held()
    }

    /// Fires when the duty shall stop. Cancelling it yourself ends nothing but what you hung
    /// from it.
    #[must_use]
    pub fn stopping(&self) -> CancellationToken {
        self.term.token()
    }

    /// Waits until the duty shall stop, and says why. Cancel-safe.
    pub async fn stopped(&self) -> Lost {
        self.term.lost().await
    }

    /// By when the duty must have stopped: it is aborted then. Nothing as long as it isn't told
    /// to stop.
    #[must_use]
    pub fn deadline(&self) -> Option<Moment> {
        let told = self.term.grip.lost_at()?;
        Some((told + self.drain).min(self.term.deadline()))
    }

    /// Until when this node may believe that the duty is its own, unless another beat gets
    /// through first.
    #[must_use]
    pub fn trusted_until(&self) -> Moment {
        self.term.deadline()
    }

    /// Puts a future under the duty, so that it ends with it; as
    /// [`Term::guard`](crate::Term::guard). For tasks that the work spawns.
    pub fn guard<F: Future>(&self, future: F) -> Guarded<F> {
        self.term.guard(future)
    }

    /// Asks the store whether the duty is still this node's; as
    /// [`Term::confirm`](crate::Term::confirm).
    ///
    /// # Errors
    /// If the store didn't answer within the request time-out.
    pub async fn confirm(&self) -> Result<bool, Unanswered> {
        self.term.confirm().await
    }

    /// Says what the duty is at, for people: [`Cluster::duties`](crate::Cluster::duties) shows
    /// it, from the node's next report on. 200 characters are kept.
    pub fn progress(&self, text: impl Into<String>) {
        let (duty, text) = (self.id.clone(), text.into());
        self.term.commands.send(Command::Progress { duty, term: self.term(), text });
    }

    /// Says that the duty has started, in families that [wait for it](Family::waits_for_ready).
    /// Said again, or elsewhere, it changes nothing.
    pub fn ready(&self) {
        if !self.ready.swap(true, Ordering::AcqRel) {
            self.tell(DutyStatus::Active);
        }
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    pub(crate) fn tell(&self, status: DutyStatus) {
        let (duty, term) = (self.id.clone(), self.term());
        self.term.commands.send(Command::Status { duty, term, status });
    }
}

impl Handed for Duty {
    fn term(&self) -> &Term {
        &self.term
    }

    fn began(&self) {
        if !self.waits_for_ready {
            self.ready();
        }
    }
}

impl fmt::Debug for Duty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Duty")
            .field("id", &self.id)
            .field("term", &self.term())
            .field("ready", &self.is_ready())
            .finish_non_exhaustive()
    }
}
