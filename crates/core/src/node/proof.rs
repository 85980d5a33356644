//! What a witness says: that a member is dead, which needs no waiting.

use super::{Elector, LeaseName, MemberId, Moment};
use crate::watch::Watch;

impl Elector {
    /// Takes in the proof that nothing of this member runs any more, so that it may be closed
    /// at once instead of after its ttl. Closing is a swap as ever, on the last version seen.
    ///
    /// Only for proof: a process that is paused, or a connection that ended, proves nothing.
    pub fn proven_dead(&mut self, now: Moment, member: &MemberId) {
        if Some(member) == self.own_id() {
            return;
        }
        let waiting: Vec<LeaseName> = self
            .leases
            .values()
            .filter(|lease| lease.awaited().any(|awaited| awaited == member))
            .map(|lease| lease.name.clone())
            .collect();
        if waiting.is_empty() {
            return;
        }
        self.watches.entry(member.clone()).or_insert_with(Watch::new).proven_dead();
        for name in waiting {
            self.arm(&name, now);
        }
    }
}
