//! The store is away for a while: connections break, and no other is let in.

use std::time::Duration;

use anyhow::{Context as _, Result};
use incumbent::clock;
use incumbent_proving::{Mood, Proxy};

use super::field::{Entrant, Field};
use super::player::{Line, Player, Task, Word};
use crate::partner::pause;

/// One time that it was away.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Absence {
    /// The leader led on all the time.
    pub(crate) survived: bool,
    /// Milliseconds for which the leader said yes while the store was away.
    pub(crate) believed: f64,
    /// Milliseconds from the store's return to a yes of whoever leads then, if there was one.
    pub(crate) again: Option<f64>,
}

/// How long after its return a leader is waited for.
const PATIENCE: Duration = Duration::from_secs(25);

pub(crate) fn absence(field: &Field, entrant: &Entrant, span: Duration) -> Result<Absence> {
    let path = Proxy::blocking_before(&field.servers.url(&entrant.contender, "postgres")?);
    let lease = field.name("lease");
    let ask = Duration::from_millis(10);
    let task = Task { url: path.url(), lease: &lease, ttl: field.ttl, count: 1, ask };
    let leader = field.begin(entrant, &task)?;
    leader.hear(Word::Led, Duration::from_secs(60)).context("it doesn't lead")?;
    let waiter = field.begin(entrant, &task)?;
    pause(Duration::from_secs(4));
    let _ = (leader.told(), waiter.told());
    path.set(Mood::Closed);
    let began = clock::now().as_nanos();
    pause(span);
    path.set(Mood::Fine);
    let returned = clock::now().as_nanos();
    let again = yes(&leader, &waiter, returned);
    // Whoever lost it notices by then.
    pause(Duration::from_secs(2));
    let lines = again.0.iter().copied().chain(leader.told());
    let told: Vec<Line> = lines.collect();
    let lost = told.iter().any(|line| line.word == Word::Lost);
    let last = told.iter().filter(|line| line.word == Word::Believes && line.at < returned);
    let last = last.map(|line| line.at).max().unwrap_or(began);
    let waiter_led = waiter.told().iter().any(|line| line.word == Word::Led) || again.2;
    Ok(Absence {
        survived: !lost && !waiter_led,
        believed: last.saturating_sub(began) as f64 / 1e6,
        again: again.1.map(|at| at.saturating_sub(returned) as f64 / 1e6),
    })
}

/// What the leader told, when somebody first said yes after this moment, and whether that was the other.
fn yes(leader: &Player, waiter: &Player, after: u64) -> (Vec<Line>, Option<u64>, bool) {
    let mut told = Vec::new();
    let end = after + PATIENCE.as_nanos() as u64;
    while clock::now().as_nanos() < end {
        let is_yes =
            |line: &Line| matches!(line.word, Word::Led | Word::Believes) && line.at > after;
        let lines = leader.told();
        let own = lines.iter().copied().find(is_yes);
        told.extend(lines);
        let other = waiter.told().into_iter().find(is_yes);
        if let Some(other) = other {
            return (told, Some(other.at), true);
        }
        if let Some(own) = own {
            return (told, Some(own.at), false);
        }
        pause(Duration::from_millis(2));
    }
    (told, None, false)
}
