//! Turns an exchange into a transaction, and the answer into a reply.
//!
//! One put, as in a beat or a take, is one transaction: it compares the key, puts, and reads either
//! way. Several writes are transactions of their own inside one that compares nothing, so that a
//! refused one undoes no other. All travel with the reads in one request. A transaction of reads
//! alone holds ranges and nothing else: etcd answers it without a round of its consensus, after
//! making sure that it still has a quorum.
//!
//! One put could travel inside another transaction as well; but many releases of etcd, 3.4.23
//! among them, look neither for rights nor for the quota in there.

use std::collections::BTreeSet;

use incumbent_core::store::{
    ErrorKind, Exchange, Expect, Found, Outcome, Put, Read, Record, Reply, StoreError, Version,
    Write,
};

use incumbent_store_common::{Failure, Sent};

use crate::keys::{Space, Span};
use crate::session::EtcdSession;
use crate::wire::{
    Ask, Compare, DeleteRangeRequest, PutRequest, RangeRequest, RangeResponse, RequestOp,
    ResponseOp, Target, Told, TxnRequest, TxnResponse,
};

/// etcd takes 128 operations in a transaction, and adds to those the two of the largest inside.
pub(crate) const MAX_OPERATIONS: usize = 126;
/// The largest value.
pub(crate) const MAX_VALUE: usize = 1024 * 1024;
/// What etcd takes in one request is 1.5 MiB; more is sent in several.
const MAX_REQUEST: usize = 1_300_000;

const CREATED: i32 = 1;
const CHANGED: i32 = 2;

/// One exchange, ready to be sent.
pub(crate) struct Job {
    pub(crate) space: Space,
    pub(crate) exchange: Exchange,
}

impl EtcdSession {
    /// Sends it all and gathers the answers.
    pub(crate) async fn exchange(&self, job: &Job) -> Result<Reply, Failure> {
        let mut reply = Reply::default();
        for part in parts(job.exchange.clone()) {
            let (shape, sent) = (Shape::of(&part), Sent::of(&part));
            let answer = self.transact(request(&job.space, part), sent).await;
            let read = |response| {
                let read = shape.read(&job.space, response, &mut reply);
                read.map_err(Failure::fatal)
            };
            if let Err(failure) = answer.and_then(read) {
                // What was sent before has been applied, so nobody may conclude that nothing was.
                let kind =
                    if reply.writes.is_empty() { failure.error.kind } else { ErrorKind::Unknown };
                return Err(Failure { error: StoreError { kind, ..failure.error }, ..failure });
            }
        }
        Ok(reply)
    }
}

/// What etcd would refuse, said in our words.
pub(crate) fn check(exchange: &Exchange) -> Result<(), StoreError> {
    let mut keys = BTreeSet::new();
    for write in &exchange.writes {
        if !keys.insert(write.key()) {
            return Err(StoreError::rejected(format!(
                "{} is written twice in one exchange, which etcd can't do: send two",
                write.key()
            )));
        }
        if let Write::Put(put) = write
            && put.value.len() > MAX_VALUE
        {
            return Err(StoreError::rejected(format!(
                "{} would hold {} bytes, but this store takes {MAX_VALUE} at most",
                put.key,
                put.value.len()
            )));
        }
    }
    Ok(())
}

/// One part, unless its values are too large for one request. Reads come with the last.
fn parts(exchange: Exchange) -> Vec<Exchange> {
    let Exchange { writes, reads } = exchange;
    if writes.is_empty() && reads.is_empty() {
        return Vec::new();
    }
    let mut parts = Vec::new();
    let (mut part, mut size) = (Vec::new(), 0);
    for write in writes {
        let bytes = match &write {
            Write::Put(put) => put.value.len() + 1_000,
            Write::Delete(_) => 1_000,
        };
        if size + bytes > MAX_REQUEST && !part.is_empty() {
            parts.push(Exchange { writes: std::mem::take(&mut part), reads: Vec::new() });
            size = 0;
        }
        size += bytes;
        part.push(write);
    }
    parts.push(Exchange { writes: part, reads });
    parts
}

fn request(space: &Space, exchange: Exchange) -> TxnRequest {
    let Exchange { mut writes, reads } = exchange;
    let reads: Vec<RequestOp> = reads.iter().map(|read| range(space, read)).collect();
    if let [Write::Put(_)] = &writes[..]
        && let Some(Write::Put(put)) = writes.pop()
    {
        let mut request = swap(space, 0, put);
        request.success.extend(reads.iter().cloned());
        request.failure = reads;
        return request;
    }
    let writes = writes.into_iter().enumerate().map(|(slot, write)| {
        operation(match write {
            Write::Put(put) => Ask::Txn(swap(space, slot, put)),
            Write::Delete(key) => Ask::DeleteRange(DeleteRangeRequest { key: space.record(&key) }),
        })
    });
    let success = writes.chain(reads).collect();
    TxnRequest { compare: Vec::new(), success, failure: Vec::new() }
}

fn range(space: &Space, read: &Read) -> RequestOp {
    let Span { key, end } = match read {
        Read::Key { key, .. } => Span { key: space.record(key), end: Vec::new() },
        Read::Prefix(prefix) => space.below(prefix),
    };
    operation(Ask::Range(RangeRequest { key, range_end: end }))
}

fn swap(space: &Space, slot: usize, put: Put) -> TxnRequest {
    let key = space.record(&put.key);
    let (target, value) = match &put.expect {
        Expect::Absent => (CREATED, Target::CreateRevision(0)),
        Expect::Version(version) => (CHANGED, Target::ModRevision(revision(version))),
    };
    let compare = Compare { result: 0, target, key: key.clone(), value: Some(value) };
    let mut success = vec![operation(Ask::Put(PutRequest { key, value: put.value }))];
    if put.hint {
        let (key, value) = (space.hint(slot), put.stamp.to_string().into_bytes());
        success.push(operation(Ask::Put(PutRequest { key, value })));
    }
    TxnRequest { compare: vec![compare], success, failure: Vec::new() }
}

fn operation(ask: Ask) -> RequestOp {
    RequestOp { request: Some(ask) }
}

/// A version that etcd never gave becomes a revision that no record has. Zero would mean absent.
fn revision(version: &Version) -> i64 {
    let number = version.as_str().parse().ok().filter(|number: &i64| *number > 0);
    number.filter(|number| number.to_string() == version.as_str()).unwrap_or(-1)
}

/// What was asked, as far as it is needed to understand the answer.
struct Shape {
    writes: Vec<Kind>,
    reads: Vec<Read>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Put,
    HintedPut,
    Delete,
}

impl Shape {
    fn of(exchange: &Exchange) -> Self {
        let writes = exchange.writes.iter().map(|write| match write {
            Write::Put(put) if put.hint => Kind::HintedPut,
            Write::Put(_) => Kind::Put,
            Write::Delete(_) => Kind::Delete,
        });
        Self { writes: writes.collect(), reads: exchange.reads.clone() }
    }

    fn read(
        &self,
        space: &Space,
        response: TxnResponse,
        reply: &mut Reply,
    ) -> Result<(), StoreError> {
        let revision = response.header.as_ref().map_or(0, |header| header.revision);
        if revision <= 0 {
            return Err(strange());
        }
        let mut answers = response.responses.into_iter();
        match &self.writes[..] {
            [kind @ (Kind::Put | Kind::HintedPut)] => {
                let puts = match (response.succeeded, kind) {
                    (true, Kind::HintedPut) => 2,
                    (true, _) => 1,
                    (false, _) => 0,
                };
                for _ in 0..puts {
                    let answer = answers.next().and_then(|answer| answer.response);
                    let Some(Told::Put(_)) = answer else { return Err(strange()) };
                }
                reply.writes.push(swapped(response.succeeded, revision));
            }
            kinds => {
                for kind in kinds {
                    let answer = answers.next().ok_or_else(strange)?;
                    reply.writes.push(outcome(*kind, answer, revision)?);
                }
            }
        }
        if answers.len() != self.reads.len() {
            return Err(strange());
        }
        for (read, answer) in self.reads.iter().zip(answers) {
            let Some(Told::Range(range)) = answer.response else { return Err(strange()) };
            reply.reads.push(found(space, read, range)?);
        }
        Ok(())
    }
}

/// All that one transaction puts gets the one revision that the answer names.
fn swapped(succeeded: bool, revision: i64) -> Outcome {
    if succeeded { Outcome::Applied(Version::new(&revision.to_string())) } else { Outcome::Refused }
}

fn outcome(kind: Kind, answer: ResponseOp, revision: i64) -> Result<Outcome, StoreError> {
    match (kind, answer.response) {
        (Kind::Delete, Some(Told::DeleteRange(_))) => Ok(Outcome::Deleted),
        (Kind::Put | Kind::HintedPut, Some(Told::Txn(inner))) => {
            Ok(swapped(inner.succeeded, revision))
        }
        _ => Err(strange()),
    }
}

fn found(space: &Space, read: &Read, range: RangeResponse) -> Result<Found, StoreError> {
    if range.more {
        return Err(strange());
    }
    // Keys that incumbent never wrote are left out.
    let mut records = range.kvs.into_iter().filter_map(|pair| {
        let key = space.key(&pair.key)?;
        let version = Version::new(&pair.mod_revision.to_string());
        Some(Record { key, value: pair.value, version, age: None })
    });
    Ok(match read {
        Read::Prefix(_) => Found::Records(records.collect()),
        Read::Key { unless, .. } => match records.next() {
            None => Found::Absent,
            Some(record) if unless.as_ref() == Some(&record.version) => Found::Unchanged,
            Some(record) => Found::Record(record),
        },
    })
}

fn strange() -> StoreError {
    StoreError::unknown("etcd's answer does not fit the question: is there something in between?")
}

#[cfg(test)]
mod tests {
    use incumbent_core::store::{Key, Stamp};

    use super::*;

    fn put(key: &str, size: usize) -> Write {
        let (key, stamp) = (Key::new(key), Stamp { writer: 1, attempt: 1 });
        Write::Put(Put {
            key,
            expect: Expect::Absent,
            value: vec![b'x'; size],
            stamp,
            hint: true,
            durable: true,
        })
    }

    #[test]
    fn only_versions_that_etcd_gives_can_match() {
        for (text, number) in [
            ("1", 1),
            ("9223372036854775807", i64::MAX),
            ("0", -1),
            ("-1", -1),
            ("-5", -1),
            ("007", -1),
            ("+7", -1),
            (" 7", -1),
            ("", -1),
            ("9223372036854775808", -1),
            ("0000000000000001.1", -1),
        ] {
            assert_eq!(revision(&Version::new(text)), number, "{text:?}");
        }
    }

    #[test]
    fn large_exchanges_are_sent_in_parts_that_fit() {
        let reads = vec![Read::Prefix(Key::new(""))];
        assert!(parts(Exchange::default()).is_empty());
        assert_eq!(parts(Exchange { writes: vec![], reads: reads.clone() }).len(), 1);
        let writes = (0..MAX_OPERATIONS).map(|n| put(&n.to_string(), 500)).collect();
        assert_eq!(parts(Exchange { writes, reads: reads.clone() }).len(), 1);
        let writes = vec![put("a", MAX_VALUE), put("b", 1), put("c", MAX_VALUE), put("d", 400_000)];
        let sent = parts(Exchange { writes, reads: reads.clone() });
        let counts: Vec<_> = sent.iter().map(|part| part.writes.len()).collect();
        assert_eq!(counts, [2, 1, 1]);
        assert!(sent.iter().rev().skip(1).all(|part| part.reads.is_empty()));
        assert_eq!(sent.last().map(|part| &part.reads), Some(&reads));
    }

    #[test]
    fn what_etcd_would_refuse_is_rejected_before() {
        let writes = vec![put("a", 1), Write::Delete(Key::new("a"))];
        let error = check(&Exchange { writes, reads: vec![] }).unwrap_err();
        assert!(error.message.contains("a is written twice"), "{error}");
        let writes = vec![put("a", MAX_VALUE + 1)];
        let error = check(&Exchange { writes, reads: vec![] }).unwrap_err();
        assert!(error.message.contains("1048577"), "{error}");
    }

    #[test]
    fn hints_of_one_exchange_never_share_a_key() {
        let space = Space::new("/p", "c");
        let exchange = Exchange { writes: vec![put("a", 1), put("b", 1)], reads: vec![] };
        let mut keys = BTreeSet::new();
        for operation in request(&space, exchange).success {
            let Some(Ask::Txn(inner)) = operation.request else { panic!("a write is nested") };
            for operation in inner.success {
                let Some(Ask::Put(put)) = operation.request else { panic!("a put") };
                assert!(keys.insert(put.key));
            }
        }
        assert_eq!(keys.len(), 4);
    }
}
