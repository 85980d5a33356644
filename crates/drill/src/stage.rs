//! Plays a scenario in a world.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use incumbent::DriverMutant;
use incumbent::testing::{Conditions, Process, Thread, World};
use tokio::time::sleep;

use crate::book::Book;
use crate::invariants::{left, liveness};
use crate::program::{self, Program};
use crate::scenario::{Scenario, Strike};

/// How often what should have ended is looked for.
const SWEEP: Duration = Duration::from_millis(100);

/// The longest that a lease may be without work once all is calm: pauses after failures and panics
/// (four of a second and more that double), a placement that blocks, a ttl, and more.
const PATIENCE: Duration = Duration::from_secs(75);

/// A run as it is played.
#[derive(Clone)]
struct Stage {
    world: World,
    book: Book,
    scenario: Arc<Scenario>,
    /// Those of the scenario, each as it is now, and all that there ever were.
    seats: Arc<Mutex<Vec<Seat>>>,
    all: Arc<Mutex<Vec<Process>>>,
}

/// One of the processes that the scenario counts.
#[derive(Clone)]
struct Seat {
    process: Process,
    program: Option<Arc<Program>>,
    /// It leaves, was killed, or starts.
    away: bool,
}

impl Seat {
    fn resign(&self, lease: usize) {
        let term = self.program.as_ref().and_then(|program| program.leads.get(lease)?.term());
        if let Some(term) = term {
            self.process.within(|| term.resign());
        }
    }
}

/// Plays a seed to its end; gives its book.
pub(crate) async fn play(
    world: World,
    seed: u64,
    mutant: Option<DriverMutant>,
    tells: bool,
) -> Book {
    let scenario = Arc::new(Scenario::draw(seed));
    let book = Book::new(&world, scenario.ttl, scenario.ttl / 10, tells);
    if let Some(mutant) = mutant {
        world.plant(mutant);
    }
    world.judge(Arc::new(book.clone()));
    book.note(|| format!("{scenario:?}"));
    let stage = Stage { world, book, scenario, seats: Arc::default(), all: Arc::default() };
    stage.open().await;
    stage.trouble().await;
    stage.calm().await;
    stage.close().await;
    stage.book
}

impl Stage {
    fn seats(&self) -> std::sync::MutexGuard<'_, Vec<Seat>> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn seat(&self, number: usize) -> Option<Seat> {
        self.seats().get(number).cloned()
    }

    fn is_over(&self) -> bool {
        self.book.violation().is_some()
    }

    fn new_process(&self, number: usize) -> Process {
        let process = program::process(&self.world, &self.scenario, number);
        self.all.lock().unwrap_or_else(PoisonError::into_inner).push(process.clone());
        process
    }

    /// Starts all processes.
    async fn open(&self) {
        for number in 0..self.scenario.processes {
            let process = self.new_process(number);
            self.seats().push(Seat { process, program: None, away: true });
            self.start(number).await;
        }
        let stage = self.clone();
        run_beside(async move {
            loop {
                sleep(SWEEP).await;
                let all = stage.all.lock().unwrap_or_else(PoisonError::into_inner).clone();
                stage.book.sweep(SWEEP, &all);
            }
        });
    }

    /// Boots the process of a seat, until it has joined.
    async fn start(&self, number: usize) {
        loop {
            let Some(Seat { process, .. }) = self.seat(number) else { return };
            let booted = program::boot(&self.world, &self.book, &self.scenario, &process).await;
            if let Some(program) = booted {
                if let Some(seat) = self.seats().get_mut(number) {
                    seat.program = Some(Arc::new(program));
                    seat.away = false;
                }
                return;
            }
            // It could not join: a process that ends, and is started again.
            process.kill();
            self.book.killed(process.id());
            let process = self.new_process(number);
            if let Some(seat) = self.seats().get_mut(number) {
                seat.process = process;
            }
        }
    }

    /// All that goes wrong.
    async fn trouble(&self) {
        for (at, strike) in self.scenario.strikes.clone() {
            sleep(at.saturating_sub(self.world.elapsed())).await;
            if self.is_over() {
                return;
            }
            self.strike(strike);
        }
        sleep(self.scenario.calm_at.saturating_sub(self.world.elapsed())).await;
    }

    fn strike(&self, strike: Strike) {
        self.book.note(|| format!("-- {strike:?}"));
        let left = self.scenario.calm_at.saturating_sub(self.world.elapsed());
        let strike = strike.within(left);
        self.book.pages().counts.faults += 1;
        match strike {
            Strike::Pause { process, span } => self.on(process, |seat| seat.process.pause(span)),
            Strike::Stall { process, thread, span } => {
                self.on(process, |seat| seat.process.stall(thread, span));
            }
            Strike::Deaf { process, span } => self.on(process, |seat| {
                seat.process.stall(Thread::Beats, span);
                seat.process.stall(Thread::Runners, span);
            }),
            Strike::Cut { process, span } => self.cut(process, span),
            Strike::CutAll { span } => {
                for process in 0..self.scenario.processes {
                    self.cut(process, span);
                }
            }
            Strike::Weather { process, conditions, span } => self.on(process, |seat| {
                let process = seat.process.clone();
                process.conditions(conditions.clone());
                run_beside(async move {
                    sleep(span).await;
                    process.conditions(Conditions::default());
                });
            }),
            Strike::Kill { process, back_after } => self.kill(process, back_after),
            Strike::Leave { process, back_after } => self.leave(process, back_after),
            Strike::BreakDriver { process } => self.on(process, |seat| {
                self.book.pages().breaking.insert(seat.process.id());
                seat.process.break_driver();
            }),
            Strike::BreakAndLeave { process, span, back_after } => {
                self.strike(Strike::Stall { process, thread: Thread::Work, span });
                self.strike(Strike::BreakDriver { process });
                self.leave(process, back_after);
            }
            Strike::Resign { process, lease } => self.on(process, |seat| seat.resign(lease)),
            Strike::ResignUnheard { process, lease, span } => self.on(process, |seat| {
                seat.process.stall(Thread::Runners, span);
                seat.resign(lease);
            }),
            Strike::Evict { process } => self.evict(process),
            Strike::Lose { process, lease } => self.on(process, |seat| {
                seat.process.lose(&program::lead_name(lease));
            }),
            Strike::WallJump { process, by_ms } => {
                self.on(process, |seat| seat.process.jump_wall_clock(by_ms));
            }
        }
    }

    /// Does something to a process that is there.
    fn on(&self, number: usize, act: impl FnOnce(&Seat)) {
        if let Some(seat) = self.seat(number).filter(|seat| !seat.away) {
            act(&seat);
        }
    }

    fn cut(&self, number: usize, span: Duration) {
        let Some(Seat { process, .. }) = self.seat(number) else { return };
        process.cut_store();
        run_beside(async move {
            sleep(span).await;
            process.mend_store();
        });
    }

    fn kill(&self, number: usize, back_after: Duration) {
        let process = self.new_process(number);
        let Some(seat) = self.seats().get_mut(number).filter(|seat| !seat.away).map(|seat| {
            seat.away = true;
            let former = std::mem::replace(&mut seat.process, process);
            (former, seat.program.take())
        }) else {
            return;
        };
        seat.0.kill();
        self.book.killed(seat.0.id());
        let stage = self.clone();
        run_beside(async move {
            sleep(back_after).await;
            stage.start(number).await;
        });
    }

    fn leave(&self, number: usize, back_after: Duration) {
        let Some(seat) = self.seat(number).filter(|seat| !seat.away) else { return };
        if let Some(seat) = self.seats().get_mut(number) {
            seat.away = true;
            seat.program = None;
        }
        let stage = self.clone();
        run_beside(async move {
            if let Some(program) = seat.program {
                if program.node.leave().await.is_ok() {
                    left::said(&stage.book, &seat.process);
                }
                stage.book.pages().left.insert(seat.process.id());
            }
            sleep(back_after).await;
            let process = stage.new_process(number);
            if let Some(seat) = stage.seats().get_mut(number) {
                seat.process = process;
            }
            stage.start(number).await;
        });
    }

    fn evict(&self, number: usize) {
        self.on(number, |seat| {
            let member = seat.program.as_ref().and_then(|program| program.node.member());
            let cluster = seat.program.as_ref().map(|program| program.node.cluster().clone());
            let (Some(member), Some(cluster)) = (member, cluster) else { return };
            run_beside(async move {
                let _ = cluster.evict(member.as_str()).await;
            });
        });
    }

    /// All is well from now on: everything must be led again, and stay so.
    async fn calm(&self) {
        let began = self.world.elapsed();
        self.book.note(|| "-- calm".to_owned());
        let leases = program::leases(&self.scenario);
        loop {
            if self.is_over() {
                return;
            }
            let idle = liveness::idle(&self.book.pages(), &leases).cloned();
            let away = self.seats().iter().any(|seat| seat.away);
            let Some(lease) = idle else {
                if !away {
                    break;
                }
                sleep(SWEEP).await;
                continue;
            };
            let waited = self.world.elapsed() - began;
            if waited > PATIENCE {
                return liveness::too_late(&self.book, &lease, waited);
            }
            sleep(SWEEP).await;
        }
        sleep(Duration::from_secs(3)).await;
    }

    /// All nodes leave, and nothing of them is left.
    async fn close(&self) {
        let seats = self.seats().clone();
        for seat in &seats {
            if self.is_over() {
                return;
            }
            let Some(program) = &seat.program else { continue };
            let left = tokio::time::timeout(self.scenario.ttl * 4, program.node.leave()).await;
            self.book.pages().left.insert(seat.process.id());
            match left {
                Ok(Ok(())) => left::said(&self.book, &seat.process),
                Ok(Err(error)) => left::failed(&self.book, &seat.process, &error.to_string()),
                Err(_) => left::failed(&self.book, &seat.process, "it never came to an end"),
            }
        }
        self.seats().clear();
        drop(seats);
        sleep(self.scenario.ttl + Duration::from_secs(2)).await;
        let holdings = self.world.holdings();
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for process in all.iter().filter(|process| !process.is_dead()) {
            let holds = |it: &&incumbent::testing::Holding| it.process == process.id() && it.held;
            left::check(&self.book, process, holdings.iter().any(|it| holds(&it)));
        }
    }
}

/// Runs something of the stage's beside the rest.
fn run_beside(future: impl Future<Output = ()> + Send + 'static) {
    drop(tokio::runtime::Handle::current().spawn(future));
}
