use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use super::schedule::system_time;
use crate::lead::term::Term;

/// One run of a periodic job, as its work sees it. Clones speak of the same run; they don't keep
/// it alive.
///
/// All questions about the term under which it runs are answered by the [`Term`] that it derefs to: whether
/// it [is held](Term::is_held), when it [shall stop](Term::token), its [`fence`](Term::fence). That term
/// grows by one each time the job changes its node.
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

    /// Says that the job is done, whatever comes now.
    ///
    /// An `Ok` counts only as long as the run wasn't told to stop, because work that stops early
    /// may return it too; then the tick is run again elsewhere. Work that says this as its last
    /// act, and returns `Ok`, has its tick recorded even if it was told to stop meanwhile, as
    /// long as this node is trusted.
    pub fn complete(&self) {
        self.completed.store(true, Ordering::Release);
    }

    /// Whether an `Ok` means that the tick is done.
    pub(super) fn counts(&self) -> bool {
        self.term.is_held() || self.completed.load(Ordering::Acquire)
    }
}

impl Deref for Run {
    type Target = Term;

    fn deref(&self) -> &Term {
        &self.term
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("lease", self.term.lease())
            .field("term", &self.term.number())
            .field("scheduled", &self.scheduled())
            .finish_non_exhaustive()
    }
}
