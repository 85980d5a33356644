//! The application: work that takes steps, and now and then behaves badly.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use incumbent::placement::{Grid, Place};
use incumbent::testing::{Process, World, block};
use incumbent::{Duty, Guarded, LeaseName, MemberId, Term, WorkResult};
use tokio::time::sleep;

use crate::book::{Book, Running};
use crate::invariants::foreign;
use crate::scenario::Scenario;

/// From one step of work to the next.
const STEP: Duration = Duration::from_millis(100);

/// So often may the work of one run fail: each failure doubles a pause.
const MOST_FAILURES: u64 = 3;

/// What the application of a process is made of.
#[derive(Clone)]
pub(crate) struct Crew {
    pub(crate) world: World,
    pub(crate) book: Book,
    pub(crate) process: Process,
    pub(crate) scenario: Arc<Scenario>,
    pub(crate) failures: Arc<AtomicU64>,
    /// Terms that the program still asks about.
    pub(crate) kept: Arc<Mutex<VecDeque<Term>>>,
}

/// What work is handed, as leader or for a duty.
pub(crate) trait Handle: Clone + Send + 'static {
    fn lease(&self) -> LeaseName;
    fn term(&self) -> u64;
    fn member(&self) -> MemberId;
    fn told(&self) -> impl Future<Output = ()> + Send;
    fn under<F: Future>(&self, future: F) -> Guarded<F>;

    /// What a program may keep, and ask later on.
    fn remembered(&self) -> Option<Term> {
        None
    }
}

impl Handle for Term {
    fn lease(&self) -> LeaseName {
        Term::lease(self).clone()
    }

    fn term(&self) -> u64 {
        Term::number(self)
    }

    fn member(&self) -> MemberId {
        Term::member(self).clone()
    }

    async fn told(&self) {
        self.token().cancelled().await;
    }

    fn remembered(&self) -> Option<Term> {
        Some(self.clone())
    }

    fn under<F: Future>(&self, future: F) -> Guarded<F> {
        self.guard(future)
    }
}

impl Handle for Duty {
    fn lease(&self) -> LeaseName {
        self.id().lease()
    }

    fn term(&self) -> u64 {
        Term::number(self)
    }

    fn member(&self) -> MemberId {
        Term::member(self).clone()
    }

    async fn told(&self) {
        self.lost().await;
    }

    fn under<F: Future>(&self, future: F) -> Guarded<F> {
        self.guard(future)
    }
}

/// Something that work needs, and whose drop is the application's code.
pub(crate) struct Belongings(pub(crate) Book);

impl Drop for Belongings {
    fn drop(&mut self) {
        foreign::check(&mut self.0.pages(), "a drop");
    }
}

/// In the book for as long as the work is there.
struct Entry {
    crew: Crew,
    id: u64,
}

impl Drop for Entry {
    fn drop(&mut self) {
        if self.crew.scenario.blocking && self.crew.is_moody(300) {
            self.crew.block(self.id, 1_500);
        }
        self.crew.book.ended(self.id);
    }
}

impl Crew {
    pub(crate) fn is_calm(&self) -> bool {
        self.world.elapsed() >= self.scenario.calm_at
    }

    /// Whether something with these odds, in thousandths, happens now; never once all is calm.
    fn is_moody(&self, odds: u64) -> bool {
        !self.is_calm() && self.world.draw(1000) < odds
    }

    /// Blocks the thread, which the book knows.
    fn block(&self, id: u64, most_ms: u64) {
        self.book.blocks(id, true);
        block(Duration::from_millis(self.world.draw(most_ms)));
        self.book.blocks(id, false);
    }

    /// Keeps a term, as programs do, long after its work has ended.
    fn keep(&self, term: Option<Term>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(term);
        if kept.len() > 6 {
            kept.pop_front();
        }
    }

    fn enter<H: Handle>(&self, handle: &H) -> Entry {
        let running = Running {
            process: self.process.id(),
            lease: handle.lease(),
            term: handle.term(),
            member: handle.member(),
            overdue: Duration::ZERO,
            grace: self.scenario.grace,
            blocks: false,
            stepped: self.world.elapsed(),
        };
        Entry { crew: self.clone(), id: self.book.began(&self.process, running) }
    }

    /// The work under one term.
    pub(crate) async fn work<H: Handle>(self, handle: H) -> WorkResult {
        let entry = self.enter(&handle);
        self.keep(handle.remembered());
        if self.is_moody(600) {
            self.beside(&handle);
        }
        let odds = self.scenario.moody;
        loop {
            self.book.step(entry.id, &self.process);
            if self.is_moody(odds) && self.scenario.blocking {
                self.block(entry.id, 3_000);
                // What follows in the same poll is no step of its own.
                sleep(STEP).await;
                continue;
            } else if self.is_moody(odds) && self.fails() {
                return match self.world.draw(2) {
                    // Without the noise of a panic that nobody planned.
                    0 => std::panic::resume_unwind(Box::new("the work panics, as planned")),
                    _ => Err("the work fails, as planned".into()),
                };
            }
            tokio::select! {
                biased;
                () = handle.told() => break,
                () = sleep(STEP) => {}
            }
        }
        self.wind_up(&entry).await;
        Ok(())
    }

    /// Whether one more failure is allowed.
    fn fails(&self) -> bool {
        let fails = self.failures.fetch_add(1, Ordering::Relaxed) < MOST_FAILURES;
        if fails {
            self.book.pages().counts.failures += 1;
        }
        fails
    }

    /// Told to end, it ends at once, takes some time, or doesn't.
    async fn wind_up(&self, entry: &Entry) {
        let steps = match self.world.draw(4) {
            _ if self.is_calm() => 0,
            0 => u64::MAX,
            1 => self.world.draw(self.scenario.grace.as_millis() as u64 / 50),
            _ => 0,
        };
        for _ in 0..steps {
            self.book.step(entry.id, &self.process);
            sleep(STEP).await;
        }
    }

    /// A task beside the work, under the same term.
    fn beside<H: Handle>(&self, handle: &H) {
        let (crew, own, sleeps) = (self.clone(), handle.clone(), self.world.draw(2) == 0);
        let task = handle.under(async move {
            let entry = crew.enter(&own);
            loop {
                crew.book.step(entry.id, &crew.process);
                // Some sleep until somebody ends them.
                match sleeps {
                    true => std::future::pending().await,
                    false => sleep(STEP).await,
                }
            }
        });
        drop(self.process.spawn(async move {
            let _: Option<()> = task.await;
        }));
    }
}

/// A placement that takes its time, panics, or doesn't return for long.
#[derive(Clone)]
pub(crate) struct Slow(pub(crate) Crew);

impl Place for Slow {
    fn place(&self, grid: &mut Grid<'_, '_>) {
        let crew = &self.0;
        foreign::check(&mut crew.book.pages(), "a placement");
        if crew.is_moody(crew.scenario.moody * 10) {
            block(Duration::from_millis(crew.world.draw(20_000)));
            if crew.is_moody(300) {
                std::panic::resume_unwind(Box::new("the placement panics, as planned"));
            }
        }
        grid.distribute_evenly("work");
    }
}

impl std::fmt::Debug for Slow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Slow")
    }
}
