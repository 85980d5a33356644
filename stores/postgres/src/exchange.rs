//! Applies the writes of an exchange and answers its reads, on one connection.

use std::collections::BTreeSet;

use incumbent_core::store::{
    ErrorKind, Exchange, Expect, Found, Lane, Outcome, Put, Read, Reply, StoreError, Write,
};
use incumbent_store_common::Sent;
use tokio_postgres::types::ToSql;

use crate::answer::Answer;
use crate::error::{Failure, translate};
use crate::session::Session;
use crate::statement::{Shape, Writes};

/// Greater than all keys, which are ASCII.
const END: &str = "\u{10ffff}\u{10ffff}\u{10ffff}";

/// So many writes go by one plan, which is kept: a server takes an array for about as long if it
/// doesn't know it.
const FEW: usize = 16;

/// One exchange, ready to be sent.
pub(crate) struct Job {
    /// As it stands in the rows.
    pub(crate) cluster: String,
    pub(crate) channel: String,
    pub(crate) exchange: Exchange,
    pub(crate) lane: Lane,
}

type Parameters<'a> = Vec<Box<dyn ToSql + Send + Sync + 'a>>;

impl Job {
    /// Refuses what PostgreSQL can't store, before anything is sent.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        for write in &self.exchange.writes {
            let Write::Put(put) = write else { continue };
            if text(put).is_none() {
                return Err(StoreError::rejected(format!(
                    "the value of {} is not text that PostgreSQL can store: it has to be UTF-8 \
                     without NUL characters",
                    put.key
                )));
            }
        }
        let keys = self.exchange.writes.iter().map(Write::key);
        let reads = self.exchange.reads.iter().map(|read| match read {
            Read::Key { key, .. } | Read::Prefix(key) => key,
        });
        match keys.chain(reads).find(|key| key.as_str().contains('\0')) {
            Some(key) => {
                let key = key.as_str();
                Err(StoreError::rejected(format!("the key {key:?} has a NUL character")))
            }
            None => Ok(()),
        }
    }
}

impl Session {
    /// Does all of an exchange, or says what may have become of it.
    pub(crate) async fn exchange(&self, job: &Job) -> Result<Reply, Failure> {
        let mut outcomes = vec![Outcome::Refused; job.exchange.writes.len()];
        let rounds = rounds(&job.exchange.writes);
        let last = rounds.len() - 1;
        let mut reply = Reply::default();
        for (number, round) in rounds.iter().enumerate() {
            let reads = if number == last { job.exchange.reads.as_slice() } else { &[] };
            let part = Part { job, writes: round, reads };
            let done = self.part(&part, &mut outcomes).await;
            reply.reads = done.map_err(|failure| after(number, failure))?;
        }
        reply.writes = outcomes;
        Ok(reply)
    }

    async fn part(&self, part: &Part<'_>, outcomes: &mut [Outcome]) -> Result<Vec<Found>, Failure> {
        let writes = part.kind();
        let answer = match self.send(part, writes).await {
            Err(failure)
                if failure.locked && part.job.lane == Lane::Change && writes != Writes::None =>
            {
                if part.writes.len() == 1 && part.reads.is_empty() {
                    return Ok(Vec::new());
                }
                // The server took the statement back as a whole, so no stamp is used twice. What
                // is still locked now is refused, and the rest is done.
                self.send(part, Writes::BatchUnlocked).await?
            }
            other => other?,
        };
        for (place, write) in part.writes() {
            let applied = answer.applied.contains(write.key().as_str());
            let outcome = match write {
                Write::Put(put) if applied => Outcome::Applied(put.stamp.version()),
                Write::Put(_) => Outcome::Refused,
                Write::Delete(_) if applied => Outcome::Deleted,
                // It was there, but changed while this waited for it; or it may be there, locked.
                Write::Delete(key) if answer.skipped || answer.doomed.contains(key.as_str()) => {
                    Outcome::Refused
                }
                Write::Delete(_) => Outcome::Deleted,
            };
            if let Some(slot) = outcomes.get_mut(place) {
                *slot = outcome;
            }
        }
        Ok(answer.found)
    }

    async fn send(&self, part: &Part<'_>, writes: Writes) -> Result<Answer, Failure> {
        let sent = if writes == Writes::None { Sent::Nothing } else { Sent::Write };
        let shape = part.shape(writes, self.pooled);
        let parameters = part.parameters(shape, &self.lock_timeout);
        let rows = self.query(shape, &parameters).await;
        let rows = rows.map_err(|error| translate(&self.options, &error, sent))?;
        let answer = Answer::read(&rows, part.reads).map_err(|error| Failure {
            error: StoreError {
                kind: sent.unanswered(),
                message: format!("{}: {error}", self.options.server()),
            },
            keep: false,
            locked: false,
        })?;
        if answer.standby {
            return Err(Failure { error: standby(&self.options), keep: false, locked: false });
        }
        Ok(Answer { skipped: writes == Writes::BatchUnlocked, ..answer })
    }
}

/// What a standby gets told, whichever way it was noticed.
pub(crate) fn standby(options: &crate::PostgresOptions) -> StoreError {
    StoreError::unavailable(format!(
        "{}: this server is a standby, whose records may be stale. A primary is needed: name \
         it, or wait until one is promoted",
        options.server()
    ))
}

/// Some of the writes, each key once, and perhaps the reads.
struct Part<'a> {
    job: &'a Job,
    writes: &'a [usize],
    reads: &'a [Read],
}

impl<'a> Part<'a> {
    fn writes(&self) -> impl Iterator<Item = (usize, &'a Write)> {
        let all = &self.job.exchange.writes;
        self.writes.iter().filter_map(|place| all.get(*place).map(|write| (*place, write)))
    }

    fn kind(&self) -> Writes {
        let mut writes = self.writes();
        match (writes.next(), writes.next()) {
            (None, _) => Writes::None,
            (Some((_, Write::Put(put))), None) => match put.expect {
                Expect::Absent => Writes::Create,
                Expect::Version(_) => Writes::Swap,
            },
            _ if self.writes.len() <= FEW => Writes::Few,
            _ => Writes::Batch,
        }
    }

    fn shape(&self, writes: Writes, pooled: bool) -> Shape {
        let hinted = |(_, write): (_, &Write)| matches!(write, Write::Put(put) if put.hint);
        let is_key = |read: &Read| matches!(read, Read::Key { .. });
        Shape {
            writes,
            hints: self.writes().any(hinted),
            durable: writes == Writes::None || self.writes().any(|(_, write)| write.is_durable()),
            keys: self.reads.iter().any(is_key),
            prefixes: !self.reads.iter().all(is_key),
            pooled,
        }
    }

    /// In the order in which [`Shape::text`] numbers them.
    fn parameters(&self, shape: Shape, lock_timeout: &'a str) -> Parameters<'a> {
        let mut parameters: Parameters<'a> = vec![Box::new(self.job.cluster.as_str())];
        if shape.pooled && shape.writes != Writes::None {
            parameters.push(Box::new(lock_timeout));
        }
        match shape.writes {
            Writes::None => {}
            Writes::Swap | Writes::Create => self.single(&mut parameters),
            Writes::Few | Writes::Batch | Writes::BatchUnlocked => self.batch(&mut parameters),
        }
        if shape.hints {
            parameters.push(Box::new(self.job.channel.as_str()));
        }
        self.questions(shape, &mut parameters);
        parameters
    }

    fn single(&self, parameters: &mut Parameters<'a>) {
        let Some((_, Write::Put(put))) = self.writes().next() else { return };
        parameters.push(Box::new(put.key.as_str()));
        if let Expect::Version(version) = &put.expect {
            parameters.push(Box::new(version.as_str()));
        }
        parameters.push(Box::new(text(put)));
        parameters.push(Box::new(put.stamp.to_string()));
    }

    fn batch(&self, parameters: &mut Parameters<'a>) {
        let put = |write: &'a Write| match write {
            Write::Put(put) => Some(put),
            Write::Delete(_) => None,
        };
        let puts = || self.writes().map(move |(_, write)| put(write));
        let keys: Vec<_> = self.writes().map(|(_, write)| write.key().as_str()).collect();
        let expected = |put: &'a Put| match &put.expect {
            Expect::Absent => None,
            Expect::Version(version) => Some(version.as_str()),
        };
        let expected: Vec<_> = puts().map(|put| put.and_then(expected)).collect();
        let values: Vec<_> = puts().map(|put| put.and_then(text)).collect();
        let stamps: Vec<_> = puts().map(|put| put.map(|put| put.stamp.to_string())).collect();
        parameters.push(Box::new(keys));
        parameters.push(Box::new(expected));
        parameters.push(Box::new(values));
        parameters.push(Box::new(stamps));
    }

    fn questions(&self, shape: Shape, parameters: &mut Parameters<'a>) {
        let (mut keys, mut known) = (Vec::new(), Vec::new());
        let (mut low, mut high) = (Vec::new(), Vec::new());
        for read in self.reads {
            match read {
                Read::Key { key, unless } => {
                    keys.push(key.as_str());
                    known.push(unless.as_ref().map(|version| version.as_str()));
                }
                Read::Prefix(prefix) => {
                    low.push(prefix.as_str());
                    high.push(after_all(prefix.as_str()));
                }
            }
        }
        if shape.keys {
            parameters.push(Box::new(keys));
            parameters.push(Box::new(known));
        }
        if shape.prefixes {
            parameters.push(Box::new(low));
            parameters.push(Box::new(high));
        }
    }
}

/// A statement can change a row once, so writes of one key go one after another. There is always
/// at least one round, and nearly always no more.
fn rounds(writes: &[Write]) -> Vec<Vec<usize>> {
    let mut rounds: Vec<(BTreeSet<&str>, Vec<usize>)> = vec![Default::default()];
    for (place, write) in writes.iter().enumerate() {
        let key = write.key().as_str();
        match rounds.iter_mut().find(|(keys, _)| !keys.contains(key)) {
            Some((keys, places)) => {
                keys.insert(key);
                places.push(place);
            }
            None => rounds.push((BTreeSet::from([key]), vec![place])),
        }
    }
    rounds.into_iter().map(|(_, places)| places).collect()
}

/// What was done in earlier rounds stays done.
fn after(rounds: usize, failure: Failure) -> Failure {
    if rounds == 0 {
        return failure;
    }
    let error = StoreError { kind: ErrorKind::Unknown, ..failure.error };
    Failure { error, ..failure }
}

fn text(put: &Put) -> Option<&str> {
    std::str::from_utf8(&put.value).ok().filter(|text| !text.contains('\0'))
}

/// The least text that is greater than all that starts with this one.
fn after_all(prefix: &str) -> String {
    let mut letters: Vec<char> = prefix.chars().collect();
    while let Some(last) = letters.pop() {
        // The code points between U+D7FF and U+E000 are no characters.
        let next =
            if last == '\u{d7ff}' { Some('\u{e000}') } else { char::from_u32(last as u32 + 1) };
        if let Some(next) = next {
            letters.push(next);
            return letters.into_iter().collect();
        }
    }
    END.to_owned()
}

#[cfg(test)]
mod tests {
    use incumbent_core::store::Key;

    use super::*;

    #[test]
    fn a_prefix_ends_before_the_next() {
        assert_eq!(after_all("lease/"), "lease0");
        assert_eq!(after_all("a\u{10ffff}"), "b");
        assert_eq!(after_all("\u{d7ff}"), "\u{e000}");
        assert_eq!(after_all(""), END);
        assert_eq!(after_all("\u{10ffff}"), END);
    }

    #[test]
    fn writes_of_one_key_take_turns() {
        let writes = ["a", "b", "a", "c", "a", "b"].map(|key| Write::Delete(Key::new(key)));
        assert_eq!(rounds(&writes), [vec![0, 1, 3], vec![2, 5], vec![4]]);
        assert_eq!(rounds(&[]), [Vec::<usize>::new()]);
    }
}
