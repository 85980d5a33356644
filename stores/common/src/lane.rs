//! A lane: one of a store's queues, and the connection that is kept for it.
//!
//! Connecting is never part of a request. A connection that is lost is replaced by a task in the
//! background, which takes its own time for it: at a distance a new connection needs several
//! round trips, and a request that had to make it would be given up each time before it is done
//! (O14). A request that finds no connection waits for one, and fails as unavailable if none
//! comes: surely nothing was sent.
//!
//! A request that was given up in the middle may still run on the server. Its connection is in
//! doubt until it is answered; nothing new is sent over it, and another is made meanwhile.
//! Whichever is ready first serves the next request.

mod session;
mod shelf;
#[cfg(test)]
mod tests;

use std::future::pending;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use incumbent_core::store::{Reply, StoreError};
use tokio::runtime::{Handle, Id};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

pub use session::{Connect, Session};
pub use shelf::Lent;

use crate::failure::{Failure, Sent};
use crate::locked::locked;
use crate::pause::pause;
use shelf::{Held, Shelf};

/// The longest pause between attempts to connect while nothing can be sent.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The same while only the connection in reserve is missing.
const LONGEST_RESERVE_PAUSE: Duration = Duration::from_secs(30);

/// A connection that wasn't used for so long, or up to twice as long, is asked for a sign of
/// life: the server, or something in between, may have closed it.
const IDLE: Duration = Duration::from_secs(15);

/// How a lane treats its requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneOptions {
    /// How long a request waits for a connection.
    pub patience: Duration,
    /// How long an answer may take. Callers usually give up earlier.
    pub timeout: Duration,
    /// Whether a second connection is kept ready, so that losing one costs nothing.
    pub reserve: bool,
}

impl LaneOptions {
    /// How long a beat waits for a connection. One that is sent when most of its time has passed
    /// is given up unanswered; told early that there is no connection, its member sends another,
    /// with all of its time before it.
    const BEAT: Duration = Duration::from_secs(1);

    /// For beats: what trust hangs on.
    #[must_use]
    pub fn beat(timeout: Duration) -> Self {
        Self { patience: timeout.min(Self::BEAT), timeout, reserve: false }
    }

    /// For all else.
    #[must_use]
    pub fn other(timeout: Duration) -> Self {
        Self { patience: timeout, timeout, reserve: false }
    }
}

/// Sends jobs over a connection that is kept for them from the first job on. Connections close
/// when it is dropped.
///
/// All of it runs on the runtime that it was given, or else on the tokio runtime on which the first
/// job is awaited, until that has ended; then on that of the next job.
pub struct Lane<C: Connect> {
    inner: Arc<Inner<C>>,
}

struct Inner<C: Connect> {
    connect: Arc<C>,
    options: LaneOptions,
    turns: Arc<Semaphore>,
    shelf: Mutex<Shelf<C::Session>>,
    /// Tells those who wait that something on the shelf is new.
    changed: watch::Sender<()>,
    /// Tells an attempt that pauses that it is needed now.
    urgent: Arc<Notify>,
    /// Tells an attempt that is under way that it may be in vain, and that nobody would say so.
    overdue: Arc<Notify>,
    home: Mutex<Home<C::Session>>,
}

/// Where the lane runs. Its tasks end with it.
struct Home<S> {
    /// The runtime that it was given.
    given: Option<Handle>,
    /// Made beforehand, on this runtime.
    first: Option<(S, Option<Id>)>,
    /// The runtime, and a task that lasts as long.
    place: Option<(Handle, AbortHandle)>,
    tasks: JoinSet<()>,
}

impl<C: Connect> Lane<C> {
    /// A lane that begins with a connection that was made already, if there is one, and it was
    /// made on the runtime on which the lane is going to run.
    pub fn new(connect: &Arc<C>, options: LaneOptions, first: Option<C::Session>) -> Self {
        let here = Handle::try_current().ok().map(|here| here.id());
        let first = first.map(|session| (session, here));
        Self {
            inner: Arc::new(Inner {
                connect: Arc::clone(connect),
                options,
                turns: Arc::new(Semaphore::new(C::Session::AT_ONCE)),
                shelf: Mutex::new(Shelf::new(if options.reserve { 2 } else { 1 })),
                changed: watch::Sender::new(()),
                urgent: Arc::new(Notify::new()),
                overdue: Arc::new(Notify::new()),
                home: Mutex::new(Home { given: None, first, place: None, tasks: JoinSet::new() }),
            }),
        }
    }

    /// Lets the lane run on this runtime, whoever uses it.
    #[must_use]
    pub fn on(self, runtime: &Handle) -> Self {
        locked(&self.inner.home).given = Some(runtime.clone());
        self
    }

    /// Whether a job would be sent at once.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        locked(&self.inner.shelf).first().is_some_and(|held| !held.session.has_ended())
    }

    /// Has a connection made if there is none, as a job would.
    pub fn want(&self) {
        if self.inner.settle_in().is_ok() {
            locked(&self.inner.shelf).ask();
            self.inner.tend();
        }
    }

    /// A connection of this lane for what lasts longer than a job and needs no turn.
    ///
    /// # Errors
    ///
    /// If there is none, and none could be made.
    pub async fn lend(&self) -> Result<Lent<C::Session>, StoreError> {
        self.inner.settle_in()?;
        self.inner.session().await.map(Lent)
    }

    /// Does a job. If the caller goes away, what was sent still runs to its end, and what was not
    /// yet sent never is (F18).
    ///
    /// # Errors
    ///
    /// Unavailable if no connection could be had; otherwise what the session said.
    pub async fn exchange(
        &self,
        job: <C::Session as Session>::Job,
        sent: Sent,
    ) -> Result<Reply, StoreError> {
        let inner = &self.inner;
        inner.settle_in()?;
        let (answer, reply) = oneshot::channel();
        let request = Request { inner: Arc::downgrade(inner), job, sent };
        inner.spawn(request.run(answer));
        reply.await.unwrap_or_else(|_| {
            let server = inner.connect.server();
            let message = format!("{server}: the runtime on which its connections were has ended");
            Err(StoreError { kind: sent.unanswered(), message })
        })
    }
}

impl<C: Connect> Inner<C> {
    /// Sees that there is a runtime for the tasks of this lane.
    fn settle_in(self: &Arc<Self>) -> Result<(), StoreError> {
        let mut home = locked(&self.home);
        if home.place.as_ref().is_some_and(|(_, lasting)| !lasting.is_finished()) {
            return Ok(());
        }
        let here = home.given.clone().map_or_else(Handle::try_current, Ok).map_err(|_| {
            let server = self.connect.server();
            StoreError::rejected(format!("{server}: a tokio runtime is needed to connect on"))
        })?;
        let lasting = home.tasks.spawn_on(pending(), &here);
        // Whose sockets another runtime watched isn't relied on: it may be gone, or busy with the
        // application's work (F17, F31).
        let first = home.first.take().filter(|(_, runtime)| *runtime == Some(here.id()));
        home.place = Some((here, lasting));
        locked(&self.shelf).clear();
        drop(home);
        if let Some((session, _)) = first {
            self.put(session);
        }
        self.tend();
        Ok(())
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut home = locked(&self.home);
        while home.tasks.try_join_next().is_some() {}
        if let Some((handle, _)) = home.place.clone() {
            home.tasks.spawn_on(task, &handle);
        }
    }

    /// Waits for a connection, and for its turn on it.
    async fn enter(
        self: &Arc<Self>,
    ) -> Result<(Option<OwnedSemaphorePermit>, Arc<Held<C::Session>>), StoreError> {
        loop {
            let held = self.session().await?;
            // The semaphore is never closed.
            let turn = Arc::clone(&self.turns).acquire_owned().await.ok();
            if held.session.has_ended() {
                self.lose(&held);
            }
            if locked(&self.shelf).is_sound(&held) {
                return Ok((turn, held));
            }
        }
    }

    async fn session(self: &Arc<Self>) -> Result<Arc<Held<C::Session>>, StoreError> {
        let mut changed = self.changed.subscribe();
        let mut before = None;
        loop {
            {
                let mut shelf = locked(&self.shelf);
                changed.mark_unchanged();
                let held = if C::Session::WATCHED { shelf.first() } else { shelf.next() };
                if let Some(held) = held {
                    return Ok(held);
                }
                // An attempt that failed while this one waited.
                let (failed, error) = shelf.failed();
                if let (Some(before), Some(error)) = (before, error)
                    && failed > before
                {
                    return Err(error.clone());
                }
                before = before.or(Some(failed));
                shelf.ask();
            }
            self.tend();
            // The sender is as old as this lane.
            let _ = changed.changed().await;
        }
    }

    /// Begins an attempt to connect if one is needed.
    fn tend(self: &Arc<Self>) {
        let Some((failures, empty)) = locked(&self.shelf).begin() else { return };
        let longest = if empty { LONGEST_PAUSE } else { LONGEST_RESERVE_PAUSE };
        let (lane, connect) = (Arc::downgrade(self), Arc::clone(&self.connect));
        let (urgent, overdue) = (Arc::clone(&self.urgent), Arc::clone(&self.overdue));
        self.spawn(async move {
            tokio::select! {
                biased;
                () = urgent.notified() => {}
                () = sleep(pause(failures, longest)) => {}
            }
            let connected = attempt(&*connect, &overdue).await;
            let Some(lane) = lane.upgrade() else { return };
            match connected {
                Ok(session) => lane.put(session),
                Err(error) => locked(&lane.shelf).unconnected(error),
            }
            lane.news();
        });
    }

    /// Takes in a new connection.
    fn put(self: &Arc<Self>, session: C::Session) {
        let held = Held::new(session);
        if locked(&self.shelf).connected(Arc::clone(&held)) {
            self.spawn(look_after(Arc::downgrade(self), held));
        }
    }

    fn lose(self: &Arc<Self>, held: &Arc<Held<C::Session>>) {
        let last = locked(&self.shelf).lose(held);
        self.gone(last);
    }

    fn doubt(self: &Arc<Self>, held: &Arc<Held<C::Session>>) {
        let last = locked(&self.shelf).doubt(held);
        self.gone(last);
    }

    /// A connection is of no use any more, and perhaps it was the last.
    fn gone(self: &Arc<Self>, last: bool) {
        if last {
            // What made it useless may have met an attempt that is under way too.
            self.overdue.notify_waiters();
            self.urgent.notify_one();
        }
        self.news();
    }

    fn news(self: &Arc<Self>) {
        self.tend();
        self.changed.send_replace(());
    }

    fn waited_in_vain(&self) -> StoreError {
        let (server, waited) = (self.connect.server(), self.options.patience.as_millis());
        let shelf = locked(&self.shelf);
        StoreError::unavailable(match (shelf.first(), shelf.failed()) {
            (Some(_), _) => format!("{server}: others kept the connection busy for {waited} ms"),
            (None, (_, Some(error))) => {
                format!("{server}: no connection within {waited} ms; before that: {error}")
            }
            (None, (_, None)) => format!("{server}: no connection within {waited} ms"),
        })
    }
}

/// Connects. An attempt whose packets are lost ends by its own time-out alone, which is longer than
/// trust may last: once it is overdue another is made beside it, and the first that succeeds counts.
async fn attempt<C: Connect>(connect: &C, overdue: &Notify) -> Result<C::Session, StoreError> {
    let mut first = pin!(connect.connect());
    tokio::select! {
        biased;
        connected = &mut first => return connected,
        () = overdue.notified() => {}
    }
    let mut second = pin!(connect.connect());
    tokio::select! {
        biased;
        connected = &mut first => if connected.is_ok() { connected } else { second.await },
        connected = &mut second => if connected.is_ok() { connected } else { first.await },
    }
}

/// Finds out when a connection has ended, by itself or in silence.
async fn look_after<C: Connect>(lane: Weak<Inner<C>>, held: Arc<Held<C::Session>>) {
    let ended = async {
        held.session.rehearse().await;
        loop {
            tokio::select! {
                () = held.session.ended() => return,
                () = sleep(IDLE) => {}
            }
            if held.used.swap(false, Ordering::Relaxed) {
                continue;
            }
            let Some(span) = lane.upgrade().map(|lane| lane.options.timeout) else { return };
            if !matches!(timeout(span, held.session.answers()).await, Ok(true)) {
                return;
            }
        }
    };
    tokio::select! {
        biased;
        () = held.retired.cancelled() => {}
        () = ended => if let Some(lane) = lane.upgrade() {
            lane.lose(&held);
        },
    }
}

/// A job that somebody waits for.
struct Request<C: Connect> {
    inner: Weak<Inner<C>>,
    job: <C::Session as Session>::Job,
    sent: Sent,
}

impl<C: Connect> Request<C> {
    async fn run(self, mut answer: oneshot::Sender<Result<Reply, StoreError>>) {
        // The caller holds the lane for as long as it waits.
        let Some(lane) = self.inner.upgrade() else { return };
        let entered = tokio::select! {
            biased;
            () = answer.closed() => return,
            entered = timeout(lane.options.patience, lane.enter()) => entered,
        };
        let span = lane.options.timeout;
        let in_vain = |_| {
            lane.overdue.notify_waiters();
            Err(lane.waited_in_vain())
        };
        match entered.unwrap_or_else(in_vain) {
            Ok((turn, held)) => {
                drop(lane);
                self.perform(&held, turn, span, answer).await;
            }
            Err(error) => {
                let _ = answer.send(Err(error));
            }
        }
    }

    async fn perform(
        &self,
        held: &Arc<Held<C::Session>>,
        turn: Option<OwnedSemaphorePermit>,
        span: Duration,
        mut answer: oneshot::Sender<Result<Reply, StoreError>>,
    ) {
        let Self { inner, job, sent } = self;
        held.used.store(true, Ordering::Relaxed);
        let mut work = pin!(timeout(span, held.session.perform(job)));
        let done = tokio::select! {
            biased;
            done = &mut work => done,
            () = answer.closed() => {
                self.given_up(held, turn, work).await;
                return;
            }
        };
        let answered = done.unwrap_or_else(|_| {
            let server = inner.upgrade().map(|lane| lane.connect.server()).unwrap_or_default();
            let message = format!("{server}: no answer within {} ms", span.as_millis());
            Err(Failure::fatal(StoreError { kind: sent.unanswered(), message }))
        });
        // The connection goes first, so that whoever hears of this doesn't get it again.
        if let (Err(Failure { keep: false, .. }), Some(lane)) = (&answered, inner.upgrade()) {
            lane.lose(held);
        }
        let _ = answer.send(answered.map_err(|failure| failure.error));
    }

    /// The caller went away: sees whether an answer comes, as long as that is of use.
    async fn given_up<E>(
        &self,
        held: &Arc<Held<C::Session>>,
        turn: Option<OwnedSemaphorePermit>,
        work: impl Future<Output = Result<Result<Reply, Failure>, E>>,
    ) {
        if let Some(lane) = self.inner.upgrade() {
            lane.doubt(held);
        }
        // Not before the connection is known to be in doubt: it is somebody else's turn now.
        drop(turn);
        let clean = tokio::select! {
            biased;
            () = held.retired.cancelled() => false,
            done = work => matches!(done, Ok(Ok(_) | Err(Failure { keep: true, .. }))),
        };
        let Some(lane) = self.inner.upgrade() else { return };
        if clean {
            locked(&lane.shelf).clean(held);
            lane.news();
        } else {
            lane.lose(held);
        }
    }
}
