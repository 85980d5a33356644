//! What the leader of a periodic job does: wait for the next tick, run it, record it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use incumbent_core::backoff::Backoff;
use incumbent_core::random::Random;

use super::due::Due;
use super::run::Run;
use super::schedule::Schedule;
use crate::cluster::{JobRecord, Journal, Noted, Scribe};
use crate::driver::{clock, seed, thread};
use crate::error::{ClusterError, WorkResult};
use crate::lead::term::Term;

/// A wall clock may jump, so that it is looked at this often.
const LOOK: Duration = Duration::from_secs(1);
/// By how much clocks of different nodes may differ before anybody is told.
const SKEW: u64 = 60_000;
/// How often is looked whether a tick of the far future still stands as done.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often that is logged: the first time, and each time after so many looks.
const REPORT: u32 = 360;

/// One run of the work.
pub(super) type RunFuture = Pin<Box<dyn Future<Output = WorkResult> + Send>>;

/// A job, and when it runs.
pub(super) struct PeriodicJob {
    node: String,
    schedule: Schedule,
    work: Box<dyn Fn(Run) -> RunFuture + Send + Sync>,
}

/// How a run of the work ended, as far as it matters for its tick.
enum RunOutcome {
    Done {
        ran: Duration,
    },
    /// It was told to stop, so that its `Ok` says nothing.
    Stopped,
}

/// The lease was lost; somebody else goes on.
struct Over;

impl PeriodicJob {
    pub(super) fn new(
        node: &str,
        schedule: Schedule,
        work: impl Fn(Run) -> RunFuture + Send + Sync + 'static,
    ) -> Self {
        Self { node: node.to_owned(), schedule, work: Box::new(work) }
    }

    /// Leads for one term. `Ok` while the term is held means that there will be no tick any more.
    pub(super) async fn lead(self: Arc<Self>, term: Term) -> WorkResult {
        let journal = Journal::of(&term.cluster, term.lease().clone());
        let mut scribe = Scribe { node: self.node.clone(), term: term.number(), confirmed: false };
        let seed = name_seed(term.lease().as_str());
        let Some(mut record) = self.claim(&journal, &mut scribe, &term).await? else {
            return Ok(());
        };
        let mut looks = 0;
        loop {
            let now = self.schedule.now();
            let done = record.done().unwrap_or(now);
            let due = self.schedule.due(seed, done, now);
            if done > now.saturating_add(SKEW) {
                // Nothing is due, and whoever expects it should know why.
                if looks % REPORT == 0 {
                    report_future(&term, &record, done - now, due);
                }
                looks += 1;
                if rest(&term, PATIENCE).await.is_err() {
                    return Ok(());
                }
                match journal.record().await? {
                    Some(read) => record = read,
                    // Forgotten, so that it begins anew.
                    None => match self.claim(&journal, &mut scribe, &term).await? {
                        Some(read) => record = read,
                        None => return Ok(()),
                    },
                }
                continue;
            }
            looks = 0;
            match due {
                Due::Never => return Ok(()),
                // The run before may have ended in order after the lease was lost.
                Due::Run { .. } if !term.is_held() => return Ok(()),
                Due::Wait { until } => {
                    let left = Duration::from_millis(until.saturating_sub(now));
                    if rest(&term, left.min(LOOK)).await.is_err() {
                        return Ok(());
                    }
                }
                Due::Run { tick } => match self.run(&term, tick, done).await? {
                    RunOutcome::Stopped => return Ok(()),
                    RunOutcome::Done { ran } => {
                        match record_success(&journal, &mut scribe, &term, tick, ran).await {
                            Some(written) => record = written,
                            None => return Ok(()),
                        }
                    }
                },
            }
        }
    }

    /// Makes sure that nothing of an older term is recorded any more, and reads what was. Nothing
    /// if the lease was lost.
    async fn claim(
        &self,
        journal: &Journal,
        scribe: &mut Scribe,
        term: &Term,
    ) -> Result<Option<JobRecord>, ClusterError> {
        loop {
            match journal.claim(scribe, self.schedule.now()).await? {
                Noted::Written(record) => return Ok(Some(record)),
                Noted::Superseded { by } => {
                    if !still_leads(scribe, term, by).await {
                        return Ok(None);
                    }
                }
            }
        }
    }

    async fn run(
        &self,
        term: &Term,
        tick: u64,
        since: u64,
    ) -> Result<RunOutcome, crate::error::BoxError> {
        // What the run puts under its term ends with it, and before its success is recorded.
        let own = term.anew();
        let closes = own.scope.close_on_drop();
        let run = Run::new(own.clone(), tick, since);
        let started = clock::now();
        tracing::debug!(lease = %term.lease(), term = term.number(), tick, action = "tick", "the job starts");
        (self.work)(run.clone()).await?;
        let counts = run.counts();
        drop(closes);
        own.scope.closed().await;
        let ran = clock::now().since(started);
        Ok(if counts { RunOutcome::Done { ran } } else { RunOutcome::Stopped })
    }
}

/// Records that a tick is done, and goes on trying as long as this node is trusted: the work is
/// done, and must not be run again because the store was slow. Nothing if that is over.
async fn record_success(
    journal: &Journal,
    scribe: &mut Scribe,
    term: &Term,
    tick: u64,
    ran: Duration,
) -> Option<JobRecord> {
    let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(10));
    let mut random = Random::new(seed::draw());
    loop {
        match journal.note(scribe, Some(tick), ran).await {
            Ok(Noted::Written(record)) => return Some(record),
            Ok(Noted::Superseded { by }) => {
                if !still_leads(scribe, term, by).await {
                    tracing::warn!(lease = %term.lease(), term = term.number(), tick, by, action = "superseded", "the success of the job is not recorded: a newer leader has taken over");
                    return None;
                }
            }
            Err(error) => {
                let pause = backoff.pause(&mut random);
                tracing::warn!(lease = %term.lease(), term = term.number(), tick, %error, ?pause, action = "retry", "the success of the job is not recorded yet; trying again");
                thread::rest(pause).await;
                if !term.tenure.is_trusted() {
                    return None;
                }
            }
        }
    }
}

/// Whether this node leads although the job's record is of a newer term. That can only be if the
/// store has lost what it knew of the lease, and the answer is remembered.
async fn still_leads(scribe: &mut Scribe, term: &Term, by: u64) -> bool {
    match term.confirm().await {
        Ok(true) => {
            tracing::error!(lease = %term.lease(), term = term.number(), newer = by, action = "lost_past", "the job's record is of a newer term than the store's own: the store has lost what it knew of this lease");
            scribe.confirmed = true;
            true
        }
        Ok(false) => false,
        // Asked again with the next attempt.
        Err(_) => rest(term, LOOK).await.is_ok(),
    }
}

fn report_future(term: &Term, record: &JobRecord, ahead: u64, due: Due) {
    let ahead = Duration::from_millis(ahead);
    let waits = match due {
        Due::Wait { until } => Some(super::system_time(until)),
        Due::Run { .. } | Due::Never => None,
    };
    tracing::error!(lease = %term.lease(), term = term.number(), recorded_by = %record.author(), ?ahead, next = ?waits, action = "future", "the last tick that is recorded as done lies in the future: this machine's clock is behind, or that of the node which recorded it was ahead. Nothing runs until then, or until the record is forgotten");
}

/// Waits, unless the lease is lost first.
async fn rest(term: &Term, span: Duration) -> Result<(), Over> {
    tokio::select! {
        biased;
        _ = term.lost() => Err(Over),
        () = thread::rest(span) => Ok(()),
    }
}

/// The same number on every node for jobs of one name.
fn name_seed(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
