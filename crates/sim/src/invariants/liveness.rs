//! 9. Once faults stop, every lease with a live candidate has a leader within ttl + a second +
//!    four round trips. (11: also if every hint is lost, which a third of the seeds have.)

use incumbent_core::LeaseName;

use super::Invariant;
use crate::process::Process;
use crate::scenario::{MILLI, Scenario};
use crate::statistics::Statistics;

pub(super) struct Liveness {
    bound: u64,
    /// Requests sent before the calm may still be waited for.
    grace: u64,
    calm: Option<u64>,
    /// For each lease: since when it has a candidate but no leader, and the longest such time.
    waiting: Vec<Option<u64>>,
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
            grace: (ttl / 3).min(5000 * MILLI),
            calm: None,
            waiting: vec![None; scenario.leases],
            longest: 0,
            end: scenario.end,
        }
    }

    fn overdue(&self, now: u64) -> Option<(usize, u64)> {
        self.waiting.iter().enumerate().find_map(|(lease, since)| {
            let waited = now.saturating_sub((*since)?);
            (waited > self.bound).then_some((lease, waited))
        })
    }
}

impl Invariant for Liveness {
    fn name(&self) -> &'static str {
        "liveness"
    }

    fn calm(&mut self, now: u64) {
        self.calm = Some(now + self.grace);
    }

    fn stepped(
        &mut self,
        now: u64,
        processes: &[Process],
        leases: &[LeaseName],
    ) -> Result<(), String> {
        let Some(calm) = self.calm else { return Ok(()) };
        if now < calm {
            return Ok(());
        }
        for (at, lease) in leases.iter().enumerate() {
            let stands = |process: &&Process| {
                process.core.is_some()
                    && process.back_after.is_none()
                    && process.plan.candidacies.get(at).is_some_and(|candidacy| {
                        candidacy.as_ref().is_some_and(|candidacy| candidacy.electable)
                    })
            };
            let candidate = processes.iter().any(|process| stands(&process));
            let led = processes.iter().any(|process| process.trusts(lease, now).is_some());
            let Some(waiting) = self.waiting.get_mut(at) else { continue };
            if led || !candidate {
                if let Some(since) = waiting.take() {
                    self.longest = self.longest.max(now - since);
                }
            } else {
                waiting.get_or_insert(now);
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

    fn finish(&mut self, _: &Statistics) -> Result<(), String> {
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
