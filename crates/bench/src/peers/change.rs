//! What happens to a leader, and how soon there is another: it is killed, paused, or told to end.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use incumbent::clock;
use rustix::process::Signal;

use super::field::{Deadline, Entrant, Field};
use super::player::{Player, Task, Word};
use crate::partner::pause;

/// What happens to the leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// SIGKILL.
    Kill,
    /// SIGSTOP, and SIGCONT once another leads.
    Pause,
    /// SIGTERM, on which all programs resign.
    Resign,
}

/// One change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// Milliseconds until another led, if that was within [`LONGEST`].
    pub(crate) next: Option<f64>,
    /// Milliseconds after SIGCONT for which the former leader still believed, while another led.
    pub(crate) overlap: Option<f64>,
}

/// Nobody waits longer for the next leader. River's ttl is 15 s, and it tries each 5 to 6 s.
pub(crate) const LONGEST: Duration = Duration::from_secs(25);

/// So many pairs of each contender compete at once, because most of the time is waiting.
const LANES: usize = 4;

/// For so long others keep still after a change, so that a quick one is measured alone.
const STILL: Duration = Duration::from_millis(120);

/// How long a resumed leader is listened to once it has said yes for the last time.
const DOUBT: Duration = Duration::from_millis(1500);

/// How long it may take until the first leader leads, or the next after one that never gave way.
const PATIENCE: Duration = Duration::from_secs(60);

/// Samples of one contender, in some lanes at once, until there are enough or time is over.
pub(crate) fn samples(
    field: &Field,
    entrant: &Entrant,
    change: Change,
    wanted: usize,
    deadline: Deadline,
) -> Result<Vec<Sample>> {
    let begun = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..LANES.min(wanted) {
            scope.spawn(|| {
                let next = || (begun.fetch_add(1, Ordering::SeqCst) < wanted).then_some(());
                let note = |sample| {
                    done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(sample);
                };
                if let Err(error) = lane(field, entrant, change, deadline, next, note) {
                    field.fails(&entrant.contender, &format!("{error:#}"));
                }
            });
        }
    });
    let done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    if done.len() < wanted && deadline.is_over() {
        let few = format!("time was over after {} of {wanted} samples", done.len());
        field.fails(&entrant.contender, &few);
    }
    Ok(done)
}

/// A pair of processes of which the leader is changed again and again.
fn lane(
    field: &Field,
    entrant: &Entrant,
    change: Change,
    deadline: Deadline,
    more: impl Fn() -> Option<()>,
    note: impl Fn(Sample),
) -> Result<()> {
    let url = field.servers.url(&entrant.contender, "postgres")?;
    let lease = field.name("lease");
    let ask = Duration::from_millis(if change == Change::Pause { 5 } else { 0 });
    let task = Task { url: &url, lease: &lease, ttl: field.ttl, count: 1, ask };
    let mut leader = first(field, entrant, &task)?;
    let mut round = 0;
    while !deadline.is_over() && more().is_some() {
        let waiter = field.begin(entrant, &task)?;
        // Spread over the time from one renewal to the next, as deaths are.
        round += 1;
        pause(Duration::from_secs(2) + phase(round, field.ttl / 3));
        if waiter.told().iter().any(|line| line.word == Word::Led) {
            // Leadership changed by itself; that is no sample.
            leader = waiter;
            continue;
        }
        let _ = leader.told();
        note(once(field, change, &leader, &waiter)?);
        leader = waiter;
    }
    Ok(())
}

/// The first leader. Nobody else is started before it leads: some make their table then, and two at once fail.
fn first(field: &Field, entrant: &Entrant, task: &Task<'_>) -> Result<Player> {
    let _quiet = field.quiet();
    let leader = Player::begun(&entrant.program, &field.name("process"), task)?;
    leader.hear(Word::Led, PATIENCE).context("it doesn't lead although nobody else does")?;
    Ok(leader)
}

/// One change. The former leader is gone afterwards, or about to be, and the other leads.
fn once(field: &Field, change: Change, leader: &Player, waiter: &Player) -> Result<Sample> {
    let signal = match change {
        Change::Kill => Signal::KILL,
        Change::Pause => Signal::STOP,
        Change::Resign => Signal::TERM,
    };
    let quiet = field.quiet();
    let at = leader.signal(signal)?;
    let mut led = waiter.hear(Word::Led, STILL);
    drop(quiet);
    if led.is_none() {
        led = waiter.hear(Word::Led, LONGEST);
    }
    let next = led.map(|led| led.saturating_sub(at) as f64 / 1e6);
    let mut overlap = None;
    if change == Change::Pause {
        pause(Duration::from_millis(200));
        let resumed = leader.signal(Signal::CONT)?;
        overlap = led.map(|_| belief(leader, resumed));
    }
    if led.is_none() {
        // Only its end makes way for the other.
        let _ = leader.signal(Signal::KILL);
        waiter.hear(Word::Led, PATIENCE).context("nobody leads after the leader's end")?;
    }
    Ok(Sample { next, overlap })
}

/// Milliseconds from when it was resumed to when it last said yes.
fn belief(leader: &Player, resumed: u64) -> f64 {
    let mut last = resumed;
    let end = clock::now().as_nanos() + LONGEST.as_nanos() as u64;
    while clock::now().as_nanos() < end {
        match leader.line(DOUBT) {
            // A question that was begun before the pause says nothing about what comes after it.
            Some(line) if line.word == Word::Believes => last = last.max(line.at),
            // Who tells of a loss by a timer tells it too soon after a pause.
            Some(_) => {}
            None => break,
        }
    }
    (last - resumed) as f64 / 1e6
}

/// Another part of the span in each round, evenly spread however many there are.
fn phase(round: u32, span: Duration) -> Duration {
    span.mul_f64((f64::from(round) * 0.618_033_988_749_895).fract())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_are_spread_over_the_span() {
        let span = Duration::from_secs(1);
        let mut phases: Vec<f64> = (1..=10).map(|round| phase(round, span).as_secs_f64()).collect();
        phases.sort_by(f64::total_cmp);
        assert!(phases.iter().zip(phases.iter().skip(1)).all(|(one, next)| next - one < 0.2));
        assert!(phases.iter().all(|phase| (0.0..1.0).contains(phase)));
    }
}
