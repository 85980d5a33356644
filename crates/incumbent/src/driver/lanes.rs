//! What is on its way to the store, lane by lane.

use std::collections::{HashMap, VecDeque};

use incumbent_core::store::{ErrorKind, Lane, Reply, StoreError};
use incumbent_core::{Moment, Request, RequestId, Rhythm};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{Id, JoinSet};

use super::batch::{self, Batch, Part};
use super::chorus;
use crate::driver::exchange;
use crate::driver::{clock, thread};
use crate::open::OpenStore;

/// Beats go out at once, or together with those of the other members that this process beats for. Each other
/// lane has one exchange at a time on its way, and what piles up meanwhile goes together in the next.
pub(crate) struct Lanes {
    store: OpenStore,
    cluster: Arc<str>,
    limit: usize,
    /// Whether others of this process beat at the same moments.
    together: bool,
    change: LaneQueue,
    watch: LaneQueue,
    flights: JoinSet<Result<Reply, StoreError>>,
    parts: HashMap<Id, Flight>,
}

/// An exchange that came back, or didn't.
pub(crate) struct Landed {
    pub(crate) lane: Lane,
    pub(crate) latency: Duration,
    pub(crate) answers: Vec<(RequestId, Result<Reply, StoreError>)>,
}

#[derive(Default)]
struct LaneQueue {
    waiting: VecDeque<Request>,
    busy: bool,
    /// So many requests are still sent alone, because a store rejected a batch: what is wrong
    /// with one must not keep failing the others.
    alone: usize,
}

struct Flight {
    lane: Lane,
    sent: Moment,
    parts: Vec<Part>,
}

impl Lanes {
    pub(crate) fn store(&self) -> OpenStore {
        self.store.clone()
    }

    pub(crate) fn new(store: OpenStore, cluster: Arc<str>, rhythm: Rhythm) -> Self {
        let limit = store.capabilities().max_operations;
        Self {
            store,
            cluster,
            limit,
            together: matches!(rhythm, Rhythm::Together(_)),
            change: LaneQueue::default(),
            watch: LaneQueue::default(),
            flights: JoinSet::new(),
            parts: HashMap::new(),
        }
    }

    /// Sends a request, or queues it behind others of its lane.
    pub(crate) fn push(&mut self, request: Request) {
        match request.lane {
            Lane::Beat => {
                let parts = vec![Part::of(&request)];
                let (store, cluster) = (self.store.clone(), Arc::clone(&self.cluster));
                if self.together && chorus::is_ordinary(&request) {
                    let sending = chorus::send(store, cluster, request, self.limit);
                    return self.fly(Lane::Beat, parts, sending);
                }
                let Request { exchange, deadline, .. } = request;
                let sending = exchange::send(store, cluster, Lane::Beat, exchange, deadline);
                self.fly(Lane::Beat, parts, sending);
            }
            Lane::Change => self.change.waiting.push_back(request),
            Lane::Watch => self.watch.waiting.push_back(request),
        }
    }

    /// Sends what can be sent.
    pub(crate) fn dispatch(&mut self, now: Moment) {
        for lane in [Lane::Change, Lane::Watch] {
            let limit = self.limit;
            if let Some(batch) = self.queue(lane).and_then(|queue| queue.next(now, limit)) {
                let Batch { exchange, parts, deadline } = batch;
                let (store, cluster) = (self.store.clone(), Arc::clone(&self.cluster));
                self.fly(lane, parts, exchange::send(store, cluster, lane, exchange, deadline));
            }
        }
    }

    /// Waits for the next exchange to come back. Cancel-safe.
    pub(crate) async fn landed(&mut self) -> Option<Landed> {
        let (id, answer) = match self.flights.join_next_with_id().await? {
            Ok((id, answer)) => (id, answer),
            Err(error) => {
                // A store that panics is a store that failed; the beat goes on.
                let said = format!("the store failed in the middle of an exchange: {error}");
                (error.id(), Err(StoreError::unknown(said)))
            }
        };
        let Flight { lane, sent, parts } = self.parts.remove(&id)?;
        if let Some(queue) = self.queue(lane) {
            queue.busy = false;
            if matches!(&answer, Err(error) if error.kind == ErrorKind::Rejected) {
                queue.alone = parts.len() * 2;
            }
        }
        let latency = clock::now().since(sent);
        Some(Landed { lane, latency, answers: batch::split(parts, answer) })
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.flights.is_empty()
    }

    fn queue(&mut self, lane: Lane) -> Option<&mut LaneQueue> {
        match lane {
            Lane::Beat => None,
            Lane::Change => Some(&mut self.change),
            Lane::Watch => Some(&mut self.watch),
        }
    }

    fn fly(
        &mut self,
        lane: Lane,
        parts: Vec<Part>,
        sending: impl Future<Output = Result<Reply, StoreError>> + Send + 'static,
    ) {
        let sent = clock::now();
        let flight = self.flights.spawn(thread::beating(sending));
        self.parts.insert(flight.id(), Flight { lane, sent, parts });
    }
}

impl LaneQueue {
    fn next(&mut self, now: Moment, limit: usize) -> Option<Batch> {
        // The core has given up on these, so sending them would only do harm.
        self.waiting.retain(|request| request.deadline >= now);
        if self.busy || self.waiting.is_empty() {
            return None;
        }
        let most = if self.alone > 0 { 1 } else { usize::MAX };
        self.alone = self.alone.saturating_sub(1);
        self.busy = true;
        let batch = Batch::gather(&mut self.waiting, limit, most);
        if self.waiting.is_empty() {
            // The room that thousands of takes had isn't needed again.
            self.waiting = VecDeque::new();
        }
        batch
    }
}
