//! The last success of a job that runs once an interval: a record beside its lease.
//!
//! Only whoever holds the lease writes it, by a compare-and-swap, with the term. A record of a
//! newer term is never overwritten by an older one. What is in it decides how often a job runs;
//! that two never run at once is the lease's business.

use std::time::{Duration, SystemTime};

use incumbent_core::records::{Content, Extra, FORMAT};
use incumbent_core::store::{Exchange, Expect, Key, Lane, Write};
use incumbent_core::{LeaseName, keys};
use serde::{Deserialize, Serialize};

use super::intents::{ATTEMPTS, Writer, expect};
use super::{Cluster, lease_name};
use crate::driver::clock;
use crate::error::ClusterError;
use crate::lead::periodic::system_time;

/// The last success of a periodic job, from [`Cluster::last_success`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LastSuccess {
    /// The node on which the job ran.
    pub node: String,
    /// The term of its lease then.
    pub term: u64,
    /// The tick that it ran for. Nothing where it has none: `incumbent run --once-per` goes by the
    /// time that has passed.
    pub scheduled: Option<SystemTime>,
    /// When it ended, by that node's wall clock.
    pub ended: SystemTime,
    /// How long it ran.
    pub ran: Duration,
    /// How long ago the record was written by the store's clock, where it has one.
    pub age: Option<Duration>,
}

impl LastSuccess {
    /// How long ago the job was started: by the store's clock, or by this machine's wall clock
    /// where the store has none.
    #[must_use]
    pub fn passed(&self) -> Duration {
        let now = system_time(clock::wall_ms());
        let ended = self.age.unwrap_or_else(|| now.duration_since(self.ended).unwrap_or_default());
        ended.saturating_add(self.ran)
    }
}

impl Cluster {
    /// The last success of the periodic job of this name: of [`Node::periodic`] or of
    /// `incumbent run --once-per`. Nothing if it never succeeded.
    ///
    /// [`Node::periodic`]: crate::Node::periodic
    ///
    /// # Errors
    /// If the store can't be reached or the record can't be read.
    pub async fn last_success(&self, job: &str) -> Result<Option<LastSuccess>, ClusterError> {
        Journal::of(self, lease_name(job)?).last().await
    }

    /// Forgets the last success of a periodic job, and with it which ticks are done: its schedule
    /// begins anew with the next tick. For the case that a clock that was far ahead had a tick of
    /// the far future recorded as done. The leader of the job sees it within ten seconds.
    ///
    /// # Errors
    /// If the store can't be reached.
    pub async fn forget_last_success(&self, job: &str) -> Result<(), ClusterError> {
        let (this, key) = (self.clone(), keys::once(&lease_name(job)?));
        let writes = vec![Write::Delete(key)];
        let exchange = Exchange { writes, reads: Vec::new() };
        self.run(async move { Ok(this.exchange(Lane::Change, exchange).await.map(drop)?) }).await
    }
}

/// What is written under a job's key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct JobRecord {
    format: u32,
    /// The full name; the key may hold only its beginning and a hash.
    lease: String,
    /// The node that wrote this, and its term. It may have written only that it takes over.
    node: String,
    term: u64,
    /// How long the job ran, so that what counts is from start to start.
    ran_ms: u64,
    /// When it ended by the wall clock of its node; 0 if it never did.
    at_ms: u64,
    /// Up to which tick all is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tick_ms: Option<u64>,
    /// Who wrote which ticks are done, where another has taken over since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    by: Option<By>,
    /// Fields of other versions.
    #[serde(flatten)]
    extra: Extra,
}

/// A node, and its term.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct By {
    node: String,
    term: u64,
}

impl JobRecord {
    fn fresh(lease: &LeaseName) -> Self {
        Self {
            format: FORMAT,
            lease: lease.as_str().to_owned(),
            node: String::new(),
            term: 0,
            ran_ms: 0,
            at_ms: 0,
            tick_ms: None,
            by: None,
            extra: Extra::new(),
        }
    }

    /// Up to which time all is done, in milliseconds since 1970, if that is known.
    pub(crate) fn done(&self) -> Option<u64> {
        let succeeded = (self.at_ms > 0).then(|| self.at_ms.saturating_sub(self.ran_ms));
        self.tick_ms.or(succeeded)
    }

    /// The node by whose clock that was.
    pub(crate) fn author(&self) -> &str {
        self.by.as_ref().map_or(&self.node, |by| &by.node)
    }

    fn success(self, age: Option<Duration>) -> Option<LastSuccess> {
        let by = self.by.unwrap_or(By { node: self.node, term: self.term });
        (self.at_ms > 0).then(|| LastSuccess {
            node: by.node,
            term: by.term,
            scheduled: self.tick_ms.map(system_time),
            ended: system_time(self.at_ms),
            ran: Duration::from_millis(self.ran_ms),
            age,
        })
    }
}

impl Content for JobRecord {
    fn format(&self) -> u32 {
        self.format
    }

    fn place(&self) -> Option<Key> {
        lease_name(&self.lease).ok().map(|lease| keys::once(&lease))
    }

    fn check(&self) -> Result<(), String> {
        let newest = self.at_ms.max(self.tick_ms.unwrap_or(0));
        if system_time(newest) != system_time(newest.saturating_add(1)) {
            return Ok(());
        }
        Err(format!("{newest} is not a time in milliseconds since 1970"))
    }
}

/// Reads and writes the last success of one job.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Journal {
    cluster: Cluster,
    lease: LeaseName,
}

/// Who writes.
#[derive(Clone, Debug)]
pub(crate) struct Scribe {
    pub(crate) node: String,
    pub(crate) term: u64,
    /// The store has confirmed the term, although the record is of a newer one: then that is from
    /// a past which the store has lost.
    pub(crate) confirmed: bool,
}

/// What was written, or that it wasn't.
#[derive(Clone, Debug)]
pub(crate) enum Noted {
    Written(JobRecord),
    /// The record is of this newer term.
    Superseded {
        by: u64,
    },
}

impl Journal {
    /// The journal of the job under this lease.
    #[must_use]
    pub fn of(cluster: &Cluster, lease: LeaseName) -> Self {
        Self { cluster: cluster.clone(), lease }
    }

    /// The last success.
    ///
    /// # Errors
    /// If the store can't be reached or the record can't be read.
    pub async fn last(&self) -> Result<Option<LastSuccess>, ClusterError> {
        Ok(self.read().await?.and_then(|(record, age)| record.success(age)))
    }

    /// All that is known.
    pub(crate) async fn record(&self) -> Result<Option<JobRecord>, ClusterError> {
        Ok(self.read().await?.map(|(record, _)| record))
    }

    async fn read(&self) -> Result<Option<(JobRecord, Option<Duration>)>, ClusterError> {
        let (cluster, key) = (self.cluster.clone(), keys::once(&self.lease));
        let read = async move {
            let Some(stored) = cluster.read_key(key).await? else { return Ok(None) };
            Ok(Some((JobRecord::read(&stored)?, stored.age)))
        };
        self.cluster.run(read).await
    }

    /// Writes down that the job succeeded, under a lease that is held. Says whether that was
    /// written: it isn't if somebody else has written in a newer term.
    ///
    /// # Errors
    /// If the store can't be reached, or the record can't be read.
    pub async fn succeeded(
        &self,
        node: &str,
        term: u64,
        ran: Duration,
    ) -> Result<bool, ClusterError> {
        let scribe = Scribe { node: node.to_owned(), term, confirmed: false };
        let noted = self.note(&scribe, None, ran).await?;
        Ok(matches!(noted, Noted::Written(_)))
    }

    /// Takes the journal over for a new term. From then on nothing of an older one is written, so
    /// that what is read here stays as it is until this term writes. Where nothing is known yet,
    /// all counts as done up to `now`.
    pub(crate) async fn claim(&self, scribe: &Scribe, now: u64) -> Result<Noted, ClusterError> {
        self.change(scribe, move |record, before| {
            record.tick_ms = Some(record.done().unwrap_or(now));
            if before.term > 0 && record.by.is_none() {
                record.by = Some(before);
            }
        })
        .await
    }

    /// Writes down that the job succeeded, and for which tick.
    pub(crate) async fn note(
        &self,
        scribe: &Scribe,
        tick: Option<u64>,
        ran: Duration,
    ) -> Result<Noted, ClusterError> {
        let (ran_ms, at_ms) =
            (u64::try_from(ran.as_millis()).unwrap_or(u64::MAX), clock::wall_ms().max(1));
        self.change(scribe, move |record, _| {
            record.tick_ms = record.tick_ms.max(tick);
            (record.ran_ms, record.at_ms, record.by) = (ran_ms, at_ms, None);
        })
        .await
    }

    async fn change(
        &self,
        scribe: &Scribe,
        change: impl Fn(&mut JobRecord, By) + Send + 'static,
    ) -> Result<Noted, ClusterError> {
        let (this, scribe) = (self.clone(), scribe.clone());
        self.cluster.run(async move { this.change_now(&scribe, change).await }).await
    }

    async fn change_now(
        &self,
        scribe: &Scribe,
        change: impl Fn(&mut JobRecord, By),
    ) -> Result<Noted, ClusterError> {
        let (key, mut writer) = (keys::once(&self.lease), Writer::new());
        for _ in 0..ATTEMPTS {
            let stored = self.cluster.read_key(key.clone()).await?;
            let (mut record, expect) = match &stored {
                Some(stored) => (JobRecord::read(stored)?, expect(stored)),
                None => (JobRecord::fresh(&self.lease), Expect::Absent),
            };
            if record.term > scribe.term && !scribe.confirmed {
                return Ok(Noted::Superseded { by: record.term });
            }
            let before = By { node: record.node.clone(), term: record.term };
            change(&mut record, before);
            (record.node, record.term) = (scribe.node.clone(), scribe.term);
            let mut put = writer.put(key.clone(), expect, record.bytes());
            // Nobody waits for it.
            put.hint = false;
            if self.cluster.write(put).await? {
                return Ok(Noted::Written(record));
            }
        }
        Err(ClusterError::Contended { key: key.as_str().to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use incumbent_core::store::{Put, Stamp};

    use super::*;
    use crate::MemoryStore;

    fn journal() -> Journal {
        let cluster = Cluster::new(MemoryStore::new(), "test").unwrap();
        Journal::of(&cluster, LeaseName::new("job").unwrap())
    }

    fn scribe(node: &str, term: u64) -> Scribe {
        Scribe { node: node.to_owned(), term, confirmed: false }
    }

    fn written(noted: Noted) -> JobRecord {
        match noted {
            Noted::Written(record) => record,
            Noted::Superseded { by } => panic!("superseded by {by}"),
        }
    }

    #[tokio::test]
    async fn a_late_done_of_an_older_leader_changes_nothing() {
        let (journal, ran) = (journal(), Duration::from_secs(2));
        let (old, new) = (scribe("old", 5), scribe("new", 6));
        assert_eq!(written(journal.claim(&old, 1000).await.unwrap()).done(), Some(1000));
        assert_eq!(journal.last().await.unwrap(), None, "it never succeeded");
        written(journal.note(&old, Some(2000), ran).await.unwrap());

        let taken = written(journal.claim(&new, 9000).await.unwrap());
        assert_eq!(taken.done(), Some(2000), "what is done stays done");
        let last = journal.last().await.unwrap().unwrap();
        assert_eq!((last.node.as_str(), last.term), ("old", 5), "who takes over did nothing yet");
        assert_eq!(last.scheduled, Some(system_time(2000)));
        let late = journal.note(&old, Some(8000), ran).await.unwrap();
        assert!(matches!(late, Noted::Superseded { by: 6 }), "{late:?}");
        assert_eq!(journal.record().await.unwrap().unwrap().done(), Some(2000));

        written(journal.note(&new, Some(3000), ran).await.unwrap());
        let last = journal.last().await.unwrap().unwrap();
        assert_eq!((last.node.as_str(), last.term, last.ran), ("new", 6, ran));
        assert!(!journal.succeeded("old", 5, ran).await.unwrap());
        // Only the store's own word makes an older number count again.
        let confirmed = Scribe { confirmed: true, ..old };
        assert_eq!(written(journal.claim(&confirmed, 0).await.unwrap()).done(), Some(3000));
    }

    #[tokio::test]
    async fn what_was_sent_before_the_take_over_is_refused_after_it() {
        let journal = journal();
        written(journal.claim(&scribe("old", 5), 1000).await.unwrap());
        let key = keys::once(&journal.lease);
        let stored = journal.cluster.read_key(key.clone()).await.unwrap().unwrap();
        written(journal.claim(&scribe("new", 6), 1000).await.unwrap());
        let stamp = Stamp { writer: 1, attempt: 1 };
        let put = Put {
            key,
            expect: expect(&stored),
            value: Vec::new(),
            stamp,
            hint: false,
            durable: true,
        };
        assert!(!journal.cluster.write(put).await.unwrap());
    }

    #[tokio::test]
    async fn a_record_that_makes_no_sense_is_not_taken_for_absent() {
        let journal = journal();
        let key = keys::once(&journal.lease);
        let far = r#"{"format":1,"lease":"job","node":"a","term":1,"ran_ms":0,"at_ms":1,"tick_ms":99999999999999999}"#;
        let other = r#"{"format":1,"lease":"other","node":"a","term":1,"ran_ms":0,"at_ms":1}"#;
        for value in ["{}", far, other, r#"{"format":2}"#, "\u{0}"] {
            let expect = match journal.cluster.read_key(key.clone()).await.unwrap() {
                Some(stored) => expect(&stored),
                None => Expect::Absent,
            };
            let put = Writer::new().put(key.clone(), expect, value.as_bytes().to_vec());
            assert!(journal.cluster.write(put).await.unwrap());
            let error = journal.claim(&scribe("a", 1), 0).await.unwrap_err();
            assert!(error.to_string().contains("once/job"), "{value}: {error}");
            assert!(journal.last().await.is_err());
        }
        journal.cluster.forget_last_success("job").await.unwrap();
        assert_eq!(written(journal.claim(&scribe("a", 1), 7).await.unwrap()).done(), Some(7));
    }

    #[tokio::test]
    async fn a_job_of_the_command_line_can_become_one_of_a_program() {
        let journal = journal();
        assert!(journal.succeeded("a", 1, Duration::from_millis(10)).await.unwrap());
        let last = journal.last().await.unwrap().unwrap();
        assert!(last.scheduled.is_none() && last.passed() >= Duration::from_millis(10));
        let claimed = written(journal.claim(&scribe("b", 2), 5).await.unwrap());
        let started = claimed.at_ms - 10;
        assert_eq!(claimed.done(), Some(started), "what came before its last start is done");
    }
}
