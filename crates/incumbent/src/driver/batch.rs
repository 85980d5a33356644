//! Requests of one lane that are sent as one exchange.

use std::collections::{HashSet, VecDeque};

use incumbent_core::store::{Exchange, Key, Reply, StoreError, Write};
use incumbent_core::{Moment, Request, RequestId};

/// One exchange, and whose it is.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) exchange: Exchange,
    pub(crate) parts: Vec<Part>,
    /// When nobody waits any more for any part of the answer.
    pub(crate) deadline: Moment,
}

/// How much of the exchange belongs to one request.
#[derive(Debug)]
pub(crate) struct Part {
    id: RequestId,
    writes: usize,
    reads: usize,
}

impl Part {
    pub(crate) fn of(request: &Request) -> Self {
        let Request { id, exchange, .. } = request;
        Self { id: *id, writes: exchange.writes.len(), reads: exchange.reads.len() }
    }
}

impl Batch {
    /// One request alone.
    fn single(request: Request) -> Self {
        let mut batch =
            Self { exchange: Exchange::default(), parts: Vec::new(), deadline: Moment::START };
        batch.add(request);
        batch
    }

    /// As many requests from the front of the queue as go together: no more operations than the
    /// store takes, and no two writes of one key, whose order would be left open.
    pub(crate) fn gather(queue: &mut VecDeque<Request>, limit: usize, most: usize) -> Option<Self> {
        let mut batch = Self::single(queue.pop_front()?);
        let mut keys: HashSet<Key> = written(&batch.exchange).cloned().collect();
        while batch.parts.len() < most
            && let Some(next) = queue.front()
            && batch.operations() + operations(&next.exchange) <= limit
            && !written(&next.exchange).any(|key| keys.contains(key))
        {
            keys.extend(written(&next.exchange).cloned());
            if let Some(next) = queue.pop_front() {
                batch.add(next);
            }
        }
        Some(batch)
    }

    fn add(&mut self, request: Request) {
        self.parts.push(Part::of(&request));
        let Request { exchange, deadline, .. } = request;
        self.exchange.writes.extend(exchange.writes);
        self.exchange.reads.extend(exchange.reads);
        self.deadline = self.deadline.max(deadline);
    }

    fn operations(&self) -> usize {
        operations(&self.exchange)
    }
}

/// Gives each request its part of the answer.
pub(crate) fn split(
    parts: Vec<Part>,
    answer: Result<Reply, StoreError>,
) -> Vec<(RequestId, Result<Reply, StoreError>)> {
    let reply = match answer {
        Ok(reply) => reply,
        Err(error) => return parts.into_iter().map(|part| (part.id, Err(error.clone()))).collect(),
    };
    let (mut writes, mut reads) = (reply.writes.into_iter(), reply.reads.into_iter());
    parts
        .into_iter()
        .map(|part| {
            let own = Reply {
                writes: writes.by_ref().take(part.writes).collect(),
                reads: reads.by_ref().take(part.reads).collect(),
            };
            let whole = own.writes.len() == part.writes && own.reads.len() == part.reads;
            let short = || StoreError::unknown("the store answered less than it was asked");
            (part.id, whole.then_some(own).ok_or_else(short))
        })
        .collect()
}

fn operations(exchange: &Exchange) -> usize {
    exchange.writes.len() + exchange.reads.len()
}

fn written(exchange: &Exchange) -> impl Iterator<Item = &Key> {
    exchange.writes.iter().map(Write::key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use incumbent_core::store::{Found, Lane, Outcome, Read};

    fn request(id: u64, writes: &[&str], reads: &[&str]) -> Request {
        let writes = writes.iter().map(|key| Write::Delete(Key::new(key))).collect();
        let reads =
            reads.iter().map(|key| Read::Key { key: Key::new(key), unless: None }).collect();
        Request {
            id: RequestId(id),
            lane: Lane::Change,
            exchange: Exchange { writes, reads },
            deadline: Moment::from_nanos(id),
        }
    }

    #[test]
    fn requests_are_merged_up_to_the_limit_and_answered_apart() {
        let mut queue: VecDeque<_> =
            [request(1, &["a"], &["x"]), request(2, &["b"], &["y"]), request(3, &["c"], &[])]
                .into();
        let batch = Batch::gather(&mut queue, 4, 100).unwrap();
        assert_eq!((batch.parts.len(), queue.len()), (2, 1));
        assert_eq!(batch.deadline, Moment::from_nanos(2));
        let reply = Reply {
            writes: vec![Outcome::Deleted, Outcome::Refused],
            reads: vec![Found::Absent, Found::Unchanged],
        };
        let answers = split(batch.parts, Ok(reply));
        let second = answers.get(1).unwrap();
        assert_eq!(second.0, RequestId(2));
        let own = second.1.as_ref().unwrap();
        assert_eq!(
            (&own.writes[..], &own.reads[..]),
            (&[Outcome::Refused][..], &[Found::Unchanged][..])
        );
    }

    #[test]
    fn two_writes_of_one_key_never_go_together() {
        let mut queue: VecDeque<_> = [request(1, &["a"], &[]), request(2, &["a"], &[])].into();
        assert_eq!(Batch::gather(&mut queue, 100, 100).unwrap().parts.len(), 1);
        assert_eq!(queue.len(), 1);
    }

    #[test]
    fn a_short_answer_is_an_unknown_outcome() {
        let batch = Batch::single(request(1, &["a", "b"], &[]));
        let reply = Reply { writes: vec![Outcome::Deleted], reads: Vec::new() };
        assert!(split(batch.parts, Ok(reply)).first().unwrap().1.is_err());
    }
}
