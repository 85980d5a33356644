//! Duties: background work that the cluster's leader spreads over the nodes that can run it.

mod description;
mod family;
mod list;
mod runtime;
mod serving;
mod tending;
mod upcoming;

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use incumbent_core::Moment;
use incumbent_duties::{DutyId, DutyStatus};

use crate::driver::command::Command;
use crate::lead::Handed;
use crate::lead::term::Term;

pub use description::DutyDescription;
pub use family::{Family, FamilyWork, OnDone, family};
pub(crate) use runtime::FamilyRuntime;
pub(crate) use serving::Families;
pub use serving::Serving;
pub(crate) use tending::{Counted, Tending};
pub(crate) use upcoming::Preparing;
pub use upcoming::Upcoming;

/// One duty as the work of its family sees it. Clones speak of the same run; they don't keep it
/// alive.
///
/// The [`Term`] that it derefs to answers all questions about the term under which it runs: whether
/// it [is held](Term::is_held), when it [must stop](Term::token), its [`fence`](Term::fence). That term
/// grows by one each time the duty changes its node.
#[derive(Clone)]
pub struct Duty {
    id: DutyId,
    term: Term,
    grace: Duration,
    waits_for_ready: bool,
    give_up: u32,
    ready: Arc<AtomicBool>,
    parts: Arc<[String]>,
}

impl Duty {
    pub(crate) fn new(id: DutyId, term: Term, family: &FamilyRuntime) -> Self {
        Self {
            term,
            grace: family.runner.grace,
            waits_for_ready: family.waits_for_ready,
            give_up: family.restart.give_up,
            ready: Arc::new(AtomicBool::new(false)),
            parts: family.parts_of(id.name()),
            id,
        }
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

    /// The moment by which the duty must have stopped; it is aborted then. `None` as long as it isn't
    /// told to stop. One that has not said that it is [ready](Self::ready) is aborted at once.
    #[must_use]
    pub fn deadline(&self) -> Option<Moment> {
        let told = self.term.tenure.lost_at()?;
        Some((told + Handed::grace(self, self.grace)).min(self.term.trusted_until()))
    }

    /// Says what the duty is doing, for people: [`Cluster::duties`](crate::Cluster::duties) shows
    /// it from the node's next report on. The first 200 characters are kept.
    pub fn progress(&self, text: impl Into<String>) {
        self.term.progressed();
        let (duty, text) = (self.id.clone(), text.into());
        self.term.commands.send(Command::Progress { duty, term: self.term.number(), text });
    }

    /// Says that the duty has started, in families that [wait for it](Family::waits_for_ready).
    /// Calling it again, or in other families, changes nothing.
    pub fn ready(&self) {
        if !self.ready.swap(true, Ordering::AcqRel) {
            self.term.progressed();
            self.tell(DutyStatus::Active);
        }
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    pub(crate) fn tell(&self, status: DutyStatus) {
        let (duty, term) = (self.id.clone(), self.term.number());
        self.term.commands.send(Command::Status { duty, term, status });
    }
}

impl Deref for Duty {
    type Target = Term;

    fn deref(&self) -> &Term {
        &self.term
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

    fn grace(&self, grace: Duration) -> Duration {
        // A start that has not come to its end is not worth waiting for.
        if self.is_ready() { grace } else { Duration::ZERO }
    }

    fn stuck(&self, error: &str) {
        let (times, error) = (self.give_up, error.to_owned());
        self.tell(DutyStatus::Failing { times, error, gave_up: true });
    }
}

impl fmt::Debug for Duty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Duty")
            .field("id", &self.id)
            .field("term", &self.term.number())
            .field("ready", &self.is_ready())
            .finish_non_exhaustive()
    }
}
