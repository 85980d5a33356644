//! Running a job once an interval, whichever node it is on.
//!
//! The last success is a record beside the lease. Only who holds the lease writes it, by a
//! compare-and-swap. Whether the job is due is the one question here that a clock of the store
//! decides, or a wall clock where the store has none. It decides how often the job runs; that two
//! never run at once is the lease's business and depends on no such clock.

use std::time::Duration;

use incumbent::store::{
    Exchange, Expect, Found, Key, Lane, Outcome as Written, Put, Read, Stamp, Version, Write,
};
use incumbent::{LeaseName, Moment, OpenStore, clock};
use serde::{Deserialize, Serialize};

use crate::exit::{Failure, Outcome};

/// The format that this version writes and reads.
const FORMAT: u32 = 1;

/// What is known about the last success.
#[derive(Debug, Serialize, Deserialize)]
struct Success {
    format: u32,
    lease: String,
    /// The node that had it, and its term.
    node: String,
    term: u64,
    /// How long the job ran, so that what counts is from start to start.
    ran_ms: u64,
    /// When it ended by that node's wall clock, where the store has none.
    at_ms: u64,
}

/// A job that runs once an interval.
pub(crate) struct Once<'a> {
    store: &'a OpenStore,
    cluster: &'a str,
    lease: String,
    key: Key,
    interval: Duration,
    known: Option<Version>,
    started: Moment,
}

impl<'a> Once<'a> {
    /// The job under this lease.
    pub(crate) fn new(
        store: &'a OpenStore,
        cluster: &'a str,
        lease: &LeaseName,
        interval: Duration,
    ) -> Self {
        let (key, started) = (incumbent::keys::once(lease), clock::now());
        let lease = lease.as_str().to_owned();
        Self { store, cluster, lease, key, interval, known: None, started }
    }

    /// How long ago the job was last started with success, if it isn't due yet.
    pub(crate) async fn too_early(&mut self) -> Outcome<Option<Duration>> {
        let reads = vec![Read::Key { key: self.key.clone(), unless: None }];
        let exchange = Exchange { writes: Vec::new(), reads };
        let reply = self.store.exchange(self.cluster, Lane::Watch, exchange).await;
        let reply = reply.map_err(|error| unreachable(&error))?;
        let Some(Found::Record(record)) = reply.reads.into_iter().next() else { return Ok(None) };
        let success: Success = serde_json::from_slice(&record.value)
            .ok()
            .filter(|success: &Success| success.format == FORMAT)
            .ok_or_else(|| {
                Failure::wrong(format!(
                    "the record {} of the last success can't be read, so it isn't known whether \
                     the job is due: it is from a newer version, or damaged",
                    self.key.as_str()
                ))
            })?;
        self.known = Some(record.version);
        let by_wall = Duration::from_millis(clock::wall_ms().saturating_sub(success.at_ms));
        let passed = record.age.unwrap_or(by_wall) + Duration::from_millis(success.ran_ms);
        // The next run may come a little early: a cron is not exact, and an hour is meant.
        Ok((passed < self.interval.mul_f64(0.9)).then_some(passed))
    }

    /// The job starts now.
    pub(crate) fn start(&mut self) {
        self.started = clock::now();
    }

    /// Notes that it succeeded. To be called while the lease is held.
    pub(crate) async fn succeeded(&self, node: &str, term: u64) -> Outcome {
        let ran = clock::now().since(self.started);
        let success = Success {
            format: FORMAT,
            lease: self.lease.clone(),
            node: node.to_owned(),
            term,
            ran_ms: u64::try_from(ran.as_millis()).unwrap_or(u64::MAX),
            at_ms: clock::wall_ms(),
        };
        let value = serde_json::to_vec(&success).map_err(Failure::internal)?;
        let expect = self.known.clone().map_or(Expect::Absent, Expect::Version);
        // A writer that nobody else is, for this one attempt.
        let writer = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), term);
        let stamp = Stamp { writer, attempt: 1 };
        let put = Put { key: self.key.clone(), expect, value, stamp, hint: false };
        let exchange = Exchange { writes: vec![Write::Put(put)], reads: Vec::new() };
        let reply = self.store.exchange(self.cluster, Lane::Change, exchange).await;
        match reply.map_err(|error| unreachable(&error))?.writes.first() {
            Some(Written::Applied(_)) => Ok(()),
            Some(Written::Refused | Written::Deleted) | None => {
                Err(Failure::wrong("somebody else has noted a success meanwhile"))
            }
        }
    }
}

fn unreachable(error: &incumbent::store::StoreError) -> Failure {
    Failure::new(crate::exit::Code::Unreachable, error)
}
