//! What changes in the cluster, as it changes: `GET /v1/events`.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{HeaderMap, Method};
use incumbent::{Moment, StoreHealth, clock};
use serde_json::json;
use tokio::sync::{Notify, mpsc, watch};

use crate::access::Role;
use crate::call::{Answer, Call};
use crate::holding::party;
use crate::holds::Place;
use crate::lines::{Format, Lines};
use crate::service::Service;
use crate::snapshot::Snapshot;
use crate::watched::Watched;

mod difference;

/// So many events are remembered.
const REMEMBERED: usize = 4096;

/// So long they are remembered while nobody reads.
const REMEMBERED_FOR: Duration = Duration::from_secs(30);

/// Between two looks at the store: no longer, whatever became of its hints, and no shorter.
const LONGEST: Duration = Duration::from_secs(1);
const SHORTEST: Duration = Duration::from_millis(100);

/// So many events wait for one reader, and so long for it to read.
const WAITING: usize = 64;
const PATIENCE: Duration = Duration::from_secs(30);

/// What happened, for all who read.
#[derive(Debug)]
pub(crate) struct News {
    run: String,
    state: Mutex<State>,
    /// The number of the last event; 0 until the cluster was read once.
    last: watch::Sender<u64>,
    readers: AtomicUsize,
    looking: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    known: Option<Arc<Snapshot>>,
    /// When that was taken in.
    taken: Option<Moment>,
    events: VecDeque<Event>,
}

/// One thing that changed.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    number: u64,
    /// As readers get it, who share it.
    line: Bytes,
}

/// `GET /v1/events`.
pub(crate) async fn events(call: Call) -> Answer {
    call.know(&["after"])?;
    let place = call.service.holds().place(party(call.peer.as_deref()))?;
    let (sender, receiver) = mpsc::channel(WAITING);
    let after = seen(&call.headers, call.query("after"), &call.watched.news.run);
    let reader = Reader::new(&call.service, &call.watched, place);
    let service = call.service.clone();
    service.spawn(async move {
        let reader = reader;
        read(&call, after, &sender).await;
        drop(reader);
    });
    Ok(Lines::response(Format::Events, receiver, ()))
}

/// Somebody who reads.
struct Reader {
    watched: Arc<Watched>,
    _place: Place,
}

impl Reader {
    fn new(service: &Service, watched: &Arc<Watched>, place: Place) -> Self {
        let news = &watched.news;
        // Counted before it is asked who looks; who stops looking says so before it counts. In one order
        // for all, or both could miss each other.
        news.readers.fetch_add(1, Ordering::SeqCst);
        if !news.looking.swap(true, Ordering::SeqCst) {
            news.forget_what_is_old();
            service.spawn(look(Arc::clone(watched)));
        }
        Self { watched: Arc::clone(watched), _place: place }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.watched.news.readers.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The number of the last event that the reader has, if it is of this run.
fn seen(headers: &HeaderMap, after: Option<&str>, run: &str) -> Option<u64> {
    let header = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let (of, number) = header.or(after)?.split_once('-')?;
    number.parse().ok().filter(|_| of == run)
}

/// Sends all that is new, until nobody reads.
async fn read(call: &Call, after: Option<u64>, sender: &mpsc::Sender<Bytes>) {
    let (service, watched) = (&call.service, &call.watched);
    let news = &watched.news;
    let mut last = news.last.subscribe();
    let mut after = after;
    loop {
        // A role may have been taken away since (O58).
        let access = service.access();
        let peer = call.peer.as_deref();
        if access.admit(&Method::GET, &call.headers, peer, Some(Role::ReadOnly)).is_err() {
            return;
        }
        let _ = last.borrow_and_update();
        if news.is_ready() {
            for line in news.since(watched, &mut after) {
                let sent = tokio::time::timeout(PATIENCE, sender.send(line)).await;
                if !matches!(sent, Ok(Ok(()))) {
                    return;
                }
            }
        }
        tokio::select! {
            changed = last.changed() => if changed.is_err() { return },
            () = sender.closed() => return,
            () = tokio::time::sleep(LONGEST) => {
                if sender.try_send(beat(service)).is_err() && sender.is_closed() {
                    return;
                }
            }
        }
    }
}

/// Says that this server is there, and whether its store is.
fn beat(service: &Service) -> Bytes {
    let store = match service.node().health().store {
        StoreHealth::Fails { error, .. } => error,
        _ => "answers".to_owned(),
    };
    Format::Events.line("beat", &json!({ "at_ms": clock::wall_ms(), "store": store }))
}

impl News {
    pub(crate) fn new(run: &str) -> Self {
        Self {
            run: run.to_owned(),
            state: Mutex::default(),
            last: watch::Sender::new(0),
            readers: AtomicUsize::new(0),
            looking: AtomicBool::new(false),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_ready(&self) -> bool {
        self.state().known.is_some()
    }

    /// What a reader doesn't have yet; all of it where the events in between are forgotten.
    fn since(&self, watched: &Watched, after: &mut Option<u64>) -> Vec<Bytes> {
        let state = self.state();
        let last = *self.last.borrow();
        let oldest = state.events.front().map_or(last + 1, |event| event.number);
        let known = after.filter(|after| after + 1 >= oldest && *after <= last);
        *after = Some(last);
        let Some(known) = known else {
            let Some(snapshot) = state.known.clone() else { return Vec::new() };
            drop(state);
            let head = || self.head(last, "state");
            return vec![snapshot.whole_event(watched.cluster.name(), head)];
        };
        let events = state.events.iter().filter(|event| event.number > known);
        events.map(|event| event.line.clone()).collect()
    }

    /// What an event begins with.
    fn head(&self, number: u64, name: &str) -> String {
        format!("id: {}-{number}\nevent: {name}\ndata: ", self.run)
    }

    /// Nobody looked for a while: who comes waits for a fresh look, and isn't shown how things were then.
    fn forget_what_is_old(&self) {
        let mut state = self.state();
        if state.taken.is_some_and(|taken| clock::now().since(taken) > REMEMBERED_FOR) {
            *state = State::default();
            // What happened meanwhile has no number. It counts as one, so that nobody is taken to know it.
            self.last.send_modify(|last| *last += 1);
        }
    }

    /// Takes in how things are now.
    fn take(&self, snapshot: Snapshot) {
        let mut state = self.state();
        let mut number = *self.last.borrow();
        if let Some(known) = &state.known {
            for (name, data) in difference::between(known, &snapshot) {
                number += 1;
                let line = Bytes::from(format!("{}{data}\n\n", self.head(number, name)));
                state.events.push_back(Event { number, line });
            }
        }
        let over = state.events.len().saturating_sub(REMEMBERED);
        state.events.drain(..over);
        let first = state.known.is_none();
        (state.known, state.taken) = (Some(Arc::new(snapshot)), Some(clock::now()));
        // Under the lock, because what is known has the number of the last event.
        self.last.send_if_modified(|last| {
            let news = first || *last != number;
            *last = number;
            news
        });
    }
}

/// Looks at the cluster for as long as anybody reads.
async fn look(watched: Arc<Watched>) {
    let (cluster, news) = (&watched.cluster, &watched.news);
    let hints = Arc::new(Notify::new());
    let wake = Arc::clone(&hints);
    // Subscribed before the first look, so that nothing falls in between.
    let _guard = cluster.store().hints(cluster.name(), Arc::new(move || wake.notify_one()));
    loop {
        // What can't be read is tried again; the beats say that the store is away.
        if let Ok(snapshot) = watched.read().await {
            news.take(snapshot);
        }
        tokio::time::sleep(SHORTEST).await;
        tokio::select! {
            () = hints.notified() => {}
            () = tokio::time::sleep(LONGEST) => {}
        }
        if news.readers.load(Ordering::SeqCst) == 0 {
            news.looking.store(false, Ordering::SeqCst);
            // Somebody may have come in between, and seen that somebody looks.
            let came = news.readers.load(Ordering::SeqCst) > 0;
            if !came || news.looking.swap(true, Ordering::SeqCst) {
                return;
            }
        }
    }
}
