//! One candidacy of one client for one lease, from the first wait to the last moment of told trust.
//!
//! ```text
//!                   elected          resigned, shutdown           grace over
//!  Waiting ───────────────▶ Held ────────────────────▶ Stopping ───────────────▶ Closing ──▶ Over
//!     │                      │  lost, unheard, connection gone       │              │ told trust is
//!     │                      └───────────────────────────────────────┴─────────▶ ───┤ over; or ended,
//!     └── withdrawn: nothing was told ──────────────────────────────────────────────┘ or proven dead
//! ```
//!
//! The member's leadership is kept until the end of Closing, so that the library neither frees the lease
//! nor lets the member leave before. What ends it at once is a `DELETE`, the proof that the client is
//! dead, or its promise that it had ended before its connection was closed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use incumbent::{Loss, MemberState, Moment, Term, clock};
use tokio::sync::{mpsc, oneshot, watch};

use crate::ledger::Ledger;
use crate::lines::Taken;

/// No longer between two looks at the clock: timers stand still while a machine sleeps.
pub(crate) const LONGEST: Duration = Duration::from_secs(1);

/// A hold, as everybody knows it.
#[derive(Debug)]
pub(crate) struct Hold {
    pub(crate) id: [u8; 16],
    pub(crate) name: String,
    pub(crate) lease: String,
    pub(crate) candidate: String,
    pub(crate) address: Option<String>,
    pub(crate) ttl: Duration,
    pub(crate) grace: Duration,
    /// How long the work may report no progress.
    pub(crate) watchdog: Option<Duration>,
    /// When it last did; 0 before it has started.
    progress: AtomicU64,
    pub(crate) ledger: Ledger,
    /// The hold of the client that serves the family, if this is a run of one of its duties.
    above: Option<Arc<Hold>>,
    family: bool,
    /// When the client was last heard of, and when a line was last handed to its connection.
    heard: AtomicU64,
    taken: AtomicU64,
    term: OnceLock<(Term, u64)>,
    stage: watch::Sender<Stage>,
    orders: mpsc::UnboundedSender<Order>,
}

/// Where in its life a hold is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Waiting,
    /// A family is served under it; nothing is held by it itself.
    Serving,
    Held,
    Stopping,
    /// Nothing is told any more.
    Over(Why),
}

/// Why a hold ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    Resigned,
    Shutdown,
    Unheard,
    /// The work reported no progress for as long as it promised to.
    Stuck,
    Deleted,
    Closed,
    Ended,
    Lost(Loss),
}

/// What a hold is told.
#[derive(Debug)]
pub(crate) enum Order {
    /// All work has ended; answered when the lease is free.
    Delete(oneshot::Sender<()>),
    /// The stream is gone.
    Closed,
    /// It will never be told to anybody, so that nothing can run by it.
    Unclaimed,
    /// This server shuts down.
    Shutdown,
    /// What the client says of a duty.
    Report(Report),
}

/// What a client says of a duty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// Preparing for the duty of this name has ended.
    Prepared { duty: String, result: Result<(), String> },
    /// The run does its work.
    Started,
    /// The run has ended.
    Stopped,
    /// It has ended by an error.
    Failed(String),
    /// What the run is at, for people.
    Progress(String),
}

impl Why {
    /// The word for it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Resigned => "resigned",
            Self::Shutdown => "shutdown",
            Self::Unheard => "unheard",
            Self::Stuck => "stuck",
            Self::Deleted => "deleted",
            Self::Closed => "closed",
            Self::Ended => "ended",
            Self::Lost(loss) => match loss {
                Loss::WorkEnded | Loss::Leaving => "left",
                Loss::Resigned | Loss::Withdrawn => "resigned",
                Loss::Closed(MemberState::Evicted) => "evicted",
                Loss::Closed(_) => "expired",
                Loss::Vanished => "vanished",
                Loss::Superseded => "superseded",
                Loss::Stuck => "stuck",
                Loss::Broken => "broken",
                // What this program doesn't know yet it can't tell either.
                _ => "cannot-tell",
            },
        }
    }
}

impl Hold {
    /// One that waits, and the orders that it gets.
    pub(crate) fn new(start: Start) -> (Arc<Self>, mpsc::UnboundedReceiver<Order>) {
        let (sender, orders) = mpsc::unbounded_channel();
        let Start { id, lease, candidate, address, ttl, grace, watchdog, family, above } = start;
        let now = clock::now().as_nanos();
        let hold = Arc::new(Self {
            name: hex(&id),
            id,
            lease,
            candidate,
            address,
            ttl,
            grace,
            watchdog,
            progress: AtomicU64::new(0),
            ledger: Ledger::default(),
            above,
            family,
            heard: AtomicU64::new(now),
            taken: AtomicU64::new(now),
            term: OnceLock::new(),
            stage: watch::Sender::new(Stage::Waiting),
            orders: sender,
        });
        (hold, orders)
    }

    /// How often a client elsewhere has to be heard of.
    pub(crate) fn renew(&self) -> Duration {
        self.ttl / 3
    }

    /// Whether it is for a lease that the client itself stands for.
    pub(crate) fn is_of_lease(&self) -> bool {
        !self.family && self.above.is_none()
    }

    /// Whether it is a run of a duty.
    pub(crate) fn is_run(&self) -> bool {
        self.above.is_some()
    }

    pub(crate) fn stage(&self) -> Stage {
        *self.stage.borrow()
    }

    pub(crate) fn stages(&self) -> watch::Receiver<Stage> {
        self.stage.subscribe()
    }

    pub(crate) fn order(&self, order: Order) {
        // Who isn't there any more has nothing left to do.
        let _ = self.orders.send(order);
    }

    /// The client is alive.
    pub(crate) fn hear(&self) {
        self.heard_at(clock::now());
        if let Some(above) = &self.above {
            above.hear();
        }
    }

    /// The client has read all lines, the last of which was handed to its connection then: it may
    /// have stopped right after that.
    pub(crate) fn hear_reading(&self) {
        self.heard_at(Moment::from_nanos(self.taken.load(Ordering::Acquire)));
    }

    /// The work has started, or comes on.
    pub(crate) fn progressed(&self) {
        self.progress.fetch_max(clock::now().as_nanos(), Ordering::AcqRel);
    }

    /// When the work will have been silent for too long, unless it reports something. Nothing if it
    /// promised nothing, or hasn't started.
    fn stuck_at(&self) -> Option<Moment> {
        let last = self.progress.load(Ordering::Acquire);
        self.watchdog.filter(|_| last != 0).map(|patience| Moment::from_nanos(last) + patience)
    }

    /// How long its end may be waited for before this is asked again, or why it has to end now: its grace is over, or
    /// its work is stuck.
    pub(crate) fn patience(&self, stopping: Option<(Why, Moment)>) -> Result<Duration, Why> {
        let now = clock::now();
        let (why, end) = match (stopping, self.stuck_at()) {
            (Some(stopping), _) => stopping,
            (None, Some(end)) => (Why::Stuck, end),
            (None, None) => return Ok(LONGEST),
        };
        if now >= end { Err(why) } else { Ok(end.since(now).min(LONGEST)) }
    }

    /// It has a term, and is held.
    pub(crate) fn begin(&self, term: &Term) {
        let _ = self.term.set((term.clone(), clock::wall_ms()));
        self.enter(Stage::Held);
    }

    pub(crate) fn enter(&self, stage: Stage) {
        self.stage.send_replace(stage);
    }

    fn heard_at(&self, at: Moment) {
        self.heard.fetch_max(at.as_nanos(), Ordering::AcqRel);
    }

    pub(crate) fn unheard_for(&self) -> Duration {
        clock::now().since(Moment::from_nanos(self.heard.load(Ordering::Acquire)))
    }

    /// The term that it was elected for, and since when by the wall clock.
    pub(crate) fn term(&self) -> Option<&(Term, u64)> {
        self.term.get()
    }

    /// Until when the client may trust, which it counts as told from now on.
    pub(crate) fn tell(&self) -> Option<Moment> {
        let (term, _) = self.term.get()?;
        let until = term.trusted_until();
        self.ledger.tell(until).then_some(until)
    }

    /// Whether it is held at this moment, for who asks who leads.
    pub(crate) fn is_held(&self) -> bool {
        self.stage() == Stage::Held && self.term.get().is_some_and(|(term, _)| term.is_held())
    }
}

/// Tells a hold what becomes of its stream.
pub(crate) struct Stream(Arc<Hold>);

impl Stream {
    pub(crate) fn of(hold: &Arc<Hold>) -> Self {
        Self(Arc::clone(hold))
    }
}

impl Taken for Stream {
    fn taken(&self) {
        self.0.taken.store(clock::now().as_nanos(), Ordering::Release);
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.0.order(Order::Closed);
    }
}

/// Ends a hold of which nobody was told, unless it is claimed.
pub(crate) struct Unclaimed(Option<Arc<Hold>>);

impl Unclaimed {
    pub(crate) fn of(hold: &Arc<Hold>) -> Self {
        Self(Some(Arc::clone(hold)))
    }

    /// From here on somebody may know of it.
    pub(crate) fn claim(mut self) {
        self.0 = None;
    }
}

impl Drop for Unclaimed {
    fn drop(&mut self) {
        if let Some(hold) = &self.0 {
            hold.order(Order::Unclaimed);
        }
    }
}

/// What a hold is made of.
pub(crate) struct Start {
    pub(crate) id: [u8; 16],
    pub(crate) lease: String,
    pub(crate) candidate: String,
    pub(crate) address: Option<String>,
    pub(crate) ttl: Duration,
    pub(crate) grace: Duration,
    pub(crate) watchdog: Option<Duration>,
    /// It is that of a client that serves a family, and no lease's.
    pub(crate) family: bool,
    pub(crate) above: Option<Arc<Hold>>,
}

/// A fresh id.
#[allow(clippy::disallowed_methods, reason = "an id that nobody can guess is no decision")]
pub(crate) fn draw() -> Option<[u8; 16]> {
    let mut id = [0; 16];
    getrandom::fill(&mut id).ok().map(|()| id)
}

/// As people write it.
pub(crate) fn hex(id: &[u8; 16]) -> String {
    format!("{:032x}", u128::from_be_bytes(*id))
}
