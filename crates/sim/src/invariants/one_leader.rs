//! 1. At no instant do two members trust that they hold the same lease; where the store forgot, among
//!    those that could know.

use incumbent_core::{ElectionEvent, LeaseName, Moment};
use incumbent_duties::DutyNode;

use super::knowledge::{Forgotten, Knowledge};
use super::{Invariant, Landing, Step, Verdict};

/// Trust begins only when a core does something, and otherwise only ends. So it is enough to
/// compare a process with all others each time that it did something.
#[derive(Default)]
pub(super) struct OneLeader {
    knowledge: Knowledge,
    /// What each process trusted when it last did something, and until when. As long as that is so,
    /// it was compared with all others, and every other that came later with it.
    compared: Vec<(Moment, Vec<(LeaseName, u64)>)>,
}

impl OneLeader {
    /// Whether a process trusts nothing that it didn't trust all the time since it last did
    /// something; notes what it trusts now.
    fn is_compared(&mut self, node: usize, core: &DutyNode, now: Moment) -> bool {
        if self.compared.len() <= node {
            self.compared.resize(node + 1, (Moment::START, Vec::new()));
        }
        let Some((until, terms)) = self.compared.get_mut(node) else { return false };
        let known = terms.iter().map(|(lease, term)| (lease, *term));
        let same = now < *until && known.eq(core.trusted_terms(now));
        if !same {
            let present = core.trusted_terms(now);
            *terms = present.map(|(lease, term)| (lease.clone(), term)).collect();
        }
        *until = core.trusted_until();
        same
    }
}

impl Invariant for OneLeader {
    fn experienced(&mut self, node: usize, event: &ElectionEvent, _: bool) -> Verdict {
        self.knowledge.experienced(node, event);
        Ok(())
    }

    fn started(&mut self, node: usize) {
        self.knowledge.started(node);
        if let Some(compared) = self.compared.get_mut(node) {
            *compared = (Moment::START, Vec::new());
        }
    }

    fn forgot(&mut self, forgotten: &Forgotten) {
        self.knowledge.forgot(forgotten);
    }

    fn applied(&mut self, Landing { now, change, sender, .. }: Landing<'_>) -> Verdict {
        self.knowledge.applied(now, change, sender);
        Ok(())
    }

    fn stepped(&mut self, Step { now, node, processes, .. }: Step<'_>) -> Verdict {
        let Some(process) = processes.get(node) else { return Ok(()) };
        let Some((core, moment)) = process.trusting(now) else { return Ok(()) };
        let compared = self.is_compared(node, core, moment);
        // A clock that goes back, which is a planted mistake, lets trust begin by itself. And what
        // is excused for a while, because the store forgot, is looked at until it no longer is.
        if compared && !process.clock.confused && self.knowledge.is_untroubled() {
            return Ok(());
        }
        for (lease, term) in core.trusted_terms(moment) {
            for (at, other) in processes.iter().enumerate().filter(|(at, _)| *at != node) {
                let Some(other_term) = other.trusts(lease, now) else { continue };
                if self.knowledge.is_muddied(lease.as_str(), now) {
                    continue;
                }
                let (one, two) = ((&process.plan.name, term), (&other.plan.name, other_term));
                let (one, two) = if at < node { (two, one) } else { (one, two) };
                return Err(format!(
                    "{} trusts that it holds {lease} in term {}, and so does {} in term {}",
                    one.0, one.1, two.0, two.1
                ));
            }
        }
        Ok(())
    }
}
