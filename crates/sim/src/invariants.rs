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

use incumbent_core::{Event, LeaseName};

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
    /// How.
    pub story: String,
}

/// What a checker looks at. Each method may say that the invariant doesn't hold.
pub(crate) trait Invariant {
    /// The name by which mutants refer to it.
    fn name(&self) -> &'static str;

    /// A process did something.
    fn stepped(&mut self, _: u64, _: &[Process], _: &[LeaseName]) -> Result<(), String> {
        Ok(())
    }

    /// The store changed.
    fn applied(
        &mut self,
        _: u64,
        _: &Applied,
        _: Option<Sender>,
        _: &[Process],
    ) -> Result<(), String> {
        Ok(())
    }

    /// A process was told something by its core; `trusts` is what it says itself of an election.
    fn experienced(&mut self, _: usize, _: &Event, _trusts: bool) -> Result<(), String> {
        Ok(())
    }

    /// A process sent a request.
    fn sent(&mut self, _: u64, _: usize) -> Result<(), String> {
        Ok(())
    }

    /// A process starts, and knows nothing.
    fn started(&mut self, _: usize) {}

    /// The store forgot.
    fn forgot(&mut self, _: &Forgotten) {}

    /// All faults have stopped.
    fn calm(&mut self, _: u64) {}

    /// The run is over.
    fn finish(&mut self, _: &Statistics) -> Result<(), String> {
        Ok(())
    }

    /// The longest time without a leader, if this checker knows.
    fn leaderless(&self) -> u64 {
        0
    }
}

/// All checkers of a run, or the one that a mutant is named for.
pub(crate) struct Checks {
    invariants: Vec<Box<dyn Invariant>>,
}

impl Checks {
    pub(crate) fn new(scenario: &Scenario, only: Option<&'static str>) -> Self {
        let mut invariants: Vec<Box<dyn Invariant>> = vec![
            Box::<one_leader::OneLeader>::default(),
            Box::<terms::Terms>::default(),
            Box::<closing::Closing>::default(),
            Box::<trust_bound::TrustBound>::default(),
            Box::<scoped::Scoped>::default(),
            Box::new(work_first::WorkFirst),
            Box::<events::Events>::default(),
            Box::new(liveness::Liveness::new(scenario)),
            Box::new(hand_over::HandOver::new(scenario)),
            Box::new(steady::Steady::new(scenario)),
            Box::<patience::Patience>::default(),
            Box::new(remains::Remains::new(scenario)),
            Box::new(rosters::Rosters::new(scenario)),
            Box::new(placed::Placed::new(scenario)),
            Box::new(movement::Movement::new(scenario)),
            Box::new(deploys::Deploys::new(scenario)),
            Box::new(cluster_lead::ClusterLeads::new(scenario)),
        ];
        if let Some(only) = only {
            invariants.retain(|invariant| invariant.name() == only);
        }
        Self { invariants }
    }

    fn each(
        &mut self,
        instant: u64,
        mut check: impl FnMut(&mut dyn Invariant) -> Result<(), String>,
    ) -> Result<(), Violation> {
        for invariant in &mut self.invariants {
            let name = invariant.name();
            check(invariant.as_mut()).map_err(|story| Violation {
                invariant: name,
                instant,
                story,
            })?;
        }
        Ok(())
    }

    pub(crate) fn stepped(
        &mut self,
        instant: u64,
        processes: &[Process],
        leases: &[LeaseName],
    ) -> Result<(), Violation> {
        self.each(instant, |invariant| invariant.stepped(instant, processes, leases))
    }

    pub(crate) fn applied(
        &mut self,
        instant: u64,
        change: &Applied,
        sender: Option<Sender>,
        processes: &[Process],
    ) -> Result<(), Violation> {
        self.each(instant, |invariant| invariant.applied(instant, change, sender, processes))
    }

    pub(crate) fn experienced(
        &mut self,
        instant: u64,
        node: usize,
        event: &Event,
        trusts: bool,
    ) -> Result<(), Violation> {
        self.each(instant, |invariant| invariant.experienced(node, event, trusts))
    }

    pub(crate) fn sent(&mut self, instant: u64, node: usize) -> Result<(), Violation> {
        self.each(instant, |invariant| invariant.sent(instant, node))
    }

    pub(crate) fn started(&mut self, node: usize) {
        for invariant in &mut self.invariants {
            invariant.started(node);
        }
    }

    pub(crate) fn forgot(&mut self, forgotten: &Forgotten) {
        for invariant in &mut self.invariants {
            invariant.forgot(forgotten);
        }
    }

    pub(crate) fn calm(&mut self, instant: u64) {
        for invariant in &mut self.invariants {
            invariant.calm(instant);
        }
    }

    pub(crate) fn finish(
        &mut self,
        instant: u64,
        statistics: &Statistics,
    ) -> Result<(), Violation> {
        self.each(instant, |invariant| invariant.finish(statistics))
    }

    pub(crate) fn longest_leaderless(&self) -> u64 {
        self.invariants.iter().map(|invariant| invariant.leaderless()).max().unwrap_or(0)
    }
}
