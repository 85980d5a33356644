//! 1. At no instant do two members trust that they hold the same lease.

use incumbent_core::LeaseName;

use super::Invariant;
use crate::process::Process;

/// Trust begins only when a core does something, and otherwise only ends. So it is enough to
/// ask all processes each time that one of them did something.
pub(super) struct OneLeader;

impl Invariant for OneLeader {
    fn name(&self) -> &'static str {
        "one-leader"
    }

    fn stepped(
        &mut self,
        now: u64,
        processes: &[Process],
        leases: &[LeaseName],
    ) -> Result<(), String> {
        let leader = LeaseName::leader();
        for lease in leases.iter().chain([&leader]) {
            let mut first: Option<(&Process, u64)> = None;
            for process in processes {
                let Some(term) = process.trusts(lease, now) else { continue };
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
