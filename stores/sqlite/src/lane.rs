//! A thread with a connection of its own, and the queue that leads to it.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use incumbent_core::store::{Access, Exchange, Lane, Reply, StoreError};
use tokio::sync::oneshot;

use crate::bell;
use crate::database::Database;
use crate::error::During;
use crate::exchange::Failure;
use crate::looking;
use crate::options::SqliteOptions;

/// After so many writes of the beat another lane copies the log into the database. At three pages
/// a write that is what SQLite itself would wait for: a thousand pages.
const BEATS_PER_CHECKPOINT: u32 = 300;

/// The sending end of a lane. The thread ends with the last of these.
#[derive(Clone, Debug)]
pub(crate) struct LaneSender {
    jobs: Sender<Job>,
}

#[derive(Debug)]
enum Job {
    Exchange {
        cluster: String,
        exchange: Exchange,
        answer: oneshot::Sender<Answered>,
    },
    Checkpoint,
    /// Closes the connection if others may have other files than it.
    Check,
}

type Answered = Result<Reply, StoreError>;

impl LaneSender {
    /// Starts a thread. The beat's names the lane that spares it the checkpoints.
    pub(crate) fn start(
        lane: Lane,
        options: Arc<SqliteOptions>,
        first: Option<Database>,
        checkpoints: Option<Self>,
    ) -> io::Result<(Self, JoinHandle<()>)> {
        let (jobs, queue) = mpsc::channel();
        let name = match lane {
            Lane::Beat => "incumbent-sqlite-beat",
            Lane::Change => "incumbent-sqlite-change",
            Lane::Watch => "incumbent-sqlite-watch",
        };
        let busy = options.busy_of(lane);
        let mut lane = LaneThread { options, busy, database: None, checkpoints, beats: 0 };
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || {
            if let Some(database) = first {
                lane.adopt(database);
            }
            lane.run(&queue);
        })?;
        Ok((Self { jobs }, thread))
    }

    /// Queues an exchange and waits for its answer.
    pub(crate) async fn exchange(&self, cluster: &str, exchange: Exchange) -> Answered {
        let (answer, answered) = oneshot::channel();
        let job = Job::Exchange { cluster: cluster.to_owned(), exchange, answer };
        if self.jobs.send(job).is_err() {
            return Err(StoreError::unavailable("the thread of the SQLite store has ended"));
        }
        answered.await.unwrap_or_else(|_| {
            Err(StoreError::unknown("the thread of the SQLite store ended before it answered"))
        })
    }

    /// Makes an idle lane let go of files that are no longer there. SQLite shares the log's index
    /// between the connections of a process, so one that keeps the old stands in the way of all.
    pub(crate) fn check(&self) {
        let _ = self.jobs.send(Job::Check);
    }
}

struct LaneThread {
    options: Arc<SqliteOptions>,
    busy: Duration,
    /// None before the first exchange and after a failure; opened when next needed.
    database: Option<Database>,
    checkpoints: Option<LaneSender>,
    beats: u32,
}

impl LaneThread {
    fn run(mut self, queue: &Receiver<Job>) {
        for job in queue {
            match job {
                // Nobody waits for the answer any more, so not having been sent is one of the
                // outcomes that the caller reckons with. Behind a long wait this keeps stale
                // writes from piling up.
                Job::Exchange { answer, .. } if answer.is_closed() => {}
                Job::Exchange { cluster, exchange, answer } => {
                    let _ = answer.send(self.exchange(&cluster, &exchange));
                }
                Job::Checkpoint => self.checkpoint(),
                Job::Check => {
                    self.database = self.database.take().filter(|it| it.check().is_ok());
                }
            }
        }
    }

    fn exchange(&mut self, cluster: &str, exchange: &Exchange) -> Answered {
        if self.options.access == Access::Look {
            let Self { options, database, busy, .. } = self;
            return looking::exchange(database, options, *busy, (cluster, exchange));
        }
        let database = self.database()?;
        match database.exchange(cluster, exchange) {
            Ok((reply, hint)) => {
                if hint {
                    bell::poke(&database.paths.log);
                }
                if !exchange.writes.is_empty() {
                    self.count_beat();
                }
                Ok(reply)
            }
            Err(Failure { error, reconnect }) => {
                if reconnect {
                    self.database = None;
                }
                Err(error)
            }
        }
    }

    fn database(&mut self) -> Result<&Database, StoreError> {
        if self.database.is_none() {
            let database = Database::open(&self.options, self.busy, During::Work)?;
            self.adopt(database);
        }
        self.database.as_ref().ok_or_else(|| StoreError::unavailable("no SQLite connection"))
    }

    fn adopt(&mut self, database: Database) {
        if self.checkpoints.is_some() {
            // A checkpoint takes as long as the application's writes make it. Without this the
            // commit of a beat would now and then pay for it; so it does only if all others fail
            // to, at ten times the size.
            let _ = database.connection.execute_batch("PRAGMA wal_autocheckpoint = 10000");
        }
        self.database = Some(database);
    }

    /// Where nothing but beats is written, somebody has to empty the log.
    fn count_beat(&mut self) {
        let Some(lane) = &self.checkpoints else { return };
        self.beats += 1;
        if self.beats >= BEATS_PER_CHECKPOINT {
            self.beats = 0;
            let _ = lane.jobs.send(Job::Checkpoint);
        }
    }

    /// A passive checkpoint waits for nobody. What it can't do now, a later one will.
    fn checkpoint(&mut self) {
        if let Ok(database) = self.database() {
            let pragma = "PRAGMA wal_checkpoint(PASSIVE)";
            let _ = database.connection.query_row(pragma, [], |_| Ok(()));
        }
    }
}
