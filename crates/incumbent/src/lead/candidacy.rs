use std::time::Duration;

use incumbent_core::names::NameError;
use incumbent_core::{self as core, LeaseName, Preference};

/// For which lease a node stands, and how.
///
/// Wherever one is asked for, the lease's name alone will do:
///
/// ```
/// # use incumbent::Candidacy;
/// let plain = Candidacy::from("scheduler");
/// let favourite = Candidacy::new("scheduler").priority(200).payload("http://10.0.0.7:9000");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidacy {
    lease: Wanted,
    candidacy: core::Stance,
    pub(crate) grace: Option<Duration>,
    pub(crate) overrun: Overrun,
    pub(crate) watchdog: Option<Duration>,
}

/// What a candidacy is for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Wanted {
    /// A lease of this name, as somebody gave it.
    Named(String),
    /// One of incumbent's own.
    Own(LeaseName),
}

/// What to do about work that can't be ended: blocking work, or a task that never yields.
///
/// It applies at the point where other work is aborted: after the grace period, or when trust is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Overrun {
    /// Report it as an error and wait for it. Its lease is not freed as long as it runs. If trust
    /// is over too, others take the lease when it has run out, and then only a fence protects.
    #[default]
    Report,
    /// Abort the process, so that the work surely ends before others take over.
    AbortProcess,
}

impl Candidacy {
    /// Stands for this lease like anybody else.
    #[must_use]
    pub fn new(lease: impl Into<String>) -> Self {
        Self::of(Wanted::Named(lease.into()))
    }

    /// Stands for a lease of incumbent's own, whose name no application may use.
    pub(crate) fn own(lease: LeaseName) -> Self {
        Self::of(Wanted::Own(lease))
    }

    fn of(lease: Wanted) -> Self {
        Self {
            lease,
            candidacy: core::Stance::default(),
            grace: None,
            overrun: Overrun::default(),
            watchdog: None,
        }
    }

    /// What others can read beside the leader's name, such as where it can be reached.
    #[must_use]
    pub fn payload(mut self, payload: impl Into<String>) -> Self {
        self.candidacy.payload = Some(payload.into());
        self
    }

    /// Which node goes first when the lease is free: from 0, which waits a third of the ttl, to 255,
    /// which doesn't wait. The delay is never longer, so a dead favourite keeps nobody waiting
    /// for long. Without a priority, nobody waits.
    #[must_use]
    pub fn priority(mut self, priority: u8) -> Self {
        self.candidacy.preference = Preference::Priority(priority);
        self
    }

    /// The longer a node has been a member, the less it waits when the lease is free.
    #[must_use]
    pub fn prefer_longest_running(mut self) -> Self {
        self.candidacy.preference = Preference::LongestRunning;
        self
    }

    /// Never takes the lease, and only follows it, so that
    /// [`Node::known_leader`](crate::Node::known_leader) knows who leads.
    #[must_use]
    pub fn follow_only(mut self) -> Self {
        self.candidacy.electable = false;
        self
    }

    /// How long the work may take to end in order, instead of the node's own grace period.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = Some(grace);
        self
    }

    /// What to do about work that can't be ended.
    #[must_use]
    pub fn on_overrun(mut self, overrun: Overrun) -> Self {
        self.overrun = overrun;
        self
    }

    /// Promises that the work reports progress ([`Term::progressed`](crate::Term::progressed)) at least this
    /// often, from its start on. After a silence of that length, the work is ended as after its grace period,
    /// and the lease is freed as after a failure. So a leader that beats but does nothing is replaced
    /// (F50). For work that the library runs; a [`Campaign`](crate::Campaign) ignores it.
    #[must_use]
    pub fn watchdog(mut self, patience: Duration) -> Self {
        self.watchdog = Some(patience);
        self
    }

    pub(crate) fn name(&self) -> Result<LeaseName, NameError> {
        match &self.lease {
            Wanted::Named(name) => LeaseName::new(name),
            Wanted::Own(lease) => Ok(lease.clone()),
        }
    }

    pub(crate) fn core(&self) -> core::Stance {
        self.candidacy.clone()
    }

    pub(crate) fn payload_bytes(&self) -> usize {
        self.candidacy.payload.as_ref().map_or(0, String::len)
    }
}

impl From<&str> for Candidacy {
    fn from(lease: &str) -> Self {
        Self::new(lease)
    }
}

impl From<String> for Candidacy {
    fn from(lease: String) -> Self {
        Self::new(lease)
    }
}

impl From<&String> for Candidacy {
    fn from(lease: &String) -> Self {
        Self::new(lease.as_str())
    }
}

impl From<&LeaseName> for Candidacy {
    fn from(lease: &LeaseName) -> Self {
        Self::new(lease.as_str())
    }
}
