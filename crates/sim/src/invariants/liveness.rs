//! 9. Once faults stop, every lease with a live candidate has a leader within ttl + a second +
//!    four round trips, and the third of a ttl for which candidates hold back that all prefer to.
//!    (11: also if every hint is lost, which a third of the seeds have.)

use incumbent_core::{Preference, Stance};

use super::{Invariant, Step, Verdict};
use crate::process::Process;
use crate::scenario::{MILLI, Scenario};
use crate::statistics::Statistics;

pub(super) struct Liveness {
    bound: u64,
    /// How much longer it may take if every candidate holds back for better ones.
    hold_back: u64,
    /// Requests sent before the calm may still be waited for.
    grace: u64,
    calm: Option<u64>,
    /// For each lease: since when it has a candidate but no leader, and how long that may last.
    waiting: Vec<Option<(u64, u64)>>,
    /// For each lease: who led it when that was last looked at, and is asked first.
    leaders: Vec<usize>,
    longest: u64,
    end: u64,
}

impl Liveness {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let ttl = scenario.longest_ttl();
        // The slowest clock counts a ttl a little longer.
        let bound = (ttl + 1000 * MILLI) * 106 / 100 + 4 * 2 * (scenario.latency + MILLI);
        Self {
            bound,
            hold_back: ttl / 3 * 106 / 100,
            grace: (ttl / 3).min(5000 * MILLI),
            calm: None,
            waiting: vec![None; scenario.leases],
            leaders: vec![0; scenario.leases],
            longest: 0,
            end: scenario.end,
        }
    }

    fn overdue(&self, now: u64) -> Option<(usize, u64)> {
        self.waiting.iter().enumerate().find_map(|(lease, waiting)| {
            let (since, bound) = (*waiting)?;
            let waited = now.saturating_sub(since);
            (waited > bound).then_some((lease, waited))
        })
    }
}

impl Invariant for Liveness {
    fn calm(&mut self, now: u64) {
        self.calm = Some(now + self.grace);
    }

    fn stepped(&mut self, Step { now, processes, leases, .. }: Step<'_>) -> Verdict {
        let Some(calm) = self.calm else { return Ok(()) };
        if now < calm {
            return Ok(());
        }
        let states = self.waiting.iter_mut().zip(&mut self.leaders);
        for ((at, lease), (waiting, leader)) in leases.iter().enumerate().zip(states) {
            let leads = |process: &Process| process.trusts(lease, now).is_some();
            let led = processes.get(*leader).is_some_and(leads)
                || processes.iter().position(leads).is_some_and(|found| {
                    *leader = found;
                    true
                });
            let candidates = || processes.iter().filter_map(|process| stands(process, at));
            let eager = || candidates().any(|candidacy| candidacy.preference == Preference::None);
            if led || candidates().next().is_none() {
                if let Some((since, _)) = waiting.take() {
                    self.longest = self.longest.max(now - since);
                }
            } else {
                let bound = self.bound + if eager() { 0 } else { self.hold_back };
                let (_, longest) = waiting.get_or_insert((now, bound));
                *longest = bound.max(*longest);
            }
        }
        match self.overdue(now) {
            Some((lease, waited)) => Err(format!(
                "lease {} has a candidate, and no leader for {} ms",
                lease + 1,
                waited / MILLI
            )),
            None => Ok(()),
        }
    }

    fn finish(&mut self, _: &Statistics) -> Verdict {
        match self.overdue(self.end) {
            Some((lease, waited)) => {
                Err(format!("lease {} ended without a leader for {} ms", lease + 1, waited / MILLI))
            }
            None => Ok(()),
        }
    }

    fn leaderless(&self) -> u64 {
        self.longest
    }
}

/// How a process stands for a lease that it could be elected for.
fn stands(process: &Process, lease: usize) -> Option<&Stance> {
    process.core.as_ref().filter(|_| process.back_after.is_none())?;
    process.plan.candidacies.get(lease)?.as_ref().filter(|candidacy| candidacy.electable)
}
