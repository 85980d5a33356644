//! What must hold, one invariant a file. The numbers are those of ARCHITECTURE.md.

mod closing;
mod cluster_lead;
mod deploys;
mod events;
mod hand_over;
mod knowledge;
mod liveness;
mod movement;
mod one_leader;
mod patience;
mod placed;
mod remains;
mod rosters;
mod scoped;
mod steady;
mod terms;
mod trust_bound;
mod work_first;

use incumbent_core::{ElectionEvent, LeaseName};

pub(crate) use knowledge::Forgotten;

use crate::process::Process;
use crate::scenario::Scenario;
use crate::statistics::Statistics;
use crate::store::Applied;
use crate::world::Sender;

/// An invariant that didn't hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which one.
    pub invariant: &'static str,
    /// When, in nanoseconds of the simulation.
    pub instant: u64,
    /// How it was violated.
    pub story: String,
}

/// What a checker says: how the invariant doesn't hold, if it doesn't.
pub(crate) type Verdict = Result<(), String>;

/// A write that the store has applied.
#[derive(Clone, Copy)]
pub(crate) struct Landing<'a> {
    pub(crate) now: u64,
    pub(crate) change: &'a Applied,
    /// Whose write it was, unless it was an operator's.
    pub(crate) sender: Option<Sender>,
    pub(crate) processes: &'a [Process],
}

/// A process did something. What it trusts, holds and wants changes only then.
#[derive(Clone, Copy)]
pub(crate) struct Step<'a> {
    pub(crate) now: u64,
    /// Which process.
    pub(crate) node: usize,
    pub(crate) processes: &'a [Process],
    /// The leases that are looked at.
    pub(crate) leases: &'a [LeaseName],
}

/// What a checker looks at.
pub(crate) trait Invariant {
    /// A process did something.
    fn stepped(&mut self, _: Step<'_>) -> Verdict {
        Ok(())
    }

    /// The store changed.
    fn applied(&mut self, _: Landing<'_>) -> Verdict {
        Ok(())
    }

    /// A process was told something by its core; `trusts` is what it says itself of an election.
    fn experienced(&mut self, _: usize, _: &ElectionEvent, _trusts: bool) -> Verdict {
        Ok(())
    }

    /// A process sent a request.
    fn sent(&mut self, _: u64, _: usize) -> Verdict {
        Ok(())
    }

    /// A process starts, and knows nothing.
    fn started(&mut self, _: usize) {}

    /// The store forgot.
    fn forgot(&mut self, _: &Forgotten) {}

    /// All faults have stopped.
    fn calm(&mut self, _: u64) {}

    /// The run is over.
    fn finish(&mut self, _: &Statistics) -> Verdict {
        Ok(())
    }

    /// The longest time without a leader, if this checker knows.
    fn leaderless(&self) -> u64 {
        0
    }
}

/// All checkers of a run with the names by which mutants refer to them, or the one that a mutant is
/// named for.
pub(crate) struct Checks {
    invariants: Vec<(&'static str, Box<dyn Invariant>)>,
}

impl Checks {
    pub(crate) fn new(scenario: &Scenario, only: Option<&'static str>) -> Self {
        let mut invariants: Vec<(_, Box<dyn Invariant>)> = vec![
            ("one-leader", Box::<one_leader::OneLeader>::default()),
            ("terms", Box::<terms::Terms>::default()),
            ("closing", Box::<closing::Closing>::default()),
            ("trust-bound", Box::<trust_bound::TrustBound>::default()),
            ("scoped", Box::<scoped::Scoped>::default()),
            ("work-first", Box::new(work_first::WorkFirst)),
            ("events", Box::<events::Events>::default()),
            ("liveness", Box::new(liveness::Liveness::new(scenario))),
            ("hand-over", Box::new(hand_over::HandOver::new(scenario))),
            ("steady", Box::new(steady::Steady::new(scenario))),
            ("patience", Box::<patience::Patience>::default()),
            ("remains", Box::new(remains::Remains::new(scenario))),
            ("rosters", Box::new(rosters::Rosters::new(scenario))),
            ("placed", Box::new(placed::Placed::new(scenario))),
            ("movement", Box::new(movement::Movement::new(scenario))),
            ("deploys", Box::new(deploys::Deploys::new(scenario))),
            ("cluster-lead", Box::new(cluster_lead::ClusterLeads::new(scenario))),
        ];
        if let Some(only) = only {
            invariants.retain(|(name, _)| *name == only);
        }
        Self { invariants }
    }

    /// Asks every checker, at this instant.
    pub(crate) fn each(
        &mut self,
        instant: u64,
        mut check: impl FnMut(&mut dyn Invariant) -> Verdict,
    ) -> Result<(), Violation> {
        for (name, invariant) in &mut self.invariants {
            let found = check(invariant.as_mut());
            found.map_err(|story| Violation { invariant: name, instant, story })?;
        }
        Ok(())
    }

    /// Tells every checker something that needs no answer.
    pub(crate) fn tell(&mut self, tell: impl Fn(&mut dyn Invariant)) {
        for (_, invariant) in &mut self.invariants {
            tell(invariant.as_mut());
        }
    }

    pub(crate) fn longest_leaderless(&self) -> u64 {
        self.invariants.iter().map(|(_, invariant)| invariant.leaderless()).max().unwrap_or(0)
    }
}
