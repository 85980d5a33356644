use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use incumbent_core::Moment;
use tokio::task::JoinHandle;

use super::here::{Entered, Here, Strand, Thread};
use super::road::{Conditions, Road};
use super::world::Space;
use crate::error::JoinError;
use crate::open::OpenStore;
use crate::{Builder, Node};

/// What a local clock shows when a world begins, so that no moment in it is the very start.
const BEGINNING: u64 = 1_000_000_000_000;

/// What a wall clock shows then: the beginning of 2026.
const WALL_MS: u64 = 1_767_225_600_000;

/// A process in a world: with clocks, threads and a path to the store of its own.
///
/// Clones are handles to the same process. It is made by [`World::process`](super::World::process).
#[derive(Clone)]
pub struct Process {
    pub(super) space: Arc<Space>,
    pub(super) inside: Arc<Inside>,
}

/// What there is in a process.
pub(crate) struct Inside {
    pub(super) id: usize,
    pub(super) name: String,
    /// How far its clock is ahead, and how much faster it runs, in millionths.
    skew: AtomicI64,
    drift: AtomicI64,
    wall_ms: AtomicI64,
    /// Until when each thread stands still, in nanoseconds of the world.
    still: [AtomicU64; 4],
    dead: AtomicBool,
    pub(super) may_block: AtomicBool,
    /// How many polls in a thousand come later than they could.
    pub(super) hesitates: AtomicU64,
    strands: [AtomicI64; 4],
    /// The driver panics at its next turn.
    breaks: AtomicBool,
    pub(super) road: Road,
}

impl Inside {
    pub(super) fn new(id: usize, name: &str) -> Self {
        Self {
            id,
            name: name.to_owned(),
            skew: AtomicI64::new(0),
            drift: AtomicI64::new(0),
            wall_ms: AtomicI64::new(0),
            still: Default::default(),
            dead: AtomicBool::new(false),
            may_block: AtomicBool::new(false),
            hesitates: AtomicU64::new(0),
            strands: Default::default(),
            breaks: AtomicBool::new(false),
            road: Road::default(),
        }
    }

    /// What this process's clock shows at an instant of the world.
    pub(super) fn moment(&self, instant: u64) -> Moment {
        let drift = i128::from(instant) * i128::from(self.drift.load(Ordering::Relaxed));
        let skew = i128::from(self.skew.load(Ordering::Relaxed));
        let shown = i128::from(BEGINNING) + i128::from(instant) + skew + drift / 1_000_000;
        Moment::from_nanos(u64::try_from(shown).unwrap_or(1))
    }

    pub(super) fn wall_ms(&self, instant: u64) -> u64 {
        (WALL_MS + instant / 1_000_000).saturating_add_signed(self.wall_ms.load(Ordering::Relaxed))
    }

    pub(super) fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Relaxed)
    }

    /// How long a thread still stands still.
    pub(super) fn stands_still(&self, thread: Thread, instant: u64) -> Option<Duration> {
        let until = self.still.get(thread as usize)?.load(Ordering::Relaxed);
        (until > instant).then(|| Duration::from_nanos(until - instant))
    }

    pub(super) fn count(&self, thread: Thread, change: i64) {
        if let Some(strands) = self.strands.get(thread as usize) {
            strands.fetch_add(change, Ordering::Relaxed);
        }
    }

    pub(super) fn take_break(&self) -> bool {
        self.breaks.swap(false, Ordering::Relaxed)
    }
}

impl Process {
    /// Its number, in the order in which processes were made.
    #[must_use]
    pub fn id(&self) -> usize {
        self.inside.id
    }

    /// The name that it was given.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inside.name
    }

    /// The store of the world, by this process's own path to it.
    #[must_use]
    pub fn store(&self) -> OpenStore {
        OpenStore::from(self.space.path(&self.inside))
    }

    /// Joins as a node of this process. Work of that node belongs to the process.
    ///
    /// # Errors
    /// As [`Builder::join`].
    pub async fn join(&self, builder: Builder) -> Result<Node, JoinError> {
        let store = self.store();
        self.run(builder.join(store)).await
    }

    /// Runs a future as the application of this process: by its clock, and only while it runs.
    pub fn run<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        Strand::new(self.place(Thread::Work), future)
    }

    /// Starts a task of this process's application.
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.place(Thread::Work).work(future)
    }

    /// Calls something as the application of this process, at once.
    pub fn within<T>(&self, call: impl FnOnce() -> T) -> T {
        let _entered = Entered::at(self.place(Thread::Work));
        call()
    }

    /// Lets all threads of the process stand still for so long, as if it had been stopped, or its
    /// machine swapped. Its clock goes on.
    pub fn pause(&self, span: Duration) {
        for thread in Thread::ALL {
            self.stall(thread, span);
        }
    }

    /// Lets one thread stand still for so long.
    pub fn stall(&self, thread: Thread, span: Duration) {
        let until = self.space.instant().saturating_add(nanos(span));
        if let Some(still) = self.inside.still.get(thread as usize) {
            still.fetch_max(until, Ordering::Relaxed);
        }
    }

    /// Ends the process at once, as SIGKILL does: it takes no further step. What it sent may still
    /// arrive.
    pub fn kill(&self) {
        self.inside.dead.store(true, Ordering::Relaxed);
    }

    /// Whether it was killed.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        self.inside.is_dead()
    }

    /// Cuts the process off its store, both ways, until [`Self::mend_store`].
    pub fn cut_store(&self) {
        self.inside.road.change(|conditions| conditions.cut = true);
    }

    /// Joins the process to its store again.
    pub fn mend_store(&self) {
        self.inside.road.change(|conditions| conditions.cut = false);
    }

    /// How requests of this process fare from now on.
    pub fn conditions(&self, conditions: Conditions) {
        self.inside.road.change(|known| *known = Conditions { cut: known.cut, ..conditions });
    }

    /// Takes a lease away now, as if its trust had run out at this instant: nothing under its term
    /// takes another step. Says whether a node of this process had it.
    pub fn lose(&self, lease: &str) -> bool {
        self.space.lose(&self.inside, lease)
    }

    /// Sets its clock: ahead by so many nanoseconds, and faster by so many millionths. To be called
    /// before anything runs here, because this clock never goes back.
    pub fn set_clock(&self, ahead: i64, faster: i64) {
        self.inside.skew.store(ahead, Ordering::Relaxed);
        self.inside.drift.store(faster, Ordering::Relaxed);
    }

    /// Moves its wall clock by so many milliseconds. Nothing about leases may hang on it.
    pub fn jump_wall_clock(&self, by_ms: i64) {
        self.inside.wall_ms.fetch_add(by_ms, Ordering::Relaxed);
    }

    /// Lets futures of the application [block](super::block) here. Each then has a thread
    /// that takes turns with all others, which takes more time.
    pub fn allow_blocking(&self) {
        self.inside.may_block.store(true, Ordering::Relaxed);
    }

    /// Lets so many polls in a thousand come some milliseconds late, so that tasks are run in other
    /// orders.
    pub fn hesitate(&self, per_thousand: u64) {
        self.inside.hesitates.store(per_thousand, Ordering::Relaxed);
    }

    /// Lets the driver of a node in this process panic at its next turn, as a bug in it would.
    pub fn break_driver(&self) {
        self.inside.breaks.store(true, Ordering::Relaxed);
    }

    /// Whether the driver has yet to panic.
    #[must_use]
    pub fn is_to_break(&self) -> bool {
        self.inside.breaks.load(Ordering::Relaxed)
    }

    /// Whether a thread stands still now.
    #[must_use]
    pub fn stands_still(&self, thread: Thread) -> bool {
        self.inside.stands_still(thread, self.space.instant()).is_some()
    }

    /// How many tasks there are on a thread.
    #[must_use]
    pub fn tasks(&self, thread: Thread) -> i64 {
        self.inside.strands.get(thread as usize).map_or(0, |it| it.load(Ordering::Relaxed))
    }

    /// What its clock shows now.
    #[must_use]
    pub fn now(&self) -> Moment {
        self.inside.moment(self.space.instant())
    }

    fn place(&self, thread: Thread) -> Here {
        Here { space: Arc::clone(&self.space), process: Arc::clone(&self.inside), thread }
    }
}

impl std::fmt::Debug for Process {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Process").field("name", &self.inside.name).finish_non_exhaustive()
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
