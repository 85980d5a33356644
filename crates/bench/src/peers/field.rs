//! All who take part in a run, with what they share.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Result;
use incumbent::clock;

use super::build::Program;
use super::contender::Contender;
use super::player::{Player, Task};
use super::servers::Servers;

/// One who takes part.
pub(crate) struct Entrant {
    pub(crate) contender: Contender,
    pub(crate) program: Program,
}

/// All of them.
pub(crate) struct Field {
    pub(crate) entrants: Vec<Entrant>,
    pub(crate) servers: Servers,
    pub(crate) ttl: Duration,
    /// Whoever measures something short, or starts a process, holds it: those of others would be in the way.
    quiet: Mutex<()>,
    named: AtomicUsize,
    /// What couldn't be measured, and why, since this was last asked.
    failures: Mutex<Vec<String>>,
}

impl Field {
    pub(crate) fn new(entrants: Vec<Entrant>, servers: Servers, ttl: Duration) -> Self {
        Self {
            entrants,
            servers,
            ttl,
            quiet: Mutex::new(()),
            named: AtomicUsize::new(0),
            failures: Mutex::default(),
        }
    }

    /// Until this is dropped nobody else begins anything.
    pub(crate) fn quiet(&self) -> MutexGuard<'_, ()> {
        self.quiet.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A name that nothing has had in this run.
    pub(crate) fn name(&self, of: &str) -> String {
        format!("{of}{}", self.named.fetch_add(1, Ordering::SeqCst))
    }

    /// Something about one of them couldn't be measured.
    pub(crate) fn fails(&self, who: &Contender, why: &str) {
        self.fails_all(&format!("{}: {why}", who.label()));
    }

    /// The same about all, or about none of them.
    pub(crate) fn fails_all(&self, why: &str) {
        println!("{why}");
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        // Several lanes may fail for one reason.
        if !failures.iter().any(|failure| failure == why) {
            failures.push(why.to_owned());
        }
    }

    /// What couldn't be measured since this was last asked.
    pub(crate) fn failures(&self) -> Vec<String> {
        std::mem::take(&mut self.failures.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Starts a process while nothing else happens, once it has begun.
    pub(crate) fn begin(&self, entrant: &Entrant, task: &Task<'_>) -> Result<Player> {
        let _quiet = self.quiet();
        Player::begun(&entrant.program, &self.name("process"), task)
    }

    /// Does the same for all entrants at once, each on a thread. One that fails says so and is left out.
    pub(crate) fn each<T: Send>(
        &self,
        wanted: impl Fn(&Contender) -> bool,
        work: impl Fn(&Entrant) -> Result<T> + Sync,
    ) -> Vec<(Contender, T)> {
        std::thread::scope(|scope| {
            let entrants = self.entrants.iter().filter(|it| wanted(&it.contender));
            let work = &work;
            let running: Vec<_> =
                entrants.map(|entrant| (entrant, scope.spawn(move || work(entrant)))).collect();
            let mut done = Vec::new();
            for (entrant, thread) in running {
                match thread.join() {
                    Ok(Ok(result)) => done.push((entrant.contender, result)),
                    Ok(Err(error)) => self.fails(&entrant.contender, &format!("{error:#}")),
                    Err(_) => self.fails(&entrant.contender, "its measurement panicked"),
                }
            }
            done
        })
    }
}

/// A moment after which nothing new is begun.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(u64);

impl Deadline {
    pub(crate) fn after(span: Duration) -> Self {
        Self(clock::now().as_nanos() + span.as_nanos() as u64)
    }

    pub(crate) fn left(self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(clock::now().as_nanos()))
    }

    pub(crate) fn is_over(self) -> bool {
        self.left().is_zero()
    }
}
