use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use incumbent_core::random::Random;
use incumbent_core::store::{Exchange, Lane, Reply};
use incumbent_core::{LeaseName, MemberId, Moment};
use tokio::runtime::{Builder, Handle};
use tokio::time::Instant;

use super::here::{self, Entered, Here, Thread};
use super::process::{Inside, Process};
use super::road::{Path, Shelf};
use crate::driver::mutant::DriverMutant;
use crate::lead::tenure::Tenure;

/// So many polls without any time passing are a loop that never ends.
const MOST_POLLS: u64 = 2_000_000;

/// Processes that share a store, and a time that passes only when nobody has anything to do.
///
/// Clones are handles to the same world.
#[derive(Clone)]
pub struct World {
    space: Arc<Space>,
}

/// What all processes of a world share.
pub(crate) struct Space {
    random: Mutex<Random>,
    runtime: OnceLock<Handle>,
    began: OnceLock<Instant>,
    /// The last instant that was read, for what is dropped when the world has ended.
    last: AtomicU64,
    over: AtomicBool,
    polls: AtomicU64,
    polled_at: AtomicU64,
    pub(super) shelf: Shelf,
    processes: Mutex<Vec<Arc<Inside>>>,
    tenures: Mutex<Vec<(Arc<Inside>, Weak<Tenure>)>>,
    judge: OnceLock<Arc<dyn Judge>>,
    planted: OnceLock<DriverMutant>,
}

/// Sees what happens in a world. All of it is called between two steps of the processes.
pub trait Judge: Send + Sync {
    /// Something was done on a thread of a process.
    fn polled(&self, process: &Process, thread: Thread) {
        let _ = (process, thread);
    }

    /// A process handed this to its store.
    fn sent(&self, process: &Process, lane: Lane, exchange: &Exchange) {
        let _ = (process, lane, exchange);
    }

    /// The store has done what a process asked for.
    fn applied(&self, process: &Process, lane: Lane, exchange: &Exchange, reply: &Reply) {
        let _ = (process, lane, exchange, reply);
    }
}

/// A term that a node of a process was elected for, and what would be answered now.
#[derive(Clone, Debug)]
pub struct Holding {
    /// The process.
    pub process: usize,
    /// The lease.
    pub lease: LeaseName,
    /// The number of the term.
    pub term: u64,
    /// The member that was elected.
    pub member: MemberId,
    /// What [`Term::is_held`](crate::Term::is_held) would say.
    pub held: bool,
    /// Whether work under it may take a step.
    pub trusted: bool,
    /// Until when, on that process's clock.
    pub until: Moment,
    /// When its work was told to end, on that process's clock.
    pub told: Option<Moment>,
}

impl World {
    /// Runs a test in a new world, on this thread, to its end. From the same seed the same happens.
    ///
    /// # Panics
    /// If the test does, or if no runtime can be made.
    #[allow(clippy::expect_used, reason = "a test without a runtime can only fail")]
    pub fn run<T, F: Future<Output = T>>(seed: u64, test: impl FnOnce(Self) -> F) -> T {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime = runtime.expect("a runtime without input and output can be made");
        let space = Arc::new(Space::new(seed));
        let _ = space.runtime.set(runtime.handle().clone());
        let outside = Arc::new(Inside::new(usize::MAX, "test"));
        let place = Here { space: Arc::clone(&space), process: outside, thread: Thread::Work };
        let _entered = Entered::at(place);
        let output = runtime.block_on(async {
            let _ = space.began.set(begin());
            test(Self { space: Arc::clone(&space) }).await
        });
        space.instant();
        space.over.store(true, Ordering::Relaxed);
        drop(runtime);
        output
    }

    /// A new process.
    pub fn process(&self, name: &str) -> Process {
        let mut processes = lock(&self.space.processes);
        let inside = Arc::new(Inside::new(processes.len(), name));
        processes.push(Arc::clone(&inside));
        Process { space: Arc::clone(&self.space), inside }
    }

    /// How much time has passed since the world began.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.space.instant())
    }

    /// Draws a number below this from the world's seed.
    pub fn draw(&self, below: u64) -> u64 {
        self.space.draw(|random| random.below(below))
    }

    /// Waits until something is so. It is looked at every millisecond.
    pub async fn until(&self, mut condition: impl FnMut() -> bool) {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Has somebody see what happens. One for each world.
    pub fn judge(&self, judge: Arc<dyn Judge>) {
        let _ = self.space.judge.set(judge);
    }

    /// Plants a mistake in the drivers and runners of this world.
    #[cfg(feature = "mutants")]
    pub fn plant(&self, mutant: DriverMutant) {
        let _ = self.space.planted.set(mutant);
    }

    /// All terms that were elected and may still be asked about.
    #[must_use]
    pub fn holdings(&self) -> Vec<Holding> {
        self.space.holdings()
    }
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").field("elapsed", &self.elapsed()).finish_non_exhaustive()
    }
}

#[allow(clippy::disallowed_methods, reason = "time in a world is that of its runtime")]
fn begin() -> Instant {
    Instant::now()
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Space {
    fn new(seed: u64) -> Self {
        Self {
            random: Mutex::new(Random::new(seed)),
            runtime: OnceLock::new(),
            began: OnceLock::new(),
            last: AtomicU64::new(0),
            over: AtomicBool::new(false),
            polls: AtomicU64::new(0),
            polled_at: AtomicU64::new(0),
            shelf: Shelf::default(),
            processes: Mutex::default(),
            tenures: Mutex::default(),
            judge: OnceLock::new(),
            planted: OnceLock::new(),
        }
    }

    /// Nanoseconds since the world began.
    pub(super) fn instant(&self) -> u64 {
        let Some(began) = self.began.get().filter(|_| !self.over.load(Ordering::Relaxed)) else {
            return self.last.load(Ordering::Relaxed);
        };
        let passed = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.last.store(passed, Ordering::Relaxed);
        passed
    }

    pub(super) fn draw<T>(&self, draw: impl FnOnce(&mut Random) -> T) -> T {
        draw(&mut lock(&self.random))
    }

    #[allow(clippy::expect_used, reason = "it is set before anything runs")]
    pub(super) fn runtime(&self) -> Handle {
        let known = self.runtime.get().cloned();
        known.or_else(here::runtime).expect("a world runs on a runtime")
    }

    /// A step was taken.
    #[allow(clippy::panic, reason = "only in tests, which can't go on")]
    pub(super) fn polled(self: &Arc<Self>, here: &Here) {
        let now = self.instant();
        if self.polled_at.swap(now, Ordering::Relaxed) != now {
            self.polls.store(0, Ordering::Relaxed);
        } else if self.polls.fetch_add(1, Ordering::Relaxed) > MOST_POLLS {
            panic!("no time passes any more, because {here:?} is woken again and again");
        }
        self.judged(&here.process, |judge, process| judge.polled(process, here.thread));
    }

    pub(super) fn judged(
        self: &Arc<Self>,
        inside: &Arc<Inside>,
        say: impl FnOnce(&dyn Judge, &Process),
    ) {
        if let Some(judge) = self.judge.get()
            && inside.id != usize::MAX
        {
            let process = Process { space: Arc::clone(self), inside: Arc::clone(inside) };
            say(&**judge, &process);
        }
    }

    pub(super) fn path(self: &Arc<Self>, inside: &Arc<Inside>) -> Path {
        Path { space: Arc::clone(self), process: Arc::clone(inside) }
    }

    pub(super) fn planted(&self) -> Option<DriverMutant> {
        self.planted.get().copied()
    }

    pub(super) fn tenure_began(&self, inside: &Arc<Inside>, tenure: &Arc<Tenure>) {
        let mut tenures = lock(&self.tenures);
        tenures.retain(|(_, tenure)| tenure.strong_count() > 0);
        tenures.push((Arc::clone(inside), Arc::downgrade(tenure)));
    }

    pub(super) fn lose(&self, inside: &Arc<Inside>, lease: &str) -> bool {
        let tenures: Vec<Arc<Tenure>> = lock(&self.tenures)
            .iter()
            .filter(|(process, _)| process.id == inside.id)
            .filter_map(|(_, tenure)| tenure.upgrade())
            .filter(|tenure| tenure.lease.as_str() == lease && tenure.lost().is_none())
            .collect();
        let now = inside.moment(self.instant());
        let held = tenures.into_iter().filter(|tenure| tenure.peek(now).0);
        held.map(|tenure| tenure.lose()).count() > 0
    }

    fn holdings(&self) -> Vec<Holding> {
        let instant = self.instant();
        let tenures = lock(&self.tenures);
        let living = tenures.iter().filter(|(process, _)| !process.is_dead());
        living
            .filter_map(|(process, tenure)| {
                let tenure = tenure.upgrade()?;
                let (held, trusted) = tenure.peek(process.moment(instant));
                Some(Holding {
                    process: process.id,
                    lease: tenure.lease.clone(),
                    term: tenure.term,
                    member: tenure.member.clone(),
                    held,
                    trusted,
                    until: tenure.until(),
                    told: tenure.lost_at(),
                })
            })
            .collect()
    }
}
