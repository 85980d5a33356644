use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use tokio_util::sync::CancellationToken;

use super::schedule::system_time;
use crate::assertion::Assertion;
use crate::error::Unanswered;
use crate::fence::Fence;
use crate::loss::Lost;
use crate::scope::Guarded;
use crate::term::Term;

/// One run of a periodic job, as its work sees it. Clones speak of the same run; they don't keep
/// it alive.
#[derive(Clone)]
pub struct Run {
    term: Term,
    tick: u64,
    since: u64,
    completed: Arc<AtomicBool>,
}

impl Run {
    pub(super) fn new(term: Term, tick: u64, since: u64) -> Self {
        Self { term, tick, since, completed: Arc::new(AtomicBool::new(false)) }
    }

    /// The tick that this run is for: when the job was due by its schedule, without jitter. Two
    /// runs for the same tick give the same time, so it is a key by which an application can find
    /// out that something is done already.
    #[must_use]
    pub fn scheduled(&self) -> SystemTime {
        system_time(self.tick)
    }

    /// Up to which time the job has been done before: the last tick that succeeded, or when the
    /// job was first known. What came after that, and up to [`Self::scheduled`], is what this run
    /// makes up for.
    #[must_use]
    pub fn since(&self) -> SystemTime {
        system_time(self.since)
    }

    /// The term under which it runs: it grows by one each time the job changes its node.
    #[must_use]
    pub fn term(&self) -> u64 {
        self.term.term()
    }

    /// The term as a fencing token, to be handed to all that the job writes to.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.term.fence()
    }

    /// What asserts the job's term in the database that holds its lease; as [`Term::assertion`].
    #[must_use]
    pub fn assertion(&self) -> Assertion {
        self.term.assertion()
    }

    /// Whether the job is this node's to run. As cheap as [`Term::is_held`]; no from the moment at
    /// which it is told to stop.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.term.is_held()
    }

    /// How long this node may believe so, unless another beat gets through first.
    #[must_use]
    pub fn time_left(&self) -> Duration {
        self.term.time_left()
    }

    /// Fires when the run shall stop. Cancelling it yourself ends nothing but what you hung from
    /// it.
    #[must_use]
    pub fn stopping(&self) -> CancellationToken {
        self.term.token()
    }

    /// Waits until the run shall stop, and says why. Cancel-safe.
    pub async fn stopped(&self) -> Lost {
        self.term.lost().await
    }

    /// Says that the job is done, whatever comes now.
    ///
    /// An `Ok` counts only as long as the run wasn't told to stop, because work that stops early
    /// may return it too; then the tick is run again elsewhere. Work that says this as its last
    /// act, and returns `Ok`, has its tick recorded even if it was told to stop meanwhile, as
    /// long as this node is trusted.
    pub fn complete(&self) {
        self.completed.store(true, Ordering::Release);
    }

    /// Puts a future under the run, so that it ends with it; as [`Term::guard`]. For tasks that
    /// the work spawns.
    pub fn guard<F: Future>(&self, future: F) -> Guarded<F> {
        self.term.guard(future)
    }

    /// Asks the store whether the job is still this node's; as [`Term::confirm`].
    ///
    /// # Errors
    /// If the store didn't answer within the request time-out.
    pub async fn confirm(&self) -> Result<bool, Unanswered> {
        self.term.confirm().await
    }

    /// Whether an `Ok` means that the tick is done.
    pub(super) fn counts(&self) -> bool {
        self.is_held() || self.completed.load(Ordering::Acquire)
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("lease", self.term.lease())
            .field("term", &self.term())
            .field("scheduled", &self.scheduled())
            .finish_non_exhaustive()
    }
}
