//! Beats of several members of this process, as one exchange.
//!
//! A process that holds leases for others ([`Builder::on_behalf`](crate::Builder::on_behalf)) beats for each of
//! them. These beats fall due at one moment ([`Rhythm::Together`](incumbent_core::Rhythm)); what is due waits here
//! for a few milliseconds and goes out together. Trust counts from before that.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use incumbent_core::store::{ErrorKind, Expect, Lane, Reply, StoreError, Write};
use incumbent_core::{Moment, Request};
use tokio::sync::oneshot;

use super::batch::{self, Batch};
use crate::driver::{clock, exchange, thread};
use crate::open::OpenStore;

/// How long the first waits for the others: their timers are no finer than a millisecond.
const GATHERING: Duration = Duration::from_millis(4);

type Answer = Result<Reply, StoreError>;

/// Those who beat together on one opened store.
#[derive(Default)]
pub(crate) struct Chorus {
    since: OnceLock<Moment>,
    /// By cluster, because an exchange is with one.
    voices: Mutex<BTreeMap<Arc<str>, Voices>>,
}

#[derive(Default)]
struct Voices {
    waiting: Vec<(Request, oneshot::Sender<Answer>)>,
    /// So many are still sent alone, because the store rejected a batch: what is wrong with one must not
    /// keep failing the others.
    alone: usize,
}

impl Chorus {
    /// The moment from which all count their beats. Each process has its own, so that they keep apart.
    pub(crate) fn since(&self) -> Moment {
        *self.since.get_or_init(clock::now)
    }

    /// Whether the first is waiting from now on, so that somebody has to send what gathers.
    fn enter(&self, cluster: &Arc<str>, request: Request, answer: oneshot::Sender<Answer>) -> bool {
        let mut voices = self.locked();
        let voices = voices.entry(Arc::clone(cluster)).or_default();
        voices.waiting.push((request, answer));
        voices.waiting.len() == 1
    }

    /// All that wait, and how many of them may go together.
    fn take(&self, cluster: &str) -> (Vec<(Request, oneshot::Sender<Answer>)>, usize) {
        let mut voices = self.locked();
        let Some(voices) = voices.get_mut(cluster) else { return (Vec::new(), 1) };
        let waiting = std::mem::take(&mut voices.waiting);
        let together = if voices.alone > 0 { 1 } else { usize::MAX };
        voices.alone = voices.alone.saturating_sub(waiting.len());
        (waiting, together)
    }

    /// The store rejected so many together.
    fn rejected(&self, cluster: &str, together: usize) {
        if together > 1
            && let Some(voices) = self.locked().get_mut(cluster)
        {
            voices.alone = together * 2;
        }
    }

    fn locked(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Voices>> {
        self.voices.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether others are worth waiting for: an ordinary beat, and nothing that somebody waits for.
pub(crate) fn is_ordinary(request: &Request) -> bool {
    match request.exchange.writes.as_slice() {
        [Write::Put(put)] => !put.hint && matches!(put.expect, Expect::Version(_)),
        _ => false,
    }
}

/// Sends a beat with those of others, of which the store takes so many operations at once. Only for
/// futures that run on incumbent's thread.
pub(crate) async fn send(
    store: OpenStore,
    cluster: Arc<str>,
    request: Request,
    limit: usize,
) -> Answer {
    let deadline = request.deadline;
    let (answer, answered) = oneshot::channel();
    if store.chorus.enter(&cluster, request, answer)
        && let Err(error) = thread::spawn(conduct(store.clone(), Arc::clone(&cluster), limit))
    {
        drop(store.chorus.take(&cluster));
        return Err(StoreError::unavailable(error.to_string()));
    }
    tokio::select! {
        biased;
        answer = answered => {
            let failed = || StoreError::unknown("the store failed in the middle of an exchange");
            answer.unwrap_or_else(|_| Err(failed()))
        }
        () = thread::sleep_until(deadline) => {
            Err(StoreError::unknown("the store did not answer in time"))
        }
    }
}

/// Lets the others come, then sends all that are there.
async fn conduct(store: OpenStore, cluster: Arc<str>, limit: usize) {
    thread::sleep_until(clock::now() + GATHERING).await;
    let (waiting, together) = store.chorus.take(&cluster);
    let now = clock::now();
    // What the core has given up would only do harm.
    let waiting = waiting.into_iter().filter(|(request, _)| request.deadline >= now);
    let (mut requests, mut answers): (VecDeque<_>, VecDeque<_>) = waiting.unzip();
    while let Some(batch) = Batch::gather(&mut requests, limit.max(1), together) {
        let own = answers.drain(..batch.parts.len().min(answers.len())).collect();
        // If it can't be started the answers are dropped, which those who wait take for unknown.
        let _ = thread::spawn(fly(store.clone(), Arc::clone(&cluster), batch, own));
    }
}

async fn fly(
    store: OpenStore,
    cluster: Arc<str>,
    batch: Batch,
    waiting: Vec<oneshot::Sender<Answer>>,
) {
    let Batch { exchange, parts, deadline } = batch;
    let answer =
        exchange::send(store.clone(), Arc::clone(&cluster), Lane::Beat, exchange, deadline).await;
    if matches!(&answer, Err(error) if error.kind == ErrorKind::Rejected) {
        store.chorus.rejected(&cluster, waiting.len());
    }
    for ((_, own), waits) in batch::split(parts, answer).into_iter().zip(waiting) {
        let _ = waits.send(own);
    }
}

impl fmt::Debug for Chorus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chorus").field("since", &self.since).finish_non_exhaustive()
    }
}
