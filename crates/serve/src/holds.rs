//! All holds of this server, and their limits.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use axum::http::{HeaderValue, header};
use incumbent::{Moment, clock};
use tokio::sync::watch;

use crate::hold::{Hold, Order, Why};
use crate::peer::Party;
use crate::problem::{LOST, NO_SUCH_HOLD, Problem, STOPPING, TOO_MANY};

/// How many holds and streams there are at most: in all, and for one address or user.
pub(crate) const ALL: usize = 4096;
pub(crate) const EACH: usize = 1024;

/// So many that are over are remembered, to say why.
const ENDED: usize = 1024;

/// So many that rest are remembered.
const RESTING: usize = 1024;

/// All holds.
#[derive(Debug)]
pub(crate) struct Holds {
    live: Mutex<HashMap<String, Arc<Hold>>>,
    /// Those that are held, by lease: what roles are answered from.
    held: RwLock<HashMap<String, Arc<Hold>>>,
    ended: Mutex<VecDeque<Ended>>,
    /// Who gave which lease up, and stands back until then.
    resting: Mutex<HashMap<(String, String), Moment>>,
    /// How often who held which lease came to nothing.
    stuck: Mutex<BTreeMap<(String, String), u64>>,
    places: Mutex<HashMap<Party, usize>>,
    each: usize,
    stopping: AtomicBool,
    count: watch::Sender<usize>,
}

/// A hold that is over.
#[derive(Clone, Debug)]
struct Ended {
    name: String,
    lease: String,
    term: Option<u64>,
    why: Why,
}

/// A place that is taken until this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    holds: Arc<Holds>,
    party: Party,
}

impl Default for Holds {
    fn default() -> Self {
        Self {
            live: Mutex::default(),
            held: RwLock::default(),
            ended: Mutex::default(),
            resting: Mutex::default(),
            stuck: Mutex::default(),
            places: Mutex::default(),
            each: EACH,
            stopping: AtomicBool::new(false),
            count: watch::Sender::new(0),
        }
    }
}

impl Holds {
    /// So many for one address or user.
    pub(crate) fn with_most_each(each: usize) -> Self {
        Self { each, ..Self::default() }
    }

    /// Takes a place for a hold or a stream, if there is one.
    pub(crate) fn place(self: &Arc<Self>, party: Party) -> Result<Place, Problem> {
        if self.is_stopping() {
            let said = "this server is shutting down: ask another, or this one when it is back";
            return Err(Problem::new(&STOPPING, said));
        }
        let mut places = lock(&self.places);
        let all: usize = places.values().sum();
        let own = places.entry(party.clone()).or_default();
        let each = self.each;
        if all >= ALL || *own >= each {
            let said = format!(
                "there are {all} holds and streams, {own} of them from your address: the limits are {ALL} and {each}"
            );
            let wait = HeaderValue::from_static("5");
            return Err(Problem::new(&TOO_MANY, said).header(header::RETRY_AFTER, wait));
        }
        *own += 1;
        drop(places);
        Ok(Place { holds: Arc::clone(self), party })
    }

    /// A new hold.
    pub(crate) fn add(&self, hold: &Arc<Hold>) {
        lock(&self.live).insert(hold.name.clone(), Arc::clone(hold));
        self.count.send_modify(|count| *count += 1);
        if self.is_stopping() {
            hold.order(Order::Shutdown);
        }
    }

    /// The hold is gone, and all that was told with it.
    pub(crate) fn remove(&self, hold: &Hold) {
        lock(&self.live).remove(&hold.name);
        self.count.send_modify(|count| *count = count.saturating_sub(1));
    }

    /// A hold by its id, unless it is over.
    pub(crate) fn find(&self, id: &str) -> Result<Arc<Hold>, Problem> {
        if let Some(hold) = lock(&self.live).get(id) {
            return Ok(Arc::clone(hold));
        }
        match self.end_of(id) {
            Some(ended) => Err(Self::gone(&ended.lease, ended.term, ended.why)),
            None => {
                let said = "it ended long ago, or belonged to a server that was restarted: ask for another";
                Err(Problem::new(&NO_SUCH_HOLD, said))
            }
        }
    }

    /// Whether this was a hold that is over.
    pub(crate) fn is_past(&self, id: &str) -> bool {
        self.end_of(id).is_some()
    }

    /// What is said of a hold that is over.
    pub(crate) fn gone(lease: &str, term: Option<u64>, why: Why) -> Problem {
        let why = why.as_str();
        let said =
            format!("the hold of {lease:?} is over ({why}): stop its work, and ask for another");
        Problem::new(&LOST, said).with("lease", lease).with("term", term).with("why", why)
    }

    fn end_of(&self, id: &str) -> Option<Ended> {
        lock(&self.ended).iter().rev().find(|ended| ended.name == id).cloned()
    }

    /// The hold tells nothing any more.
    pub(crate) fn ended(&self, hold: &Hold, why: Why) {
        if why == Why::Stuck && hold.is_of_lease() {
            let mut stuck = lock(&self.stuck);
            let who = (hold.lease.clone(), hold.candidate.clone());
            if stuck.len() < ENDED || stuck.contains_key(&who) {
                *stuck.entry(who).or_default() += 1;
            }
        }
        let mut ended = lock(&self.ended);
        if ended.len() >= ENDED {
            ended.pop_front();
        }
        let term = hold.term().map(|(term, _)| term.number());
        let (name, lease) = (hold.name.clone(), hold.lease.clone());
        ended.push_back(Ended { name, lease, term, why });
    }

    /// This lease is held by that hold.
    pub(crate) fn held(&self, hold: &Arc<Hold>) {
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        held.insert(hold.lease.clone(), Arc::clone(hold));
    }

    /// It isn't any more.
    pub(crate) fn release(&self, hold: &Arc<Hold>) {
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        if held.get(&hold.lease).is_some_and(|known| Arc::ptr_eq(known, hold)) {
            held.remove(&hold.lease);
        }
    }

    /// The hold by which a lease is held here at this moment.
    pub(crate) fn holder(&self, lease: &str) -> Option<Arc<Hold>> {
        let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
        held.get(lease).filter(|hold| hold.is_held()).cloned()
    }

    /// How often who held which lease came to nothing, by lease and name.
    pub(crate) fn stuck(&self) -> BTreeMap<(String, String), u64> {
        lock(&self.stuck).clone()
    }

    /// All that are not over.
    pub(crate) fn all(&self) -> Vec<Arc<Hold>> {
        lock(&self.live).values().cloned().collect()
    }

    /// Who held it was asked to give it up, and stands back for a third of its ttl.
    pub(crate) fn rest(&self, hold: &Hold) {
        let now = clock::now();
        let mut resting = lock(&self.resting);
        if resting.len() >= RESTING {
            resting.retain(|_, until| *until > now);
        }
        let who = (hold.lease.clone(), hold.candidate.clone());
        resting.insert(who, now + hold.ttl / 3);
    }

    /// Until when somebody of this name stands back.
    pub(crate) fn rests(&self, lease: &str, candidate: &str) -> Moment {
        let who = (lease.to_owned(), candidate.to_owned());
        lock(&self.resting).get(&who).copied().unwrap_or(Moment::START)
    }

    pub(crate) fn count(&self) -> usize {
        *self.count.borrow()
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Takes no more, and lets each end in order; ready when the last has.
    pub(crate) async fn shut_down(&self) {
        self.stopping.store(true, Ordering::Release);
        for hold in lock(&self.live).values() {
            hold.order(Order::Shutdown);
        }
        let mut count = self.count.subscribe();
        let _ = count.wait_for(|count| *count == 0).await;
        // The last lines are on their way to their clients.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut places = lock(&self.holds.places);
        if let Some(own) = places.get_mut(&self.party) {
            *own = own.saturating_sub(1);
            if *own == 0 {
                places.remove(&self.party);
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
