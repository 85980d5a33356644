//! 16. Where hints get through, a lease that was freed is taken within a few round trips by one who
//!     waits for it; where the store pushes none, within about a second; and where all are lost, once its
//!     holder has beaten.

use std::collections::BTreeMap;

use incumbent_core::records::LeaseRecord;
use incumbent_core::{ElectionEvent, LeaseName, MemberId, Preference};
use incumbent_duties::{DutyId, DutyNode};

use super::{Invariant, Landing, Step, Verdict};
use crate::process::Process;
use crate::scenario::{MILLI, Scenario};

pub(super) struct HandOver {
    /// How long it may take.
    bound: u64,
    ttl: u64,
    /// From here on nothing is in doubt any more.
    calm: u64,
    /// Until when each process stands back from a lease, or from all.
    stands_back: BTreeMap<(usize, Option<LeaseName>), u64>,
    /// The highest term that each process has seen of each lease.
    seen: BTreeMap<(usize, LeaseName), u64>,
    /// When each lease last changed hands.
    taken: BTreeMap<LeaseName, u64>,
    /// Which leases are free, since when, and who waits for them.
    free: BTreeMap<LeaseName, (u64, Vec<(usize, MemberId)>)>,
    now: u64,
}

impl HandOver {
    pub(super) fn new(scenario: &Scenario) -> Self {
        // A hint, a look that was on its way, the look that shows it and a take; whoever lost a
        // race before waits for 200 ms at most.
        let soon = 250 * MILLI + 6 * 2 * (scenario.latency + MILLI);
        // A beat that says so, and who looks for it.
        let later = soon + (1_100 * MILLI + 4 * 2 * (scenario.latency + MILLI));
        let bound = match (scenario.push, scenario.hints_lost) {
            (true, 0) => soon,
            (true, _) => later + scenario.longest_ttl() * 4 / 10,
            (false, _) => later,
        };
        Self {
            bound,
            ttl: scenario.longest_ttl(),
            calm: u64::MAX,
            stands_back: BTreeMap::new(),
            seen: BTreeMap::new(),
            taken: BTreeMap::new(),
            free: BTreeMap::new(),
            now: 0,
        }
    }

    /// The process knows that terms of the lease were lost, and somebody who didn't has taken it of
    /// late.
    fn distrusts(&self, node: usize, lease: &LeaseName, term: u64) -> bool {
        let seen = self.seen.get(&(node, lease.clone())).copied().unwrap_or(0);
        let taken = self.taken.get(lease).copied().unwrap_or(0);
        seen > term && self.now < taken + self.ttl * 11 / 10
    }

    /// The process waits for the lease and has no reason to hold back.
    fn waits(&self, node: usize, process: &Process, lease: &LeaseName) -> bool {
        let wants = |core: &DutyNode| match DutyId::of(lease) {
            Some(duty) => core.wanted_duties().any(|wanted| *wanted == duty),
            None => is_eager(process, lease),
        };
        process.core.as_ref().is_some_and(wants)
            && process.back_after.is_none()
            && !process.work.contains_key(lease)
            && [None, Some(lease.clone())]
                .into_iter()
                .all(|of| self.stands_back.get(&(node, of)).is_none_or(|until| self.now >= *until))
    }
}

impl Invariant for HandOver {
    fn calm(&mut self, now: u64) {
        self.calm = now + self.ttl;
    }

    fn started(&mut self, node: usize) {
        self.seen.retain(|(other, _), _| *other != node);
    }

    fn experienced(&mut self, node: usize, event: &ElectionEvent, _: bool) -> Verdict {
        if let ElectionEvent::Observed { lease, record: Some(record) } = event {
            let seen = self.seen.entry((node, lease.clone())).or_insert(0);
            *seen = record.term.max(*seen);
        }
        // Who gave up stands back for half a ttl at most, and who joins is busy joining.
        let of = match event {
            ElectionEvent::Freed { lease, .. } => Some(lease.clone()),
            ElectionEvent::Ended { .. } | ElectionEvent::Joined { .. } => None,
            ElectionEvent::Elected { .. }
            | ElectionEvent::Lost { .. }
            | ElectionEvent::Abort { .. }
            | ElectionEvent::Observed { .. }
            | ElectionEvent::Confirmed { .. }
            | ElectionEvent::Viewed(_)
            | ElectionEvent::Left
            | ElectionEvent::Unreadable(_) => return Ok(()),
        };
        self.stands_back.insert((node, of), self.now + self.ttl);
        Ok(())
    }

    fn applied(&mut self, Landing { now, change, sender, processes }: Landing<'_>) -> Verdict {
        self.now = now;
        if !change.key.as_str().starts_with("lease/") {
            return Ok(());
        }
        let (before, after) = (change.before::<LeaseRecord>(), change.after::<LeaseRecord>());
        let (Some(before), Some(after)) = (before, after) else { return Ok(()) };
        let Ok(lease) = LeaseName::new(&after.name) else { return Ok(()) };
        if after.holder.is_some() && after.holder != before.holder {
            self.taken.insert(lease.clone(), now);
        }
        if now < self.calm {
            return Ok(());
        }
        if before.holder.is_none() || after.holder.is_some() || after.successor.is_some() {
            return Ok(());
        }
        let freed_by = sender.map(|sender| sender.node);
        let waiting = processes
            .iter()
            .enumerate()
            .filter(|(node, process)| Some(*node) != freed_by && self.waits(*node, process, &lease))
            // Who reads that terms were lost doesn't know for how long somebody trusts in those.
            .filter(|(node, _)| !after.is_lost() && !self.distrusts(*node, &lease, after.term))
            .filter_map(|(node, process)| Some((node, process.member()?.clone())))
            .collect();
        self.free.insert(lease, (now, waiting));
        Ok(())
    }

    fn stepped(&mut self, Step { now, processes, .. }: Step<'_>) -> Verdict {
        self.now = now;
        let bound = self.bound;
        self.free.retain(|lease, _| {
            !processes.iter().any(|process| process.trusts(lease, now).is_some())
        });
        for (lease, (since, waiting)) in &mut self.free {
            waiting.retain(|(node, member)| {
                processes.get(*node).is_some_and(|process| {
                    process.member() == Some(member) && !process.work.contains_key(lease)
                })
            });
            let waited = now.saturating_sub(*since);
            if let (Some((node, _)), true) = (waiting.first(), waited > bound) {
                return Err(format!(
                    "{lease} has been free for {} ms, and node {} waits for it",
                    waited / MILLI,
                    node + 1
                ));
            }
        }
        Ok(())
    }
}

/// The process stands for a lease of the application's, and holds back for nobody.
fn is_eager(process: &Process, lease: &LeaseName) -> bool {
    let number = lease.as_str().strip_prefix("lease-").and_then(|at| at.parse::<usize>().ok());
    let candidacy = number.and_then(|number| process.plan.candidacies.get(number - 1)?.as_ref());
    candidacy.is_some_and(|stands| stands.electable && stands.preference == Preference::None)
}
