//! Jobs that run once per tick of a schedule, in the whole cluster.

#[cfg(feature = "cron")]
mod crontab;
mod due;
mod job;
mod run;
mod schedule;
mod ticks;

use std::future::Future;
use std::sync::Arc;

use crate::error::{CampaignError, WorkResult};
use crate::lead::candidacy::Candidacy;
use crate::lead::term::Term;
use crate::lead::{self, LeaderTask};
use crate::node::Node;
use job::PeriodicJob;

pub use run::Run;
pub(crate) use schedule::system_time;
pub use schedule::{CatchUp, Schedule, ScheduleError};

impl Node {
    /// Runs a job once per tick of a schedule, on one of the nodes that call this.
    ///
    /// The job runs under the lease of its name. The holder of that lease waits for the ticks, runs the
    /// job, and records each success; the others stand by. A run ends as [`Self::lead`] says about
    /// work.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use incumbent::{Node, Schedule};
    /// # async fn report(_: std::time::SystemTime, _: incumbent::Fence) -> Result<(), std::io::Error> { Ok(()) }
    /// # async fn start(node: Node) -> Result<(), Box<dyn std::error::Error>> {
    /// let hourly = Schedule::every(Duration::from_secs(3600)); // or Schedule::cron("0 3 * * *")?
    /// let _reports = node.periodic("report", hourly, |run| async move {
    ///     report(run.scheduled(), run.fence()).await?;
    ///     Ok(()) // Ok: this tick is done. Err or panic: it isn't, and is tried again.
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # What is promised
    ///
    /// - No two runs at once, as for any lease.
    /// - **At least once per tick**, apart from the ticks that [`CatchUp`] leaves out. A run that
    ///   fails, is cut off or dies with its process counts as not done, and the tick is run again:
    ///   by the next leader at once, by the same one after a pause.
    /// - **At most once per tick that is recorded.** A new leader first writes its term into
    ///   the job's record, so that a late "done" of an older leader is refused. No node runs a tick again
    ///   that is recorded as done. One case remains: a run ended, and its success could not be recorded,
    ///   because the process died or the store was gone in between.
    /// - **Exactly once in effect** if the job writes its result together with
    ///   [`Run::scheduled`] and the [fence](crate::Term::fence), and the system that it writes to refuses
    ///   a tick that it already has and a fence lower than it has seen.
    ///
    /// The first tick is the one after a node first leads the job; earlier ticks are not made up for.
    /// When nodes have different schedules, as in a deploy, the leader's counts.
    ///
    /// # Clocks
    ///
    /// Schedules go by the wall clock, elections never do. Only the leader's clock says when a tick
    /// is due. If it is behind, a tick that another has recorded isn't run again. If it is ahead,
    /// ticks run early, and none is lost, because the record holds the tick and not the time. If a
    /// record lies more than a minute in the future of the leader's clock, the leader logs an error
    /// with the node that wrote it and for how long nothing will run.
    /// [`Cluster::forget_last_success`](crate::Cluster::forget_last_success) puts it right.
    ///
    /// `Finish::Completed` means that the schedule has no tick any more.
    ///
    /// # Errors
    /// If the job's name isn't valid for a lease, this node stands for it already, or it has left.
    pub fn periodic<F, Fut>(
        &self,
        candidacy: impl Into<Candidacy>,
        schedule: Schedule,
        work: F,
    ) -> Result<LeaderTask, CampaignError>
    where
        F: Fn(Run) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = WorkResult> + Send + 'static,
    {
        let pauses = schedule.pauses;
        let work = move |run| -> job::RunFuture { Box::pin(work(run)) };
        let job = Arc::new(PeriodicJob::new(self.name(), schedule, work));
        let lead = move |term: Term| Arc::clone(&job).lead(term);
        let job = Box::new(lead::AsyncJob::new(lead, self.inner.workers.clone()));
        self.lead_job(&candidacy.into(), job, pauses)
    }

    /// As [`Self::periodic`] for work that blocks: it runs on a thread of its own. It can't be
    /// aborted, so let it ask [`Term::is_held`](crate::Term::is_held) often enough.
    ///
    /// # Errors
    /// As [`Self::periodic`].
    pub fn periodic_blocking<F>(
        &self,
        candidacy: impl Into<Candidacy>,
        schedule: Schedule,
        work: F,
    ) -> Result<LeaderTask, CampaignError>
    where
        F: Fn(Run) -> WorkResult + Send + Sync + 'static,
    {
        let pauses = schedule.pauses;
        // It is polled on the thread of the work, and on no other.
        let work = move |run| -> job::RunFuture { Box::pin(std::future::ready(work(run))) };
        let job = Arc::new(PeriodicJob::new(self.name(), schedule, work));
        let lead = move |term: Term| pollster::block_on(Arc::clone(&job).lead(term));
        self.lead_job(&candidacy.into(), Box::new(lead::BlockingJob::new(lead)), pauses)
    }
}
