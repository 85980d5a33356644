//! Running a job once an interval, whichever node it is on.
//!
//! The library keeps the last success, for this and for its own periodic jobs. Whether the job is
//! due is decided by a clock of the store here, or by the wall clock where the store has none; that
//! two never run at once is the lease's business and depends on no such clock.

use std::time::Duration;

use incumbent::{Journal, LeaseName, Moment, Node, clock};

use crate::exit::{Failure, Outcome};

/// A job that runs once an interval.
pub(crate) struct Once {
    journal: Journal,
    interval: Duration,
    started: Moment,
}

impl Once {
    /// The job under this lease.
    pub(crate) fn new(node: &Node, lease: &LeaseName, interval: Duration) -> Self {
        let journal = Journal::of(node.cluster(), lease.clone());
        Self { journal, interval, started: clock::now() }
    }

    /// How long ago the job was last started with success, if it isn't due yet.
    pub(crate) async fn too_early(&self) -> Outcome<Option<Duration>> {
        let Some(last) = self.journal.last().await? else { return Ok(None) };
        // The next run may come a little early: a cron is not exact, and an hour is meant.
        Ok(Some(last.passed()).filter(|passed| *passed < self.interval.mul_f64(0.9)))
    }

    /// The job starts now.
    pub(crate) fn start(&mut self) {
        self.started = clock::now();
    }

    /// Notes that it succeeded. To be called while the lease is held.
    pub(crate) async fn succeeded(&self, node: &str, term: u64) -> Outcome {
        let ran = clock::now().since(self.started);
        if self.journal.succeeded(node, term, ran).await? {
            return Ok(());
        }
        Err(Failure::wrong("somebody else has noted a success meanwhile"))
    }
}
