//! What the simulator prints.

use std::fmt;

use incumbent_sim::exhaustive::Exploration;
use incumbent_sim::runs::{self, Failure};
use incumbent_sim::{Plant, Statistics, Violation};
use serde::Serialize;
use serde_json::json;

/// Whether a run of many seeds counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// No violation, and enough happened.
    Passed,
    /// A violation.
    Failed,
    /// No violation, but too little happened to mean anything.
    Invalid,
}

impl Verdict {
    pub(crate) fn of(total: &Statistics, failures: &[Failure], seeds: u64) -> Self {
        if !failures.is_empty() {
            Self::Failed
        } else if total.eventful_seeds * 100 < seeds * 95 {
            Self::Invalid
        } else {
            Self::Passed
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Invalid => {
                "invalid: fewer than 95 % of the seeds saw a change of leader and 20 faults"
            }
        }
    }
}

pub(crate) fn many_text(total: &Statistics, failures: &[Failure], verdict: Verdict) -> String {
    let mut text = format!(
        "seeds            {}\n\
         eventful         {} (a change of leader and 20 faults or more)\n\
         simulated hours  {:.1}\n\
         leader changes   {}\n\
         unknown writes   {} applied, {} not\n\
         leaderless       {:.1} s at most after the faults had stopped\n\
         faults           {}\n",
        total.seeds + failures.len() as u64,
        total.eventful_seeds,
        total.simulated_ms as f64 / 3_600_000.0,
        total.leader_changes,
        total.unknown_applied,
        total.unknown_lost,
        total.leaderless_ms as f64 / 1000.0,
        total.all_faults(),
    );
    for (kind, count) in &total.faults {
        text.push_str(&format!("  {kind:<22} {count:>10}\n"));
    }
    for failure in failures {
        let run = match failure.seed {
            u64::MAX => "a scripted run".to_owned(),
            seed => format!("seed {seed}"),
        };
        text.push_str(&format!("{run}: {}\n", violation_text(&failure.violation)));
    }
    text.push_str(verdict.word());
    text
}

pub(crate) fn violation_text(violation: &Violation) -> String {
    let millis = violation.instant / 1_000_000;
    let (seconds, rest) = (millis / 1000, millis % 1000);
    format!("{} violated at {seconds}.{rest:03} s: {}", violation.invariant, violation.story)
}

pub(crate) fn many_json(total: &Statistics, failures: &[Failure], verdict: Verdict) -> String {
    let failures: Vec<_> = failures.iter().map(failure_json).collect();
    json!({ "verdict": verdict.word(), "statistics": total, "failures": failures }).to_string()
}

fn failure_json(failure: &Failure) -> serde_json::Value {
    json!({
        "seed": failure.seed,
        "invariant": failure.violation.invariant,
        "at_ms": failure.violation.instant / 1_000_000,
        "story": failure.violation.story,
    })
}

pub(crate) fn one_json(seed: u64, violation: Option<&Violation>, lines: &[String]) -> String {
    let violation = violation.map(violation_text);
    json!({ "seed": seed, "violation": violation, "history": lines }).to_string()
}

/// The one command that shows a run again.
pub(crate) fn reproduce(seed: u64, plant: Plant) -> String {
    let mutant = match plant {
        Plant::Nothing => String::new(),
        other => format!(" --mutant {}", other.name()),
    };
    format!("cargo run --release -p incumbent-sim -- --seed {seed}{mutant}")
}

/// How one planted mistake fared.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct MutantRow {
    name: String,
    story: &'static str,
    checker: &'static str,
    caught: usize,
    scripts: Vec<&'static str>,
    seeds: u64,
    first_seed: Option<u64>,
}

impl MutantRow {
    pub(crate) fn of(plant: Plant, seeds: u64, failures: &[Failure]) -> Self {
        let caught = |failure: &&Failure| failure.violation.invariant == plant.caught_by();
        let failures: Vec<&Failure> = failures.iter().filter(caught).collect();
        Self {
            name: plant.name(),
            story: plant.story(),
            checker: plant.caught_by(),
            caught: failures.len(),
            scripts: runs::play_all(plant)
                .iter()
                .filter(|(_, violation)| violation.invariant == plant.caught_by())
                .map(|(script, _)| script.name)
                .collect(),
            seeds,
            first_seed: failures.first().map(|failure| failure.seed),
        }
    }
}

impl MutantRow {
    pub(crate) fn has_escaped(&self) -> bool {
        self.caught == 0 && self.scripts.is_empty()
    }
}

impl fmt::Display for MutantRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.has_escaped() { "ESCAPED" } else { "caught" };
        write!(
            f,
            "{verdict:<8} {:<28} by {:<12} in {:>4} of {} seeds",
            self.name, self.checker, self.caught, self.seeds
        )?;
        if let Some(seed) = self.first_seed {
            write!(f, ", first in {seed}")?;
        }
        if !self.scripts.is_empty() {
            write!(f, ", and in {}", self.scripts.join(", "))?;
        }
        Ok(())
    }
}

pub(crate) fn mutants_json(rows: &[MutantRow]) -> String {
    json!({ "mutants": rows }).to_string()
}

pub(crate) fn exhaustive_text(exploration: &Exploration) -> String {
    let states = exploration.states;
    match &exploration.violation {
        None => format!("{states} states, and all invariants hold in each"),
        Some((name, choices)) => {
            let faults: Vec<&String> = choices
                .iter()
                .filter(|choice| !choice.starts_with("Well") && *choice != "Next")
                .collect();
            format!("{states} states; {name} is violated after these faults: {faults:?}")
        }
    }
}

pub(crate) fn exhaustive_json(exploration: &Exploration) -> String {
    let (invariant, choices) = exploration.violation.clone().unzip();
    json!({ "states": exploration.states, "violated": invariant, "choices": choices }).to_string()
}
