//! 1. At no instant do two members trust that they hold the same lease; where the store forgot, among
//!    those that could know.

use incumbent_core::ElectionEvent;

use super::knowledge::{Forgotten, Knowledge};
use super::{Invariant, Landing, Step, Verdict};

/// Trust begins only when a core does something, and otherwise only ends. So it is enough to
/// compare a process with all others each time that it did something.
#[derive(Default)]
pub(super) struct OneLeader {
    knowledge: Knowledge,
}

impl Invariant for OneLeader {
    fn experienced(&mut self, node: usize, event: &ElectionEvent, _: bool) -> Verdict {
        self.knowledge.experienced(node, event);
        Ok(())
    }

    fn started(&mut self, node: usize) {
        self.knowledge.started(node);
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
