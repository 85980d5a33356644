//! 1. At no instant do two members trust that they hold the same lease; where the store forgot, among
//!    those that could know.

use incumbent_core::{Event, LeaseName};

use super::knowledge::{Forgotten, Knowledge};
use super::{Invariant, Landing, Verdict};
use crate::process::Process;

/// Trust begins only when a core does something, and otherwise only ends. So it is enough to
/// ask all processes each time that one of them did something.
pub(super) struct OneLeader {
    knowledge: Knowledge,
    leader: LeaseName,
}

impl Default for OneLeader {
    fn default() -> Self {
        Self { knowledge: Knowledge::default(), leader: LeaseName::leader() }
    }
}

impl Invariant for OneLeader {
    fn experienced(&mut self, node: usize, event: &Event, _: bool) -> Verdict {
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

    fn stepped(&mut self, now: u64, processes: &[Process], leases: &[LeaseName]) -> Verdict {
        let trusting: Vec<_> = processes
            .iter()
            .filter_map(|process| process.trusting(now).map(|(core, now)| (process, core, now)))
            .collect();
        if trusting.len() < 2 {
            return Ok(());
        }
        for lease in leases.iter().chain([&self.leader]) {
            let mut first: Option<(&Process, u64)> = None;
            for (process, core, moment) in &trusting {
                let Some(term) = core.trusts(lease, *moment) else { continue };
                if first.is_some() && self.knowledge.is_muddied(lease.as_str(), now) {
                    break;
                }
                if let Some((other, other_term)) = first {
                    return Err(format!(
                        "{} trusts that it holds {lease} in term {other_term}, and so does {} in \
                         term {term}",
                        other.plan.name, process.plan.name
                    ));
                }
                first = Some((process, term));
            }
        }
        Ok(())
    }
}
