//! Applies the writes of an exchange and answers its reads, all at once on one connection.

use async_nats::HeaderMap;
use futures_util::future::{BoxFuture, join};
use futures_util::{FutureExt as _, StreamExt as _, stream};
use incumbent_core::store::{
    Access, Exchange, Expect, Found, Key, Outcome, Put, Read, Record, Reply, StoreError, Version,
    Write,
};
use incumbent_store_common::{Sent, settled};

use crate::api::{ApiError, Envelope, Got, Kept, LastOf, Purge, Stored};
use crate::error::{Trouble, answered, nonsense, unanswered};
use crate::keys::{self, Subjects};
use crate::session::{Session, encoded};

/// How many requests are under way at a time. Servers drop what comes faster than they can queue
/// it, some from 10,000 on.
const WINDOW: usize = 256;

/// How often a write that was refused looks again because others were faster.
const TURNS: usize = 8;

/// How often a list is started again because records came or went between its pages.
const RESTARTS: usize = 5;

const EXPECTED: &str = "Nats-Expected-Last-Subject-Sequence";

/// One exchange, ready to be sent.
pub(crate) struct Job {
    pub(crate) subjects: Subjects,
    pub(crate) exchange: Exchange,
    pub(crate) hints: bool,
}

impl Job {
    /// Rejects what NATS can't keep, before anything is sent.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        for write in &self.exchange.writes {
            self.subjects.subject(write.key())?;
        }
        for read in &self.exchange.reads {
            if let Read::Key { key, .. } = read {
                self.subjects.subject(key)?;
            }
        }
        Ok(())
    }
}

impl Session {
    /// Does all of an exchange, or says what may have become of it.
    pub(crate) async fn exchange(&self, job: &Job) -> Result<Reply, StoreError> {
        let Exchange { writes, reads } = &job.exchange;
        let writing = async {
            let writes = writes.iter().map(|write| self.write(job, write).boxed());
            let outcomes = pipelined(writes.collect()).await;
            self.hint(job, &outcomes).await;
            outcomes
        };
        let reading = reads.iter().map(|read| self.read(job, read).boxed());
        let reading = pipelined(reading.collect());
        let (outcomes, found) = join(writing, reading).await;
        settled(outcomes, found)
    }

    async fn write(&self, job: &Job, write: &Write) -> Result<Outcome, StoreError> {
        let subject = job.subjects.subject(write.key())?;
        match write {
            Write::Put(put) => self.put(&subject, put).await,
            Write::Delete(_) => self.delete(&subject).await,
        }
    }

    async fn put(&self, subject: &str, put: &Put) -> Result<Outcome, StoreError> {
        let expected = match &put.expect {
            Expect::Absent => 0,
            Expect::Version(version) => match self.sequence(version) {
                Some(sequence) => sequence,
                None => return Ok(Outcome::Refused),
            },
        };
        let created = put.expect == Expect::Absent;
        let mut headers = expecting(expected);
        for _ in 0..TURNS {
            if let Some(sequence) = self.publish(subject, headers, put.value.clone()).await? {
                return Ok(Outcome::Applied(self.version(sequence)));
            }
            // That was refused and is done with. Perhaps all that was there is the mark of a
            // deleted record, which may be gone by now; a record that is absent can be created.
            let last = if created { self.last(subject).await? } else { break };
            headers = match last {
                None => expecting(0),
                Some(mark) if mark.is_marker() => expecting(mark.seq),
                Some(_) => break,
            };
        }
        Ok(Outcome::Refused)
    }

    /// Stores a value if its subject is as the headers say, and tells the new number.
    async fn publish(
        &self,
        subject: &str,
        headers: HeaderMap,
        value: Vec<u8>,
    ) -> Result<Option<u64>, StoreError> {
        let answer = self.request(subject, Some(headers), value).await;
        let answer = answer.map_err(|trouble| self.fail(trouble, Sent::Write))?;
        let envelope = serde_json::from_slice::<Envelope<Stored>>(&answer.payload);
        match envelope.map_err(|_| None).and_then(Envelope::open) {
            Ok(stored) if stored.stream == keys::stream(&self.options.bucket) => {
                Ok(Some(stored.seq))
            }
            Err(Some(error)) if ApiError::WRONG_SEQUENCE.contains(&error.err_code) => Ok(None),
            Err(Some(error)) => Err(self.say(&error, Sent::Write)),
            Ok(_) | Err(None) => Err(nonsense(&self.options, Sent::Write)),
        }
    }

    /// Writes the mark of a deleted record over what is there, and then clears the mark away,
    /// which would stay for good. Numbers go on growing.
    ///
    /// Purging the record itself would be one request. But in a cluster a purge takes effect
    /// later than the leader looks at the writes behind it, so that a swap could still succeed
    /// after the delete did.
    async fn delete(&self, subject: &str) -> Result<Outcome, StoreError> {
        for _ in 0..TURNS {
            let mark = match self.last(subject).await? {
                None => return Ok(Outcome::Deleted),
                Some(last) if last.is_marker() => Some(last.seq),
                Some(last) => {
                    let mut headers = expecting(last.seq);
                    headers.insert("KV-Operation", "DEL");
                    self.publish(subject, headers, Vec::new()).await?
                }
            };
            if let Some(mark) = mark {
                let request =
                    format!("$JS.API.STREAM.PURGE.{}", keys::stream(&self.options.bucket));
                let body = encoded(&Purge { filter: subject, seq: mark.saturating_add(1) });
                // The record is gone; a mark that stays is only untidy.
                let _ = self.request(&request, None, body).await;
                return Ok(Outcome::Deleted);
            }
        }
        Ok(Outcome::Refused)
    }

    async fn read(&self, job: &Job, read: &Read) -> Result<Found, StoreError> {
        match read {
            Read::Key { key, unless } => {
                let subject = job.subjects.subject(key)?;
                let record = self.record(key, &subject).await?;
                Ok(match record {
                    None => Found::Absent,
                    Some(record) if Some(&record.version) == unless.as_ref() => Found::Unchanged,
                    Some(record) => Found::Record(record),
                })
            }
            Read::Prefix(prefix) => self.list(job, prefix).await.map(Found::Records),
        }
    }

    async fn record(&self, key: &Key, subject: &str) -> Result<Option<Record>, StoreError> {
        let Some(kept) = self.last(subject).await?.filter(|kept| !kept.is_marker()) else {
            return Ok(None);
        };
        let value = kept.value().ok_or_else(|| nonsense(&self.options, Sent::Nothing))?;
        let version: Version = self.version(kept.seq);
        Ok(Some(Record { key: key.clone(), value, version, age: None }))
    }

    /// What the stream's leader keeps last under a subject. Direct gets would be cheaper for a
    /// server, but any replica may answer them, with what is no longer so.
    async fn last(&self, subject: &str) -> Result<Option<Kept>, StoreError> {
        let body = encoded(&LastOf { last_by_subj: subject });
        let request = format!("$JS.API.STREAM.MSG.GET.{}", keys::stream(&self.options.bucket));
        let answer = self.ask::<Got>(&request, body).await;
        match answer.map_err(|trouble| self.fail(trouble, Sent::Nothing))? {
            Ok(got) => Ok(Some(got.message)),
            Err(Some(error)) if error.err_code == ApiError::NO_MESSAGE => Ok(None),
            Err(Some(error)) if self.sees_nothing(&error) => Ok(None),
            Err(Some(error)) => Err(self.say(&error, Sent::Nothing)),
            Err(None) => Err(nonsense(&self.options, Sent::Nothing)),
        }
    }

    /// Whether there is no bucket, and it is only looked at.
    fn sees_nothing(&self, error: &ApiError) -> bool {
        self.options.access == Access::Look && error.err_code == ApiError::NO_STREAM
    }

    async fn list(&self, job: &Job, prefix: &Key) -> Result<Vec<Record>, StoreError> {
        let subjects = self.subjects(&job.subjects.filter(prefix)).await?;
        let mut wanted: Vec<_> = subjects
            .into_iter()
            .filter_map(|subject| Some((job.subjects.key(&subject)?, subject)))
            .filter(|(key, _)| key.as_str().starts_with(prefix.as_str()))
            .collect();
        wanted.sort();
        let asked = wanted.iter().map(|(key, subject)| self.record(key, subject).boxed());
        let answers = pipelined(asked.collect()).await;
        // What was deleted since it was listed is absent.
        answers.into_iter().filter_map(Result::transpose).collect()
    }

    /// All subjects that pass a filter. The server gives them in pages of 100,000.
    async fn subjects(&self, filter: &str) -> Result<Vec<String>, StoreError> {
        'again: for _ in 0..RESTARTS {
            let mut subjects = Vec::new();
            let mut first = None;
            loop {
                let info = match self.info(Some(filter), Some(subjects.len())).await? {
                    Ok(info) => info,
                    Err(error) if self.sees_nothing(&error) => return Ok(Vec::new()),
                    Err(error) => return Err(self.say(&error, Sent::Nothing)),
                };
                let page = info.state.subjects.unwrap_or_default();
                let state = (info.state.last_seq, info.state.num_deleted, info.total);
                // Pages are counted from the start, so what came or went in between could hide
                // a record between two of them.
                if *first.get_or_insert(state) != state {
                    continue 'again;
                }
                let ended = page.is_empty();
                subjects.extend(page.into_keys());
                if ended || subjects.len() >= info.total {
                    return Ok(subjects);
                }
            }
        }
        Err(StoreError::unavailable(format!(
            "{}: records came and went too fast to list more than a page of them",
            self.options.shown()
        )))
    }

    /// Tells others, once what they shall see is there.
    async fn hint(&self, job: &Job, outcomes: &[Result<Outcome, StoreError>]) {
        let pairs = job.exchange.writes.iter().zip(outcomes);
        let told = pairs.filter(|(write, outcome)| {
            matches!(write, Write::Put(put) if put.hint)
                && matches!(outcome, Ok(Outcome::Applied(_)))
        });
        if job.hints
            && told.count() > 0
            && let Some(client) = self.client()
        {
            // A hint may be lost.
            let _ = client.publish(job.subjects.hint.clone(), Default::default()).await;
        }
    }

    fn fail(&self, trouble: Trouble, sent: Sent) -> StoreError {
        if trouble == Trouble::NobodyThere {
            // The next connection finds out why, and makes the bucket anew if it is gone.
            self.end("nobody answers for the bucket");
        }
        unanswered(&self.options, trouble, sent)
    }

    fn say(&self, error: &ApiError, sent: Sent) -> StoreError {
        if error.err_code == ApiError::NO_STREAM {
            self.end("the bucket is gone");
        }
        answered(&self.options, error, sent)
    }
}

/// Says which number a subject has to have last; 0 is none.
fn expecting(sequence: u64) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(EXPECTED, sequence.to_string().as_str());
    headers
}

/// Sends all without waiting for answers in between, as far as the window reaches.
async fn pipelined<T>(requests: Vec<BoxFuture<'_, T>>) -> Vec<T> {
    stream::iter(requests).buffered(WINDOW).collect().await
}
