//! The path from a process to its store, and what can happen on it.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use incumbent_core::store::{
    Answer, Capabilities, Exchange, Found, HintGuard, Key, Lane, Outcome, Read, Record, Reply,
    Store, StoreError, Wake,
};
use incumbent_memory::MemoryStore;
use tokio::sync::oneshot;

use super::process::Inside;
use super::world::Space;

/// How requests to the store fare. Odds are in thousandths.
#[derive(Clone, Debug)]
pub struct Conditions {
    /// How long a request or a reply travels, at least and at most.
    pub latency: (Duration, Duration),
    /// A request never arrives.
    pub lost_requests: u64,
    /// A request is applied, and its reply never arrives.
    pub lost_replies: u64,
    /// A request is answered with an error, and applied a while later.
    pub late: u64,
    /// What is longest for `late`.
    pub latest: Duration,
    /// A request fails at once, and surely wasn't applied.
    pub unavailable: u64,
    /// The client of the store panics.
    pub panics: u64,
    /// A read shows what was there a while ago.
    pub stale: u64,
    /// What is longest for `stale`.
    pub stalest: Duration,
    /// A hint doesn't come.
    pub lost_hints: u64,
    /// Nothing gets through, either way.
    pub cut: bool,
}

impl Default for Conditions {
    /// All is well, and takes from one to three milliseconds each way.
    fn default() -> Self {
        Self {
            latency: (Duration::from_millis(1), Duration::from_millis(3)),
            lost_requests: 0,
            lost_replies: 0,
            late: 0,
            latest: Duration::from_secs(5),
            unavailable: 0,
            panics: 0,
            stale: 0,
            stalest: Duration::from_secs(5),
            lost_hints: 0,
            cut: false,
        }
    }
}

/// The present conditions of one process.
#[derive(Default)]
pub(super) struct Road(Mutex<Conditions>);

impl Road {
    pub(super) fn change(&self, change: impl FnOnce(&mut Conditions)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn now(&self) -> Conditions {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn is_cut(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).cut
    }
}

/// The records, and what they were: some reads are stale.
#[derive(Default)]
pub(super) struct Shelf {
    store: MemoryStore,
    past: Mutex<ShelfPast>,
}

/// What each key held from which instant on.
type ShelfPast = BTreeMap<(String, Key), Vec<(u64, Option<Record>)>>;

/// Older states are forgotten.
const REMEMBERED: usize = 64;

impl Shelf {
    fn past(&self) -> MutexGuard<'_, ShelfPast> {
        self.past.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Applies an exchange at once; reads show what was there so long ago.
    fn apply(
        &self,
        cluster: &str,
        lane: Lane,
        exchange: Exchange,
        now: u64,
        stale: Option<u64>,
    ) -> Result<Reply, StoreError> {
        let reads = exchange.reads.clone();
        let keys: Vec<Key> = exchange.writes.iter().map(|write| write.key().clone()).collect();
        let mut reply = at_once(self.store.exchange(cluster, lane, exchange))?;
        let changed = |outcome: &&Outcome| **outcome != Outcome::Refused;
        if reply.writes.iter().filter(changed).count() > 0 {
            let looks = keys.iter().map(|key| Read::Key { key: key.clone(), unless: None });
            let look = Exchange { writes: Vec::new(), reads: looks.collect() };
            let found = at_once(self.store.exchange(cluster, lane, look))?;
            let mut past = self.past();
            for (key, found) in keys.into_iter().zip(found.reads) {
                let states = past.entry((cluster.to_owned(), key)).or_default();
                let record = if let Found::Record(record) = found { Some(record) } else { None };
                states.push((now, record));
                if states.len() > REMEMBERED {
                    states.remove(0);
                }
            }
        }
        if let Some(stale) = stale {
            let then = now.saturating_sub(stale);
            reply.reads = reads.iter().map(|read| self.look_back(cluster, read, then)).collect();
        }
        Ok(reply)
    }

    fn look_back(&self, cluster: &str, read: &Read, then: u64) -> Found {
        let past = self.past();
        let at = |states: &Vec<(u64, Option<Record>)>| {
            let state = states.iter().rev().find(|(from, _)| *from <= then);
            state.and_then(|(_, record)| record.clone())
        };
        match read {
            Read::Key { key, unless } => {
                match past.get(&(cluster.to_owned(), key.clone())).and_then(at) {
                    None => Found::Absent,
                    Some(record) if unless.as_ref() == Some(&record.version) => Found::Unchanged,
                    Some(record) => Found::Record(record),
                }
            }
            Read::Prefix(prefix) => {
                let below = |(place, key): &(&String, &Key)| {
                    place.as_str() == cluster && key.as_str().starts_with(prefix.as_str())
                };
                let states = past.iter().filter(|((place, key), _)| below(&(place, key)));
                Found::Records(states.filter_map(|(_, states)| at(states)).collect())
            }
        }
    }
}

/// The memory store is ready at the first poll.
fn at_once(answer: Answer<'_>) -> Result<Reply, StoreError> {
    match pin!(answer).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(reply) => reply,
        Poll::Pending => Err(StoreError::unknown("the memory store did not answer at once")),
    }
}

/// The store as one process sees it.
pub(super) struct Path {
    pub(super) space: Arc<Space>,
    pub(super) process: Arc<Inside>,
}

/// What becomes of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Well,
    LostRequest,
    LostReply,
    Late,
    Unavailable,
    Panics,
}

/// A request on its way, with all that was drawn for it.
struct Journey {
    space: Arc<Space>,
    process: Arc<Inside>,
    cluster: String,
    lane: Lane,
    exchange: Exchange,
    fate: Fate,
    there: Duration,
    back: Duration,
    stale: Option<u64>,
}

impl Path {
    fn journey(&self, cluster: &str, lane: Lane, exchange: Exchange) -> Journey {
        let conditions = self.process.road.now();
        self.space.draw(|random| {
            let mut strikes = |odds: u64| odds > 0 && random.below(1000) < odds;
            let fate = if strikes(conditions.panics) {
                Fate::Panics
            } else if strikes(conditions.unavailable) {
                Fate::Unavailable
            } else if strikes(conditions.lost_requests) {
                Fate::LostRequest
            } else if strikes(conditions.lost_replies) {
                Fate::LostReply
            } else if strikes(conditions.late) {
                Fate::Late
            } else if conditions.cut && strikes(500) {
                Fate::Unavailable
            } else {
                Fate::Well
            };
            let stale = strikes(conditions.stale);
            let (least, most) = conditions.latency;
            Journey {
                space: Arc::clone(&self.space),
                process: Arc::clone(&self.process),
                cluster: cluster.to_owned(),
                lane,
                exchange,
                fate,
                there: match fate {
                    Fate::Late => random.span(least, conditions.latest),
                    _ => random.span(least, most),
                },
                back: random.span(least, most),
                stale: stale.then(|| random.below(conditions.stalest.as_nanos() as u64)),
            }
        })
    }
}

impl Journey {
    /// Goes on whatever its process does meanwhile.
    async fn travel(self, answer: oneshot::Sender<Result<Reply, StoreError>>) {
        if self.process.road.is_cut() {
            return std::future::pending().await;
        }
        tokio::time::sleep(self.there).await;
        if self.fate == Fate::LostRequest || self.process.road.is_cut() {
            return std::future::pending().await;
        }
        let (now, shelf) = (self.space.instant(), &self.space.shelf);
        let asked = self.exchange.clone();
        let reply = shelf.apply(&self.cluster, self.lane, self.exchange, now, self.stale);
        if let Ok(reply) = &reply {
            self.space.judged(&self.process, |judge, process| {
                judge.applied(process, self.lane, &asked, reply);
            });
        }
        tokio::time::sleep(self.back).await;
        if self.fate == Fate::LostReply || self.process.road.is_cut() {
            return std::future::pending().await;
        }
        // Nobody waits for what is late.
        let _ = answer.send(reply);
    }
}

impl Store for Path {
    fn capabilities(&self) -> Capabilities {
        Capabilities { kind: "world", ..self.space.shelf.store.capabilities() }
    }

    fn exchange<'a>(&'a self, cluster: &'a str, lane: Lane, exchange: Exchange) -> Answer<'a> {
        Box::pin(async move {
            self.space.judged(&self.process, |judge, process| {
                judge.sent(process, lane, &exchange);
            });
            let journey = self.journey(cluster, lane, exchange);
            let fate = journey.fate;
            match fate {
                Fate::Panics => {
                    // Without the noise of a panic that nobody planned.
                    std::panic::resume_unwind(Box::new("the store's client panics, as planned"));
                }
                Fate::Unavailable => {
                    return Err(StoreError::unavailable("not sent, as planned"));
                }
                Fate::Well | Fate::LostRequest | Fate::LostReply | Fate::Late => {}
            }
            let (answer, answered) = oneshot::channel();
            drop(self.space.runtime().spawn(journey.travel(answer)));
            if fate == Fate::Late {
                return Err(StoreError::unknown("may be applied later, as planned"));
            }
            answered.await.unwrap_or_else(|_| Err(StoreError::unknown("the world has ended")))
        })
    }

    fn hints(&self, cluster: &str, wake: Wake) -> Option<HintGuard> {
        let (space, process) = (Arc::clone(&self.space), Arc::clone(&self.process));
        let delayed: Wake = Arc::new(move || {
            let conditions = process.road.now();
            let (least, most) = conditions.latency;
            let travels = space.draw(|random| {
                let lost = random.below(1000) < conditions.lost_hints;
                (!lost && !conditions.cut).then(|| random.span(least, most))
            });
            if let Some(travels) = travels {
                let (wake, process) = (Arc::clone(&wake), Arc::clone(&process));
                drop(space.runtime().spawn(async move {
                    tokio::time::sleep(travels).await;
                    if !process.road.is_cut() {
                        wake();
                    }
                }));
            }
        });
        self.space.shelf.store.hints(cluster, delayed)
    }
}
