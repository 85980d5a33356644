//! For which leases a node stands, so that it stands once for each.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use incumbent_core::LeaseName;

#[derive(Debug, Default)]
pub(crate) struct Registry {
    contests: Mutex<Contests>,
}

#[derive(Debug, Default)]
struct Contests {
    last: u64,
    by_lease: HashMap<LeaseName, u64>,
}

/// The right to stand for one lease, until it is dropped.
#[derive(Debug)]
pub(crate) struct Claim {
    registry: Arc<Registry>,
    pub(crate) lease: LeaseName,
    pub(crate) contest: u64,
}

impl Registry {
    /// Nothing if the lease is claimed already.
    pub(crate) fn claim(self: &Arc<Self>, lease: &LeaseName) -> Option<Claim> {
        let mut contests = self.contests.lock().unwrap_or_else(PoisonError::into_inner);
        if contests.by_lease.contains_key(lease) {
            return None;
        }
        contests.last += 1;
        let contest = contests.last;
        contests.by_lease.insert(lease.clone(), contest);
        Some(Claim { registry: Arc::clone(self), lease: lease.clone(), contest })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut contests = self.registry.contests.lock().unwrap_or_else(PoisonError::into_inner);
        contests.by_lease.remove(&self.lease);
    }
}
