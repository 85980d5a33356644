//! A lane: one connection that is opened when needed and replaced when it fails.

use std::hash::{BuildHasher, RandomState};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use incumbent_core::store::{Lane, Reply, StoreError};
use tokio::sync::{oneshot, watch};

use crate::exchange::Job;
use crate::locked::locked;
use crate::opener::{Opener, Role};
use crate::session::{Health, Session};

/// How long an exchange that its caller gave up may still take before its connection counts as
/// hung and a new one is opened.
const GRACE: Duration = Duration::from_millis(250);

/// The longest pause between attempts to connect.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

type Opened = Result<Arc<Session>, StoreError>;

/// Sends exchanges over one connection. Clones share it.
#[derive(Clone)]
pub(crate) struct LaneSender {
    inner: Arc<Inner>,
}

struct Inner {
    lane: Lane,
    opener: Opener,
    slot: Mutex<Slot>,
}

enum Slot {
    /// Nothing is open; so many attempts in a row failed.
    Closed {
        failures: u32,
    },
    /// Somebody waits for a connection. It is opened on a task of its own, so that it comes to
    /// be even if they give up.
    Opening(watch::Receiver<Option<Opened>>),
    Open(Arc<Session>),
}

impl LaneSender {
    pub(crate) fn new(lane: Lane, opener: &Opener, first: Option<Session>) -> Self {
        let slot = match first {
            Some(session) => Slot::Open(Arc::new(session)),
            None => Slot::Closed { failures: 0 },
        };
        Self { inner: Arc::new(Inner { lane, opener: opener.clone(), slot: Mutex::new(slot) }) }
    }

    /// Sends a job and waits for its answer. If the caller goes away, what was sent still runs
    /// to its end, and what was not yet sent never is (F18).
    pub(crate) async fn exchange(&self, job: Job) -> Result<Reply, StoreError> {
        job.check()?;
        let kind = job.abandoned();
        let (answer, reply) = oneshot::channel();
        let inner = Arc::clone(&self.inner);
        self.inner.opener.handle.spawn(async move { inner.perform(job, answer).await });
        reply.await.unwrap_or_else(|_| {
            let message = "the runtime on which the NATS store was opened has ended";
            Err(StoreError { kind, message: message.to_owned() })
        })
    }
}

impl Inner {
    async fn perform(
        self: Arc<Self>,
        job: Job,
        mut answer: oneshot::Sender<Result<Reply, StoreError>>,
    ) {
        let opened = tokio::select! {
            biased;
            () = answer.closed() => return,
            opened = self.session() => opened,
        };
        let session = match opened {
            Ok(session) => session,
            Err(error) => {
                let _ = answer.send(Err(error));
                return;
            }
        };
        let mut work = pin!(session.exchange(&job));
        let done = tokio::select! {
            biased;
            done = &mut work => done,
            () = answer.closed() => {
                session.doubt();
                match tokio::time::timeout(GRACE, work).await {
                    Ok(_) => session.trust(),
                    Err(_) => session.end("a request that was given up was never answered"),
                }
                return;
            }
        };
        let _ = answer.send(done);
    }

    /// The open connection, or one that is opened now.
    async fn session(self: &Arc<Self>) -> Opened {
        loop {
            let doubtful = match self.current() {
                Current::Session(session) => match session.health() {
                    Health::Sound => return Ok(session),
                    Health::Doubtful(_) => session,
                    Health::Lost(_) => continue,
                },
                Current::Opening(mut opening) => {
                    let opened = opening.wait_for(Option::is_some).await;
                    return match opened.ok().and_then(|opened| opened.clone()) {
                        Some(opened) => opened,
                        None => Err(StoreError::unavailable("connecting was interrupted")),
                    };
                }
            };
            // Somebody gave up on this connection a moment ago: see whether it answers.
            doubtful.settled().await;
        }
    }

    fn current(self: &Arc<Self>) -> Current {
        let mut slot = locked(&self.slot);
        let failures = match &*slot {
            Slot::Open(session) if !matches!(session.health(), Health::Lost(_)) => {
                return Current::Session(Arc::clone(session));
            }
            Slot::Opening(opening) => return Current::Opening(opening.clone()),
            Slot::Open(_) => 0,
            Slot::Closed { failures } => *failures,
        };
        let (sender, opening) = watch::channel(None);
        *slot = Slot::Opening(opening.clone());
        let inner = Arc::downgrade(self);
        let opener = self.opener.clone();
        let role = Role::Lane(self.lane);
        self.opener.handle.spawn(async move {
            tokio::time::sleep(pause(failures, LONGEST_PAUSE)).await;
            let opened = opener.open(role).await.map(|(session, _)| Arc::new(session));
            let Some(inner) = inner.upgrade() else { return };
            *locked(&inner.slot) = match &opened {
                Ok(session) => Slot::Open(Arc::clone(session)),
                Err(_) => Slot::Closed { failures: failures.saturating_add(1) },
            };
            sender.send_replace(Some(opened));
        });
        Current::Opening(opening)
    }
}

enum Current {
    Session(Arc<Session>),
    Opening(watch::Receiver<Option<Opened>>),
}

/// How long to wait before the next attempt: nothing at first, then ever longer, and never as
/// long as others do.
pub(crate) fn pause(failures: u32, longest: Duration) -> Duration {
    let Some(doublings) = failures.checked_sub(1) else { return Duration::ZERO };
    let span = Duration::from_millis(50).saturating_mul(1 << doublings.min(10)).min(longest);
    // Jitter decides nothing, so any source of chance will do.
    let chance = RandomState::new().hash_one(failures) % 1024;
    span.mul_f64(0.5 + chance as f64 / 2048.0)
}
