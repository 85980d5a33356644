//! What the driver counts for [`Metrics`](crate::node::metrics::Metrics).

use std::sync::Arc;

use incumbent_core::{LeaseName, Moment, Timing};

use super::Driver;
use super::lanes::Landed;
use crate::driver::clock;
use crate::node::metrics::{LeaseMeter, LeaseMeters, Meters};

/// The leases that are counted: those that this node stands for.
#[derive(Default)]
pub(super) struct Counting {
    /// Shared with those who read it until it changes, and copied then.
    leases: Arc<LeaseMeters>,
    changed: bool,
    /// The end of trust that was counted last.
    until: Moment,
}

impl Counting {
    pub(super) fn begin(&mut self, lease: &LeaseName) {
        if !self.leases.contains_key(lease) {
            Arc::make_mut(&mut self.leases).insert(lease.clone(), Arc::default());
            self.changed = true;
        }
    }

    pub(super) fn end(&mut self, lease: &LeaseName) {
        if self.leases.contains_key(lease) {
            Arc::make_mut(&mut self.leases).remove(lease);
            self.changed = true;
        }
    }

    /// Counts a renewal if trust lasts longer than it did.
    pub(super) fn trust(&mut self, meters: &Meters, timing: &Timing, now: Moment, until: Moment) {
        let former = std::mem::replace(&mut self.until, until);
        if former > Moment::START && until > former {
            let span = timing.ttl.saturating_sub(timing.margin);
            meters.renewed(now, former.since(now), span);
        }
    }

    pub(super) fn lease(&self, lease: &LeaseName) -> Option<&LeaseMeter> {
        self.leases.get(lease).map(Arc::as_ref)
    }
}

impl Driver {
    pub(super) fn hinted(&mut self) {
        self.shared.meters.hinted();
        self.core.hint(clock::now());
    }

    pub(super) fn count_exchange(&self, landed: &Landed) {
        let error = landed.answers.iter().find_map(|(_, answer)| answer.as_ref().err());
        self.shared.meters.exchanged(landed.lane, landed.latency, error.map(|error| error.kind));
    }

    /// Makes leases that are new to be found by who reads, once for all that came together.
    pub(super) fn publish_counting(&mut self) {
        if std::mem::take(&mut self.counting.changed) {
            self.shared.meters.publish(Arc::clone(&self.counting.leases));
        }
    }
}
