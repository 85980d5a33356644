//! Applies the writes of an exchange and answers its reads, on one connection.

use std::collections::BTreeSet;

use incumbent_core::store::{
    ErrorKind, Exchange, Found, Lane, Outcome, Put, Read, Reply, StoreError, Write,
};
use incumbent_store_common::{Failure, Sent};

use crate::answer;
use crate::connection::{Connection, Row, Stopped, text};
use crate::error::{is_locked, translate};
use crate::names::hexadecimal;
use crate::options::MysqlOptions;
use crate::packet::{Packet, Unpacked};
use crate::session::read_only;
use crate::statement::Writer;

/// How often writes are tried again without the rows that turned out to be locked.
const ROUNDS: usize = 3;

/// The longest packet, however much more the server takes.
const LONGEST_PACKET: usize = 16 * 1024 * 1024;

/// What a statement needs beside its value.
const AROUND: usize = 2048;

/// One exchange, ready to be sent.
pub(crate) struct Job {
    /// As it stands in the rows.
    pub(crate) cluster: String,
    pub(crate) exchange: Exchange,
    pub(crate) lane: Lane,
}

impl Job {
    /// Refuses what can't be stored, before anything is sent.
    pub(crate) fn check(&self, most: usize) -> Result<(), StoreError> {
        for write in &self.exchange.writes {
            let Write::Put(Put { key, value, .. }) = write else { continue };
            if std::str::from_utf8(value).is_err() {
                return Err(StoreError::rejected(format!(
                    "the value of {key} is not text that MySQL can store: it has to be UTF-8"
                )));
            }
            if value.len() > most {
                return Err(StoreError::rejected(format!(
                    "the value of {key} has {} bytes, and this server takes {most}: raise its \
                     max_allowed_packet",
                    value.len()
                )));
            }
        }
        match self.exchange.writes.iter().map(Write::key).find(|key| key.as_str().len() > 255) {
            Some(key) => Err(StoreError::rejected(format!(
                "the key {key} has {} bytes, and 255 is the most",
                key.as_str().len()
            ))),
            None => Ok(()),
        }
    }
}

/// What is known of the writes so far.
struct Progress {
    outcomes: Vec<Outcome>,
    /// Whether any of them may have been applied.
    applied: bool,
}

/// A connection, for one exchange.
pub(crate) struct Talk<'a> {
    pub(crate) connection: &'a mut Connection,
    pub(crate) options: &'a MysqlOptions,
    /// The largest packet that the server takes.
    pub(crate) packet: usize,
}

impl Talk<'_> {
    /// Does all of an exchange, or says what may have become of it.
    pub(crate) async fn exchange(&mut self, job: &Job) -> Result<Reply, Failure> {
        let options = self.options;
        let writer = Writer::new(&options.names, &job.cluster);
        let count = job.exchange.writes.len();
        let mut progress = Progress { outcomes: vec![Outcome::Refused; count], applied: false };
        let parts = parts(&job.exchange.writes, self.packet.min(LONGEST_PACKET));
        let last = parts.len().saturating_sub(1);
        let mut found = Vec::new();
        for (number, writes) in parts.into_iter().enumerate() {
            let reads = if number == last { job.exchange.reads.as_slice() } else { &[] };
            let mut part = Part { options, writer: &writer, job, writes, reads };
            let done = self.part(&mut part, &mut progress).await;
            found = done.map_err(|failure| after(&progress, failure))?;
        }
        Ok(Reply { writes: progress.outcomes, reads: found })
    }

    async fn part(
        &mut self,
        part: &mut Part<'_>,
        progress: &mut Progress,
    ) -> Result<Vec<Found>, Failure> {
        for _ in 0..ROUNDS {
            let packet = Packet::new(part.writer, &part.writes, part.reads);
            let stopped = match self.connection.packet(&packet.text, packet.count()).await {
                Ok(sets) => return part.settle(packet.unpack(sets), progress),
                Err(stopped) => stopped,
            };
            let (failure, locked) = part.judge(&packet, &stopped);
            match locked {
                // A take behind an application's fenced transaction: this write surely did not
                // apply, and none of those that came with it.
                Some(place) if part.job.lane == Lane::Change => {
                    let mut locked = BTreeSet::from([place]);
                    if packet.is_transaction() {
                        locked.extend(self.locked(part).await?);
                    }
                    part.writes.retain(|(place, _)| !locked.contains(place));
                }
                _ => return Err(failure),
            }
            if part.writes.is_empty() && part.reads.is_empty() {
                return Ok(Vec::new());
            }
        }
        Err(Failure {
            error: StoreError::unavailable(format!(
                "{}: other transactions kept locking rows that were to be written",
                part.options.server()
            )),
            keep: true,
        })
    }

    /// Takes back what was done and finds out which writes would have to wait, so that one
    /// exchange waits once, however many rows are locked.
    async fn locked(&mut self, part: &Part<'_>) -> Result<Vec<usize>, Failure> {
        let keys: BTreeSet<&str> =
            part.writes.iter().map(|(_, write)| write.key().as_str()).collect();
        let keys: Vec<_> = keys.iter().map(|key| hexadecimal(key.as_bytes())).collect();
        let present = part.writer.present(&keys);
        let text = format!("ROLLBACK;{present} FOR UPDATE SKIP LOCKED;{present}");
        let sets = self.connection.packet(&text, 3).await.map_err(|stopped| {
            Failure::fatal(translate(part.options, &stopped.error, Sent::Nothing).error)
        })?;
        let keys = |rows: &[Row]| -> BTreeSet<String> {
            rows.iter().filter_map(|row| self::text(row, 0).map(str::to_owned)).collect()
        };
        let (free, all) = match sets.as_slice() {
            [_, free, all] => (keys(&free.rows), keys(&all.rows)),
            _ => return Ok(Vec::new()),
        };
        let is_locked = |write: &Write| {
            let key = write.key().as_str();
            all.contains(key) && !free.contains(key)
        };
        let locked = part.writes.iter().filter(|(_, write)| is_locked(write));
        Ok(locked.map(|(place, _)| *place).collect())
    }
}

/// Some of the writes, and perhaps the reads.
struct Part<'a> {
    options: &'a MysqlOptions,
    writer: &'a Writer<'a>,
    job: &'a Job,
    writes: Vec<(usize, &'a Write)>,
    reads: &'a [Read],
}

impl Part<'_> {
    /// What an error means, and which write had to wait for a lock, if that is the error.
    fn judge(&self, packet: &Packet, stopped: &Stopped) -> (Failure, Option<usize>) {
        let by_server = matches!(stopped.error, mysql_async::Error::Server(_));
        // If the connection broke, the server may be anywhere in the packet or past it.
        let sent = if by_server { packet.sent(stopped.done) } else { self.sent() };
        let mut failure = translate(self.options, &stopped.error, sent);
        if by_server && packet.is_past_writes(stopped.done) {
            failure.error.kind = ErrorKind::Unknown;
        }
        // A transaction that is still open is not to be met by the next exchange.
        failure.keep = failure.keep && !packet.is_transaction();
        let locked = packet.write_at(stopped.done).filter(|_| is_locked(&stopped.error));
        (failure, locked)
    }

    fn sent(&self) -> Sent {
        if self.writes.is_empty() { Sent::Nothing } else { Sent::Write }
    }

    fn settle(&self, done: Unpacked, progress: &mut Progress) -> Result<Vec<Found>, Failure> {
        for (place, changed) in done.writes {
            progress.applied |= changed;
            let outcome = match self.job.exchange.writes.get(place) {
                Some(Write::Put(put)) if changed => Outcome::Applied(put.stamp.version()),
                Some(Write::Delete(_)) => Outcome::Deleted,
                Some(Write::Put(_)) | None => Outcome::Refused,
            };
            if let Some(slot) = progress.outcomes.get_mut(place) {
                *slot = outcome;
            }
        }
        if done.read_only {
            return Err(Failure::fatal(read_only(self.options)));
        }
        answer::found(self.reads, &done.keys, done.prefixes).map_err(|senseless| {
            let server = self.options.server();
            Failure::fatal(StoreError::unavailable(format!("{server}: it answered {senseless}")))
        })
    }
}

/// What was done stays done, so an error after it leaves the whole in the dark.
fn after(progress: &Progress, failure: Failure) -> Failure {
    if !progress.applied {
        return failure;
    }
    let error = StoreError { kind: ErrorKind::Unknown, ..failure.error };
    Failure { error, ..failure }
}

/// The writes in the order of their keys, so that two batches don't wait for each other, and in
/// as many parts as packets are needed. There is always one, and nearly always no more.
fn parts(writes: &[Write], packet: usize) -> Vec<Vec<(usize, &Write)>> {
    let mut sorted: Vec<_> = writes.iter().enumerate().collect();
    sorted.sort_by(|(_, one), (_, two)| one.key().cmp(two.key()));
    let mut parts = vec![Vec::new()];
    // Half is left for the reads.
    let most = packet / 2;
    let mut size = 0;
    for (place, write) in sorted {
        let value = match write {
            Write::Put(put) => put.value.len(),
            Write::Delete(_) => 0,
        };
        // Two digits a byte.
        let needed = value * 2 + AROUND;
        if size > 0 && size + needed > most {
            parts.push(Vec::new());
            size = 0;
        }
        size += needed;
        if let Some(part) = parts.last_mut() {
            part.push((place, write));
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use incumbent_core::store::Key;

    use super::*;

    #[test]
    fn writes_are_sorted_and_cut_into_packets() {
        let writes = ["b", "c", "a"].map(|key| Write::Delete(Key::new(key)));
        let places = |packet| -> Vec<Vec<usize>> {
            let parts = parts(&writes, packet);
            parts.iter().map(|part| part.iter().map(|(place, _)| *place).collect()).collect()
        };
        assert_eq!(places(1 << 20), [vec![2, 0, 1]]);
        assert_eq!(places(AROUND * 4), [vec![2, 0], vec![1]]);
        assert_eq!(places(1), [vec![2], vec![0], vec![1]]);
        assert_eq!(parts(&[], 1), [Vec::new()]);
    }
}
