//! A short race of real candidates: whoever holds the lease is killed, told to end or asked to
//! resign, and the next one starts. Never do two run at once.

use std::time::Duration;

use incumbent::{Cluster, clock};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::finding::Finding;
use super::part::Start;
use super::racers::{Racers, Word};
use crate::exit::{Failure, Outcome};
use crate::place::Place;
use crate::span;

/// What they contend for.
pub(super) const LEASE: &str = "race";
/// How many candidates there are at any time.
const CANDIDATES: usize = 3;
/// What is done to the one that runs, again and again.
const DEEDS: [Deed; 3] = [Deed::Kill, Deed::Resign, Deed::End];
/// After so long no more is done, once there was one of each kind.
const ENOUGH: Duration = Duration::from_secs(3);
/// Beyond the ttl, the next one starts within this time.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is done to the candidate that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    /// SIGKILL.
    Kill,
    /// Asked by way of the store.
    Resign,
    /// SIGTERM.
    End,
}

impl Deed {
    fn as_str(self) -> &'static str {
        match self {
            Self::Kill => "killed",
            Self::Resign => "resigned",
            Self::End => "ended",
        }
    }
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Race {
    /// What was done, and how long it took until the next one ran.
    pub(crate) hand_overs: Vec<(Deed, Duration)>,
    /// What must not be.
    pub(crate) faults: Vec<String>,
}

impl Race {
    /// Plays it in a cluster that is there for nothing else. Whoever calls this removes that.
    pub(crate) async fn run(place: &Place, cluster: &Cluster, ttl: Duration) -> Self {
        let mut race = Self::default();
        let place = Place { cluster: cluster.name().to_owned(), ..place.clone() };
        let mut racers = match Racers::new(place, ttl) {
            Ok(racers) => racers,
            Err(failure) => {
                race.faults.push(failure.message);
                return race;
            }
        };
        if let Err(failure) = race.play(&mut racers, cluster, ttl).await {
            race.faults.push(failure.message);
        }
        racers.end().await;
        race
    }

    async fn play(&mut self, racers: &mut Racers, cluster: &Cluster, ttl: Duration) -> Outcome {
        for _ in 0..CANDIDATES {
            racers.add()?;
        }
        let mut running = self.next(racers, 0, ttl).await?;
        let began = clock::now();
        for (number, deed) in DEEDS.into_iter().cycle().enumerate() {
            if number >= DEEDS.len() && clock::now().since(began) > ENOUGH {
                break;
            }
            let since = clock::now();
            match deed {
                Deed::Kill => racers.signal(&running.node, Signal::KILL)?,
                Deed::End => racers.signal(&running.node, Signal::TERM)?,
                Deed::Resign => {
                    cluster.request_resign(LEASE).await?;
                }
            }
            let next = self.next(racers, running.term, ttl).await?;
            let took = next.at.saturating_sub(since.as_nanos());
            self.hand_overs.push((deed, Duration::from_nanos(took)));
            racers.replace(&running.node).await?;
            running = next;
        }
        Ok(())
    }

    /// Waits for the next one that runs.
    async fn next(&mut self, racers: &mut Racers, term: u64, ttl: Duration) -> Outcome<Start> {
        let mut complaints = Vec::new();
        let patience = ttl + PATIENCE;
        let heard = async {
            loop {
                match racers.next().await {
                    Word::Start(start) => return start,
                    Word::Complaint(line) => complaints.push(line),
                }
            }
        };
        let Ok(start) = tokio::time::timeout(patience, heard).await else {
            let said = complaints.last().map(|line| format!(": {line}")).unwrap_or_default();
            let patience = span::setting(patience);
            return Err(Failure::wrong(format!("nobody took over for {patience}{said}")));
        };
        if !start.alone {
            let node = &start.node;
            self.faults.push(format!("two at once: {node} started while another still ran"));
        }
        if start.term <= term {
            self.faults.push(format!("term {} came after term {term}", start.term));
        }
        Ok(start)
    }

    /// In words.
    pub(crate) fn finding(&self, ttl: Duration) -> Finding {
        if !self.faults.is_empty() {
            return Finding::fail(
                "race",
                format!(
                    "{}. Please report this with the output of `incumbent doctor --json -v`",
                    self.faults.join("; ")
                ),
            );
        }
        let finding = Finding::ok(
            "race",
            format!(
                "{CANDIDATES} processes, {} hand-overs, never two at once",
                self.hand_overs.len()
            ),
        )
        .note(self.told());
        // Who expires does so no earlier than two thirds of a ttl after the last beat.
        let slow = self.times(Deed::Kill).any(|took| took > ttl / 2);
        if slow {
            return finding.note(format!(
                "The death of a process wasn't noticed before its ttl of {} was nearly over: \
                 nothing proves it here.",
                span::setting(ttl)
            ));
        }
        finding
    }

    fn times(&self, which: Deed) -> impl Iterator<Item = Duration> {
        self.hand_overs.iter().filter(move |(deed, _)| *deed == which).map(|(_, took)| *took)
    }

    /// How soon the next one ran, for each deed: the slowest.
    fn told(&self) -> String {
        let told = |deed: Deed| {
            let slowest = self.times(deed).max()?;
            Some(format!("{} after {}", span::text(slowest), deed.past()))
        };
        let told: Vec<String> = DEEDS.into_iter().filter_map(told).collect();
        format!("The next one ran at most {}.", told.join(", "))
    }

    /// As JSON.
    pub(crate) fn json(&self) -> Value {
        let hand_overs = self.hand_overs.iter().map(
            |(deed, took)| json!({ "how": deed.as_str(), "took_ms": took.as_secs_f64() * 1e3 }),
        );
        json!({
            "candidates": CANDIDATES,
            "hand_overs": hand_overs.collect::<Vec<_>>(),
            "faults": self.faults,
        })
    }
}

impl Deed {
    fn past(self) -> &'static str {
        match self {
            Self::Kill => "SIGKILL",
            Self::Resign => "a request to resign",
            Self::End => "SIGTERM",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Mark;
    use super::*;

    #[test]
    fn two_at_once_is_a_failure_and_a_slow_take_over_is_told() {
        let ttl = Duration::from_secs(15);
        let mut race = Race::default();
        race.hand_overs.push((Deed::Kill, Duration::from_millis(20)));
        let fine = race.finding(ttl);
        assert_eq!((fine.mark, fine.notes.len()), (Mark::Ok, 1), "{fine:?}");
        race.hand_overs.push((Deed::Kill, Duration::from_secs(11)));
        assert!(race.finding(ttl).notes[1].contains("nothing proves it"));
        race.faults.push("two at once".to_owned());
        assert_eq!(race.finding(ttl).mark, Mark::Fail);
    }
}
