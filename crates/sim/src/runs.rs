//! Running many seeds, on all cores, and reporting.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

use crate::boundaries::Boundary;
use crate::invariants::Violation;
use crate::plant::Plant;
use crate::scenario::Scenario;
use crate::statistics::Statistics;
use crate::world::World;

/// A seed that failed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Which seed.
    pub seed: u64,
    /// What was violated.
    pub violation: Violation,
}

/// Runs one seed.
///
/// # Errors
/// If an invariant was violated.
pub fn run(seed: u64, plant: Plant) -> Result<Statistics, Failure> {
    let mut world = World::new(Scenario::draw(seed), plant, false);
    match world.run() {
        Ok(()) => Ok(world.statistics().clone()),
        Err(violation) => Err(Failure { seed, violation }),
    }
}

/// Runs a seed again and tells what happened, the last so many lines.
#[must_use]
pub fn tell(seed: u64, plant: Plant, lines: usize) -> (Option<Violation>, Vec<String>) {
    let mut world = World::new(Scenario::draw(seed), plant, true);
    let violation = world.run().err();
    (violation, world.history().tail(lines).to_vec())
}

/// Plays all scripts, on all cores, and says which were violated and how.
#[must_use]
pub fn play_all(plant: Plant) -> Vec<(&'static Boundary, Violation)> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut violated = Vec::new();
        while let Some(script) = Boundary::ALL.get(next.fetch_add(1, Ordering::Relaxed)) {
            violated.extend(script.play(plant).err().map(|violation| (script, violation)));
        }
        violated
    };
    let mut violated = on_all_cores(work).concat();
    violated.sort_by_key(|(script, _)| script.name);
    violated
}

/// Does this on every core, and gives what came of it.
fn on_all_cores<T: Send>(work: impl Fn() -> T + Sync) -> Vec<T> {
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let running: Vec<_> = (0..workers).map(|_| scope.spawn(&work)).collect();
        // A worker that panicked has said so.
        running.into_iter().filter_map(|worker| worker.join().ok()).collect()
    })
}

/// Runs the seeds from `first` on, so many, and stops early after `most` failures.
/// `progress` is told now and then how many are done.
pub fn run_many(
    first: u64,
    count: u64,
    plant: Plant,
    most: usize,
    progress: &(dyn Fn(u64) + Sync),
) -> (Statistics, Vec<Failure>) {
    let next = AtomicU64::new(0);
    let failed = AtomicU64::new(0);
    let work = || {
        let mut total = Statistics::default();
        let mut failures = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= count || failed.load(Ordering::Relaxed) >= most as u64 {
                return (total, failures);
            }
            match run(first + at, plant) {
                Ok(run) => total.add_run(&run),
                Err(failure) => {
                    failed.fetch_add(1, Ordering::Relaxed);
                    failures.push(failure);
                }
            }
            if at % 1000 == 999 {
                progress(at + 1);
            }
        }
    };
    let mut total = Statistics::default();
    let mut failures = Vec::new();
    for (statistics, mut failed) in on_all_cores(work) {
        total.add(&statistics);
        failures.append(&mut failed);
    }
    failures.sort_by_key(|failure| failure.seed);
    (total, failures)
}
